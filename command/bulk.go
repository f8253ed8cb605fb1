package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// maxListed is how many of the things that a command is about to change are listed before it asks.
const maxListed = 20

// bulk specifies which jobs or allocations a command is for, where it is for more than one.
type bulk struct {
	filter string
	prefix bool
	yes    bool
	guards bool // also one thing is changed only after a question, if its name was less than its whole ID
}

func (b *bulk) flags(fs *flag.FlagSet, what string) {
	fs.StringVar(&b.filter, "filter", "", "all "+what+" that match an `expression`; with -namespace '*', of all namespaces")
	fs.BoolVar(&b.prefix, "prefix", false, "what is named is the beginning of IDs: all "+what+" whose IDs begin so")
	fs.BoolVar(&b.yes, "yes", false, b.yesText())
}

func (b *bulk) yesText() string {
	if b.guards {
		return "do not ask for confirmation before more than one is changed, or one given by a short prefix of its ID"
	}
	return "do not ask for confirmation before more than one is changed"
}

// target is a job or an allocation that a command is for.
type target struct {
	namespace, id, name string
	guess               string // what was given, if that is only the beginning of its ID
}

func (t target) query() *api.Query { return &api.Query{Namespace: t.namespace} }

// targets finds what args and -filter name, each once, in the order in which it is named. exact finds the one that an
// argument names; list lists.
func (b *bulk) targets(
	e *env, what string, args []string, exact func(name string) (target, error), list func(q *api.Query) ([]target, error),
) ([]target, error) {
	if len(args) == 0 && b.filter == "" {
		return nil, fmt.Errorf("one %s at least is needed, or -filter; 0 given", what)
	}
	var found []target
	add := func(more ...target) {
		for _, t := range more {
			if !slices.ContainsFunc(found, func(o target) bool { return o.namespace == t.namespace && o.id == t.id }) {
				found = append(found, t)
			}
		}
	}
	if !b.prefix && b.filter == "" {
		for _, name := range args {
			t, err := exact(name)
			if err != nil {
				return nil, err
			}
			add(t)
		}
		return found, nil
	}
	if len(args) > 0 && !b.prefix {
		return nil, fmt.Errorf("-filter and the names of %ss exclude each other: add -prefix to filter by a prefix of the IDs", what)
	}
	if len(args) == 0 {
		args = []string{""}
	}
	for _, prefix := range args {
		if prefix == "" && b.filter == "" {
			return nil, fmt.Errorf("-prefix \"\" would be every %s: name the beginning of an ID", what)
		}
		q := e.query()
		q.Prefix, q.Filter = prefix, b.filter
		more, err := list(q)
		if err != nil {
			return nil, err
		}
		add(more...)
	}
	if len(found) == 0 {
		switch {
		case !b.prefix:
			return nil, fmt.Errorf("no %s matches -filter", what)
		case b.filter == "":
			return nil, fmt.Errorf("no %s has an ID that starts so", what)
		}
		return nil, fmt.Errorf("no %s has an ID that starts so and matches -filter", what)
	}
	return found, nil
}

// each does something to every target, after the user has agreed if there are more than one or they were not named one by
// one. One that fails keeps no other back. It returns the exit code.
func (b *bulk) each(ctx context.Context, e *env, verb, what string, all []target, do func(t target) int) int {
	if err := b.agreed(e, verb, what, all); err != nil {
		return e.fail(err)
	}
	code := exitDone
	for _, t := range all {
		if len(all) > 1 || b.prefix || b.filter != "" {
			e.printf("%s\n", e.style.Bold(fmt.Sprintf("%s %q:", strings.ToUpper(what[:1])+what[1:], inNamespaceText(t.namespace)+t.name)))
		}
		if c := do(t); c != exitDone && (code == exitDone || c != exitIncomplete) {
			code = c
		}
		if ctx.Err() != nil {
			break
		}
	}
	return code
}

// agreed asks, where that is needed, whether all are to be changed. It is an error if they are not.
func (b *bulk) agreed(e *env, verb, what string, all []target) error {
	guess := -1
	if b.guards {
		guess = slices.IndexFunc(all, func(t target) bool { return t.guess != "" })
	}
	unnamed := b.prefix || b.filter != ""
	if b.yes || len(all) == 1 && !unnamed && guess < 0 {
		return nil
	}
	if len(all) == 1 && guess >= 0 {
		return e.sure(fmt.Sprintf("%s %s", verb, what), what, all[0].guess, all[0].id)
	}
	for i, t := range all {
		if i == maxListed {
			e.printf("  … and %d more\n", len(all)-maxListed)
			break
		}
		e.printf("  %s%s\n", inNamespaceText(t.namespace), t.name)
	}
	if !ui.IsTerminal(e.in) {
		switch { // what was not named whole may be more, or something else, than was meant
		case unnamed:
			return errors.New("nothing was done: standard input is no terminal, so nobody can confirm; use -yes")
		case guess >= 0:
			return notSure(what, all[guess].guess, all[guess].id)
		}
	}
	if !e.confirm(fmt.Sprintf("%s %s? [y/N] ", verb, plural(len(all), what))) {
		return errors.New("nothing was done")
	}
	return nil
}

// sure asks whether the thing found by the beginning of its ID is the one that is meant. It is an error if it is
// not, or if nobody can be asked.
func (e *env) sure(action, kind, given, id string) error {
	if !ui.IsTerminal(e.in) {
		return notSure(kind, given, id)
	}
	if !e.confirm(fmt.Sprintf("%s %q? [y/N] ", action, id)) {
		return errors.New("nothing was done")
	}
	return nil
}

func notSure(kind, given, id string) error {
	return fmt.Errorf("nothing was done: %q is only a prefix of the ID of %s %q, and nobody can confirm here, as standard input is no terminal; use the whole ID, or -yes", given, kind, id)
}

// guessed is what was given, if the thing that it found has another ID and another name, else "".
func guessed(given, id, name string) string {
	if given == id || given == name {
		return ""
	}
	return given
}

// guessedShort is guessed of things whose lists print short IDs: who writes one of these, or more of it, means that thing.
func guessedShort(given, id, name string) string {
	if len(given) >= len(short(id, false)) {
		return ""
	}
	return guessed(given, id, name)
}

// inNamespaceText is what stands before a name that is not of the default namespace.
func inNamespaceText(namespace string) string {
	if namespace == "" || namespace == structs.DefaultNamespace {
		return ""
	}
	return namespace + "/"
}

// jobTargets finds jobs.
func (b *bulk) jobTargets(ctx context.Context, e *env, args []string) ([]target, error) {
	return b.targets(e, "job", args, func(name string) (target, error) {
		if e.namespace == structs.AllNamespaces {
			stub, err := e.oneJob(ctx, name)
			if err != nil {
				return target{}, err
			}
			return target{stub.Namespace, stub.ID, stub.ID, guessed(name, stub.ID, stub.Name)}, nil
		}
		id, guess, err := e.foundJob(ctx, name)
		return target{e.namespace, id, id, guess}, err
	}, func(q *api.Query) ([]target, error) {
		jobs, _, err := e.client.Jobs().List(ctx, q)
		out := make([]target, 0, len(jobs))
		for _, j := range jobs {
			out = append(out, target{orOwn(j.Namespace, e.namespace), j.ID, j.ID, ""})
		}
		return out, err
	})
}

// allocTargets finds allocations. Those that a prefix or a filter finds are those that are to run.
func (b *bulk) allocTargets(ctx context.Context, e *env, args []string) ([]target, error) {
	return b.targets(e, "allocation", args, func(name string) (target, error) {
		stub, err := e.oneAlloc(ctx, name)
		if err != nil {
			return target{}, err
		}
		return target{stub.Namespace, stub.ID, stub.ID + " " + stub.Name, guessedShort(name, stub.ID, stub.Name)}, nil
	}, func(q *api.Query) ([]target, error) {
		allocs, _, err := e.client.Allocations().List(ctx, q)
		var out []target
		for _, a := range allocs {
			if a.DesiredStatus == structs.AllocDesiredRun && !structs.TerminalClientStatus(a.ClientStatus) {
				out = append(out, target{a.Namespace, a.ID, a.ID + " " + a.Name, ""})
			}
		}
		return out, err
	})
}

// orOwn is the namespace that an answer states, else the one that was given.
func orOwn(stated, given string) string {
	if stated != "" {
		return stated
	}
	return given
}

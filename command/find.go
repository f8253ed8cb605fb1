package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// query returns the read options that the flags set.
func (e *env) query() *api.Query { return &api.Query{Namespace: e.namespace} }

// jobNamespace returns the namespace that takes the place of the one that a job file states; "": none does.
func (e *env) jobNamespace() string {
	if e.allByEnv {
		return ""
	}
	return e.namespace
}

// staleFlag is -stale of a command that only reads; requested reports it when the command runs.
func staleFlag(fs *flag.FlagSet) (requested func(e *env)) {
	stale := fs.Bool("stale", false, "show the state of the server at -address, even without a leader; it may be out of date")
	return func(e *env) {
		if *stale {
			e.client = e.client.Stale()
		}
	}
}

// kind is how things of one kind are found.
type kind[T any] struct {
	word     string // for messages
	only     string // what alone it is found by, with its article; empty: by ID and name
	list     listOf[T]
	id, name func(T) string
	rows     func(all []T, verbose bool) [][]string // the table that lists them: its head, and one row for each
	// namespace returns the namespace of one; nil: they have none.
	namespace func(T) string
}

// byName is a kind of things that are found by their names alone.
func byName[T any](word string, name func(T) string, list listOf[T], rows func([]T) [][]string) kind[T] {
	return kind[T]{word: word, only: "a name", list: list, id: name, name: name, rows: func(all []T, _ bool) [][]string { return rows(all) }}
}

// oneOf finds the one thing that a command's only argument names.
func oneOf[T any](ctx context.Context, e *env, k kind[T], args []string) (T, error) {
	if len(args) != 1 {
		var zero T
		return zero, fmt.Errorf("one %s is needed, %d given", k.word, len(args))
	}
	return one(ctx, e, k, args[0])
}

// one finds the one thing whose ID starts with prefix, or that is named so. The error lists what was found if it is more than one.
func one[T any](ctx context.Context, e *env, k kind[T], prefix string) (T, error) {
	var zero T
	if prefix == "" {
		return zero, fmt.Errorf("%s: its ID is missing", k.word)
	}
	q := e.query()
	q.Prefix = prefix
	found, _, err := k.list(ctx, q)
	if err != nil {
		return zero, err
	}
	named := len(found) == 0
	if named {
		q.Prefix = ""
		all, _, err := k.list(ctx, q)
		if err != nil {
			return zero, err
		}
		for _, t := range all {
			if k.name(t) == prefix {
				found = append(found, t)
			}
		}
	}
	exact := slices.DeleteFunc(slices.Clone(found), func(t T) bool { return k.id(t) != prefix })
	if len(exact) == 1 {
		return exact[0], nil
	}
	if len(exact) > 1 { // IDs are unique in a namespace only
		return zero, fmt.Errorf("%s have the ID %q; say which with -namespace:\n\n%s", plural(len(exact), k.word), prefix, k.table(exact))
	}
	switch len(found) {
	case 0:
		if k.only != "" {
			return zero, fmt.Errorf("no %s has %s that starts with %q%s", k.word, k.only, prefix, k.elsewhere(ctx, e, prefix))
		}
		return zero, fmt.Errorf("no %s is named %q or has an ID that starts so%s", k.word, prefix, k.elsewhere(ctx, e, prefix))
	case 1:
		return found[0], nil
	}
	message := fmt.Sprintf("%s have IDs that start with %q; use a longer prefix:", plural(len(found), k.word), prefix)
	if named {
		message = fmt.Sprintf("%s are named %q; use the ID of one:", plural(len(found), k.word), prefix)
	}
	return zero, errors.New(message + "\n\n" + k.table(found))
}

// elsewhere states in which other namespaces that the caller may read there is a thing with an ID that was not found, to follow that; "": in none.
func (k kind[T]) elsewhere(ctx context.Context, e *env, id string) string {
	if k.namespace == nil || e.namespace == structs.AllNamespaces {
		return ""
	}
	found, _, err := k.list(ctx, &api.Query{Namespace: structs.AllNamespaces, Prefix: id})
	if err != nil {
		return ""
	}
	var names []string
	for _, t := range found {
		if name := k.namespace(t); k.id(t) == id && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	where := "namespace"
	if len(names) > 1 {
		where = "namespaces"
	}
	return fmt.Sprintf("; there is one in %s %s (-namespace %s)", where, listedUpTo(names, elsewhereNamed), shellWord(names[0]))
}

// elsewhereNamed bounds the namespaces that an error names.
const elsewhereNamed = 4

// table lists what was found, up to maxListed, with IDs as short as lists have them if that distinguishes them.
func (k kind[T]) table(found []T) string {
	rows, seen := k.rows(found, false), map[string]bool{}
	rows = rows[:min(len(rows), maxListed+1)]
	for _, row := range rows {
		if seen[row[0]] {
			rows = k.rows(found, true)[:len(rows)]
			break
		}
		seen[row[0]] = true
	}
	var b strings.Builder
	ui.Table(&b, rows)
	if more := len(found) - maxListed; more > 0 {
		fmt.Fprintf(&b, "… and %d more", more)
	}
	return b.String()
}

func (e *env) oneJob(ctx context.Context, prefix string) (*structs.JobListStub, error) {
	return one(ctx, e, kind[*structs.JobListStub]{
		word:      "job",
		list:      e.client.Jobs().List,
		id:        func(j *structs.JobListStub) string { return j.ID },
		name:      func(j *structs.JobListStub) string { return j.Name },
		rows:      func(jobs []*structs.JobListStub, _ bool) [][]string { return jobRows(e, jobs) },
		namespace: func(j *structs.JobListStub) string { return j.Namespace },
	}, prefix)
}

func (e *env) oneAlloc(ctx context.Context, prefix string) (*structs.AllocListStub, error) {
	return one(ctx, e, kind[*structs.AllocListStub]{
		word: "allocation",
		list: e.client.Allocations().List,
		id:   func(a *structs.AllocListStub) string { return a.ID },
		name: func(a *structs.AllocListStub) string { return a.Name },
		rows: func(allocs []*structs.AllocListStub, verbose bool) [][]string {
			return allocJobRows(&e.printer, allocs, verbose)
		},
	}, prefix)
}

func (e *env) oneEval(ctx context.Context, prefix string) (*structs.Evaluation, error) {
	return one(ctx, e, kind[*structs.Evaluation]{
		word: "evaluation", only: "an ID",
		list: e.client.Evaluations().List,
		id:   func(v *structs.Evaluation) string { return v.ID },
		name: func(v *structs.Evaluation) string { return v.ID }, // it has no other
		rows: evalRows,
	}, prefix)
}

func (e *env) oneNode(ctx context.Context, prefix string) (*structs.NodeListStub, error) {
	return one(ctx, e, kind[*structs.NodeListStub]{
		word: "node",
		list: e.client.Nodes().List,
		id:   func(n *structs.NodeListStub) string { return n.ID },
		name: func(n *structs.NodeListStub) string { return n.Name },
		rows: func(nodes []*structs.NodeListStub, verbose bool) [][]string {
			return nodeRows(&e.printer, nodes, nil, nodeStatusOptions{verbose: verbose})
		},
	}, prefix)
}

// nodePoolNamed finds the node pool that is named, or the only one whose name begins so.
func nodePoolNamed(ctx context.Context, e *env, args []string) (*structs.NodePool, error) {
	return oneOf(ctx, e, byName("node pool", func(p *structs.NodePool) string { return p.Name }, e.client.NodePools().List, poolRows), args)
}

// jobName takes a job's exact ID, or the only job that starts so.
func (e *env) jobName(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("one job is needed, %d given", len(args))
	}
	id, _, err := e.foundJob(ctx, args[0])
	return id, err
}

// foundJob is jobName of one job. guess is what was given, if that is only the beginning of the job's ID. Where all namespaces are
// requested, the command goes on in that of the job.
func (e *env) foundJob(ctx context.Context, given string) (id, guess string, err error) {
	if e.namespace == structs.AllNamespaces {
		stub, err := e.oneJob(ctx, given)
		if err != nil {
			return "", "", workflowReader{e}.jobOfWorkflow(ctx, given, err)
		}
		e.namespace = stub.Namespace
		return stub.ID, guessed(given, stub.ID, stub.Name), nil
	}
	if job, _, err := e.client.Jobs().Info(ctx, given, e.query()); err == nil && job != nil {
		return job.ID, "", nil
	} else if err != nil && !api.IsNotFound(err) {
		return "", "", err
	}
	stub, err := e.oneJob(ctx, given)
	if err != nil {
		return "", "", workflowReader{e}.jobOfWorkflow(ctx, given, err)
	}
	return stub.ID, guessed(given, stub.ID, stub.Name), nil
}

// short is an ID as people see it. IDs of version 7, which earlier versions minted, begin
// with their time, so that it takes more of them to distinguish two.
func short(id string, verbose bool) string {
	const timeOrdered = 18 // up to and with the version and the first random digits
	if !verbose && len(id) == 36 && id[14] == '7' {
		return id[:timeOrdered]
	}
	if verbose {
		return id
	}
	return structs.ShortID(id)
}

// pairsText is a map in one line, in order.
func pairsText(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, key+"="+m[key])
	}
	return strings.Join(parts, ",")
}

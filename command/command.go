package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/hashicorp/cli"
	"github.com/posener/complete"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// Exit codes.
const (
	exitDone       = 0
	exitFailed     = 1
	exitIncomplete = 2 // not all could be placed
)

// spec declares one command.
type spec struct {
	synopsis string
	usage    string // what follows the command's name
	example  string // after the command's name
	details  string // more help
	local    bool   // it asks no agent
	output   bool   // it has -json and -t
	setup    func(fs *flag.FlagSet) func(ctx context.Context, e *env, args []string) int
}

// env is what a command works with.
type env struct {
	in       io.Reader
	out, err io.Writer
	style    ui.Style
	client   *api.Client
	name     string

	address, region, namespace, token string
	json                              bool
	template                          string
	noColor                           bool
	now                               func() time.Time
}

// runner makes a spec a cli.Command.
type runner struct {
	name     string
	spec     spec
	in       io.Reader
	out, err io.Writer
	ctx      context.Context
}

func (r *runner) flags(e *env) (*flag.FlagSet, func(context.Context, *env, []string) int) {
	fs := flag.NewFlagSet(r.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if !r.spec.local {
		fs.StringVar(&e.address, "address", "", "the agent's `URL` (NOMADISH_ADDR, NOMAD_ADDR; default "+api.DefaultAddress+")")
		fs.StringVar(&e.region, "region", "", "the `region` to ask (NOMADISH_REGION)")
		fs.StringVar(&e.namespace, "namespace", "", "the `namespace` to ask, * for all (NOMADISH_NAMESPACE)")
		fs.StringVar(&e.token, "token", "", "the access `token` (NOMADISH_TOKEN)")
		fs.BoolVar(&e.noColor, "no-color", false, "no colours (NO_COLOR)")
	}
	if r.spec.output {
		fs.BoolVar(&e.json, "json", false, "print JSON")
		fs.StringVar(&e.template, "t", "", "print through a Go `template`")
	}
	return fs, r.spec.setup(fs)
}

// Help implements cli.Command.
func (r *runner) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: nomadish %s [options] %s\n\n  %s\n", r.name, r.spec.usage, r.spec.synopsis)
	if r.spec.details != "" {
		fmt.Fprintf(&b, "\n%s\n", indent(r.spec.details))
	}
	fmt.Fprintf(&b, "\nExample:\n\n  $ nomadish %s %s\n", r.name, r.spec.example)
	fs, _ := r.flags(&env{})
	n := 0
	fs.VisitAll(func(*flag.Flag) { n++ })
	if n > 0 {
		b.WriteString("\nOptions:\n")
		fs.VisitAll(func(f *flag.Flag) {
			arg, text := flag.UnquoteUsage(f)
			if arg != "" {
				arg = " " + arg
			}
			fmt.Fprintf(&b, "\n  -%s%s\n      %s\n", f.Name, arg, text)
		})
	}
	return strings.TrimRight(b.String(), "\n")
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// Synopsis implements cli.Command.
func (r *runner) Synopsis() string { return r.spec.synopsis }

// AutocompleteFlags implements cli.CommandAutocomplete.
func (r *runner) AutocompleteFlags() complete.Flags {
	out := complete.Flags{}
	fs, _ := r.flags(&env{})
	fs.VisitAll(func(f *flag.Flag) { out["-"+f.Name] = complete.PredictAnything })
	return out
}

// AutocompleteArgs implements cli.CommandAutocomplete.
func (r *runner) AutocompleteArgs() complete.Predictor { return complete.PredictFiles("*") }

// Run implements cli.Command.
func (r *runner) Run(args []string) int {
	e := &env{in: r.in, out: r.out, err: r.err, name: r.name, now: time.Now}
	fs, run := r.flags(e)
	positional, err := parseMixed(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(r.out, r.Help())
		return exitDone
	}
	if err != nil {
		return e.usage("%v", err)
	}
	if !e.noColor {
		e.style = ui.StyleFor(r.out)
	}
	if !r.spec.local {
		e.client, err = api.New(api.Config{Address: e.address, Region: e.region, Namespace: e.namespace, Token: e.token}.FromEnv())
		if err != nil {
			return e.fail(err)
		}
	}
	return run(r.ctx, e, positional)
}

// parseMixed lets flags stand before and after the arguments, as Nomad's users
// write them. "--" ends the flags.
func parseMixed(fs *flag.FlagSet, args []string) ([]string, error) {
	var positional []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if len(rest) == 0 {
			return positional, nil
		}
		if taken := len(args) - len(rest); taken > 0 && args[taken-1] == "--" {
			return append(positional, rest...), nil
		}
		positional = append(positional, rest[0])
		args = rest[1:]
	}
}

func (e *env) printf(format string, args ...any) { _, _ = fmt.Fprintf(e.out, format, args...) }

// fail prints an error and gives the exit code.
func (e *env) fail(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitFailed
	}
	_, _ = fmt.Fprintf(e.err, "%s\n", strings.TrimSpace(err.Error()))
	return exitFailed
}

// usage says what is wrong with the command line.
func (e *env) usage(format string, args ...any) int {
	_, _ = fmt.Fprintf(e.err, format+"\nSee `nomadish %s -help`.\n", append(args, e.name)...)
	return exitFailed
}

// formatted prints v as -json or -t ask; false: neither was asked.
func (e *env) formatted(v any) (bool, int) {
	if !e.json && e.template == "" {
		return false, 0
	}
	if e.json && e.template != "" {
		return true, e.usage("-json and -t exclude each other")
	}
	if e.json {
		enc := json.NewEncoder(e.out)
		enc.SetIndent("", "    ")
		if err := enc.Encode(v); err != nil {
			return true, e.fail(err)
		}
		return true, exitDone
	}
	t, err := template.New("-t").Parse(e.template)
	if err != nil {
		return true, e.fail(fmt.Errorf("template: %w", err))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return true, e.fail(fmt.Errorf("template: %w", err))
	}
	e.printf("%s\n", strings.TrimRight(b.String(), "\n"))
	return true, exitDone
}

// Run runs the command line and gives the exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	interrupted := make(chan os.Signal, 1)
	if len(args) == 0 || (args[0] != "agent" && args[0] != "executor") { // these two handle their signals themselves
		signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(interrupted)
		go func() {
			select {
			case <-interrupted:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	commands := map[string]cli.CommandFactory{}
	var hidden []string
	for name, s := range registry() {
		commands[name] = func() (cli.Command, error) {
			return &runner{name: name, spec: s, in: in, out: out, err: errOut, ctx: ctx}, nil
		}
		if _, alias := aliases[name]; alias || name == "executor" {
			hidden = append(hidden, name)
		}
	}
	for name, text := range groups {
		commands[name] = func() (cli.Command, error) { return &group{text}, nil }
	}
	slices.Sort(hidden)
	c := &cli.CLI{
		Name: "nomadish", Version: VersionString(), Args: args, Commands: commands, HiddenCommands: hidden,
		Autocomplete: true, AutocompleteNoDefaultFlags: true, HelpFunc: help(hidden), HelpWriter: out, ErrorWriter: errOut,
	}
	code, err := c.Run()
	if err != nil {
		_, _ = fmt.Fprintln(errOut, err)
		return exitFailed
	}
	return code
}

// group is a noun without a verb: its help lists the verbs.
type group struct{ text string }

func (g *group) Help() string     { return "Usage: nomadish " + g.text }
func (g *group) Synopsis() string { _, s, _ := strings.Cut(g.text, "\n\n  "); return s }
func (g *group) Run([]string) int { return cli.RunResultHelp }

func help(hidden []string) cli.HelpFunc {
	return func(all map[string]cli.CommandFactory) string {
		for _, h := range hidden {
			delete(all, h)
		}
		return "nomadish schedules jobs on clusters of GPU and HPC machines.\n\n" + cli.BasicHelpFunc("nomadish")(all) +
			"\n\nStart with `nomadish agent -dev` in one terminal and `nomadish job init && nomadish job run example.nomad.hcl` in another."
	}
}

// query is the read options that the flags ask for.
func (e *env) query() *api.Query { return &api.Query{Namespace: e.namespace} }

// one finds the one thing whose ID starts with prefix. kind is for messages.
func one[T any](e *env, kind, prefix string, list func(q *api.Query) ([]T, error), id func(T) string, name func(T) string) (T, error) {
	var zero T
	if prefix == "" {
		return zero, fmt.Errorf("%s: its ID is missing", kind)
	}
	q := e.query()
	q.Prefix = prefix
	found, err := list(q)
	if err != nil {
		return zero, err
	}
	if len(found) == 0 {
		q.Prefix = ""
		all, err := list(q)
		if err != nil {
			return zero, err
		}
		for _, t := range all {
			if name(t) == prefix {
				found = append(found, t)
			}
		}
	}
	for _, t := range found {
		if id(t) == prefix {
			return t, nil
		}
	}
	switch len(found) {
	case 0:
		return zero, fmt.Errorf("no %s has an ID that starts with %q", kind, prefix)
	case 1:
		return found[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %ss have IDs that start with %q; give more of it:", len(found), kind, prefix)
	for i, t := range found {
		if i == 10 {
			fmt.Fprintf(&b, "\n  … and %d more", len(found)-10)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s", id(t), name(t))
	}
	return zero, errors.New(b.String())
}

func (e *env) oneJob(ctx context.Context, prefix string) (*structs.JobListStub, error) {
	return one(e, "job", prefix, func(q *api.Query) ([]*structs.JobListStub, error) {
		jobs, _, err := e.client.JobList(ctx, q)
		return jobs, err
	}, func(j *structs.JobListStub) string { return j.ID }, func(j *structs.JobListStub) string { return j.Name })
}

func (e *env) oneAlloc(ctx context.Context, prefix string) (*structs.AllocListStub, error) {
	return one(e, "allocation", prefix, func(q *api.Query) ([]*structs.AllocListStub, error) {
		allocs, _, err := e.client.AllocList(ctx, q)
		return allocs, err
	}, func(a *structs.AllocListStub) string { return a.ID }, func(a *structs.AllocListStub) string { return a.Name })
}

func (e *env) oneEval(ctx context.Context, prefix string) (*structs.Evaluation, error) {
	return one(e, "evaluation", prefix, func(q *api.Query) ([]*structs.Evaluation, error) {
		evals, _, err := e.client.EvalList(ctx, q)
		return evals, err
	}, func(v *structs.Evaluation) string { return v.ID }, func(v *structs.Evaluation) string { return v.JobID + " " + v.Status })
}

func (e *env) oneNode(ctx context.Context, prefix string) (*structs.NodeListStub, error) {
	return one(e, "node", prefix, func(q *api.Query) ([]*structs.NodeListStub, error) {
		nodes, _, err := e.client.NodeList(ctx, q)
		return nodes, err
	}, func(n *structs.NodeListStub) string { return n.ID }, func(n *structs.NodeListStub) string { return n.Name })
}

// jobName takes a job's exact ID, or the only job that starts so.
func (e *env) jobName(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("one job is needed, %d given", len(args))
	}
	if job, _, err := e.client.Job(ctx, args[0], e.query()); err == nil && job != nil {
		return job.ID, nil
	} else if err != nil && !api.IsNotFound(err) {
		return "", err
	}
	stub, err := e.oneJob(ctx, args[0])
	if err != nil {
		return "", err
	}
	return stub.ID, nil
}

func short(id string, verbose bool) string {
	if verbose {
		return id
	}
	return structs.ShortID(id)
}

package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/posener/complete"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/agent"
	"github.com/nomadish/nomadish/command/agent/jobparse"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// Exit codes.
const (
	exitDone       = 0
	exitFailed     = 1
	exitIncomplete = 2 // not all could be placed

	exitInterrupted = 130 // Ctrl-C while following, as shells count it
)

// spec declares one command.
type spec struct {
	synopsis string
	usage    string   // what follows the command's name; "": no arguments
	takes    string   // its only argument, such as "file", or nothing; "": setup counts those that usage states
	counts   bool     // setup says what is wrong with arguments though usage states none
	misuse   int      // the exit code of a wrong number of arguments; 0: exitFailed
	example  string   // after the command's name
	details  string   // more help
	local    bool     // it calls no agent
	output   bool     // it has -json and -t
	accepts  []string // flags of nomadFlags
	// negatives: a negative number on the command line is an argument, not a flag.
	negatives bool
	setup     func(fs *flag.FlagSet) func(ctx context.Context, e *env, args []string) int

	// raw, instead of setup, takes the arguments as they are; help then describes them.
	raw  func(ctx context.Context, args []string, out, err io.Writer) int
	help string
}

// env is what a command works with.
type env struct {
	printer
	in     io.Reader
	err    io.Writer
	client *api.Client
	name   string

	address, region, namespace, token string
	allByEnv                          bool // it is the environment that names all namespaces: a job file states its own
	tls                               api.TLSConfig
	json                              bool
	template                          string
	noColor                           bool
	leaderless                        string // what to add where there is no leader
}

// What the flags of those describe who act for a user: -user of commands that submit jobs or edit projects, -force of the latter.
const (
	userUsage   = "the `user` who submits, where the servers trust that (trust_user_header); NOMADISH_USER"
	editorUsage = "the `user` who edits, where the servers trust that (trust_user_header); NOMADISH_USER"
	forceUsage  = "accept users and groups that the servers' user database does not have"
)

// printer prints what a command shows. What comes from the cluster is printed by printf and the functions of ui, which escape it.
type printer struct {
	out   io.Writer
	style ui.Style
	now   func() time.Time
}

// runner runs a command as its spec states.
type runner struct {
	name     string
	spec     spec
	in       io.Reader
	out, err io.Writer
	ctx      context.Context
	now      func() time.Time
	patience time.Duration // instead of leaderPatience, in tests
}

func (r *runner) flags(e *env) (*flag.FlagSet, func(context.Context, *env, []string) int) {
	fs := flag.NewFlagSet(r.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if !r.spec.local {
		fs.StringVar(&e.address, "address", "", "the agent's `URL` (NOMADISH_ADDR, NOMAD_ADDR; default "+api.DefaultAddress+")")
		fs.StringVar(&e.region, "region", "", "the `region` of the request (NOMADISH_REGION)")
		fs.StringVar(&e.namespace, "namespace", "", "the `namespace` of the request, * for all (NOMADISH_NAMESPACE)")
		fs.StringVar(&e.token, "token", "", "the access `token` (NOMADISH_TOKEN)")
		e.tlsFlags(fs)
		fs.BoolVar(&e.noColor, "no-color", false, "no colours (NO_COLOR)")
	}
	if r.spec.output {
		fs.BoolVar(&e.json, "json", false, "print JSON")
		fs.StringVar(&e.template, "t", "", "print through a Go `template`")
	}
	acceptFlags(fs, r.spec.accepts)
	if r.spec.setup == nil {
		return fs, nil
	}
	return fs, r.spec.setup(fs)
}

// Help is what -h prints, without the list of what stands beneath the command.
func (r *runner) Help() string {
	example := fmt.Sprintf("\nExample:\n\n  $ %s\n", strings.TrimSpace("nomadish "+r.name+" "+r.spec.example))
	if r.spec.raw != nil {
		return strings.TrimRight(r.spec.help, "\n") + "\n" + strings.TrimRight(example, "\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n\n  %s\n", strings.TrimSpace("nomadish "+r.name+" [options] "+r.spec.usage), r.spec.synopsis)
	if r.spec.details != "" {
		fmt.Fprintf(&b, "\n%s\n", indent(r.spec.details))
	}
	b.WriteString(example)
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
			fmt.Fprintf(&b, "\n  -%s%s\n      %s%s\n", f.Name, arg, text, defaultText(f.DefValue))
		})
	}
	return strings.TrimRight(b.String(), "\n")
}

// defaultText returns what a flag is if it is not given, where that is more than nothing.
func defaultText(value string) string {
	switch value {
	case "", "0", "-1", "false":
		return ""
	}
	return fmt.Sprintf(" (default %s)", value)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// predictFlags are the flags that a shell may complete.
func (r *runner) predictFlags() complete.Flags {
	out := complete.Flags{}
	fs, _ := r.flags(&env{})
	fs.VisitAll(func(f *flag.Flag) { out["-"+f.Name] = complete.PredictAnything })
	return out
}

// predictArgs are what a shell completes besides flags.
func (r *runner) predictArgs() complete.Predictor { return complete.PredictFiles("*") }

// Run parses args, runs the command and returns the exit code.
func (r *runner) Run(args []string) int {
	if r.spec.raw != nil {
		return r.spec.raw(r.ctx, args, ui.NewWriter(r.out), ui.NewWriter(r.err))
	}
	e := &env{printer: printer{out: ui.NewWriter(r.out), now: r.now}, in: r.in, err: ui.NewWriter(r.err), name: r.name}
	fs, run := r.flags(e)
	if r.spec.negatives {
		args = negativesLast(args)
	}
	positional, err := parseMixed(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(r.out, r.Help())
		return exitDone
	}
	if err != nil {
		return e.usage("%v", ui.FlagError(fs, err, structs.Nearest))
	}
	if text := r.spec.miscounts(positional); text != "" {
		return cmp.Or(r.spec.misuse, e.usage("%s", text))
	}
	warnNoEffect(e, fs, r.spec.accepts)
	if !e.noColor {
		e.style = ui.StyleFor(e.out)
	}
	if !r.spec.local {
		requested := api.Config{Address: e.address, Region: e.region, Namespace: e.namespace, Token: e.token, TLS: e.tls}.FromEnv()
		e.tls = requested.TLS
		if e.namespace == "" && requested.Namespace == structs.AllNamespaces {
			e.namespace, e.allByEnv = structs.AllNamespaces, true
		}
		e.client, err = api.New(requested)
		if err != nil {
			return e.fail(err)
		}
		e.leaderless = staleHint(fs)
		if stale(fs) { // it needs none
			var age staleness
			e.client = e.client.Answered(age.see)
			code := run(r.ctx, e, positional)
			age.warn(e)
			return code
		}
		ctx, end := e.watchLeader(r.ctx, cmp.Or(r.patience, leaderPatience))
		defer end()
		return run(ctx, e, positional)
	}
	return run(r.ctx, e, positional)
}

// tlsFlags are those that state how the agent proves itself, and the caller to it.
func (e *env) tlsFlags(fs *flag.FlagSet) {
	fs.StringVar(&e.tls.CACert, "ca-cert", "", "a `file` with the CA of the agent's certificate (NOMADISH_CACERT)")
	fs.StringVar(&e.tls.CAPath, "ca-path", "", "a `directory` of such files (NOMADISH_CAPATH)")
	fs.StringVar(&e.tls.ClientCert, "client-cert", "", "a `file` with the certificate to show to the agent (NOMADISH_CLIENT_CERT)")
	fs.StringVar(&e.tls.ClientKey, "client-key", "", "a `file` with its key (NOMADISH_CLIENT_KEY)")
	fs.StringVar(&e.tls.TLSServerName, "tls-server-name", "", "the `name` that the agent's certificate must have, if not that of -address (NOMADISH_TLS_SERVER_NAME)")
	fs.BoolVar(&e.tls.Insecure, "tls-skip-verify", false, "do not verify the agent's certificate: whoever answers is believed (NOMADISH_SKIP_VERIFY)")
}

// negativesLast puts the negative numbers of a command line behind "--", where they are no flags.
func negativesLast(args []string) []string {
	number := func(arg string) bool {
		_, err := strconv.ParseInt(arg, 10, 64)
		return err == nil && strings.HasPrefix(arg, "-")
	}
	if slices.Contains(args, "--") || !slices.ContainsFunc(args, number) {
		return args
	}
	first := slices.DeleteFunc(slices.Clone(args), number)
	return slices.Concat(first, []string{"--"}, slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !number(arg) }))
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

// printf prints to standard output, with each argument in one line: what is not printable in it is escaped.
func (p *printer) printf(format string, args ...any) { ui.Fprintf(p.out, format, args...) }

// eprintf is printf to standard error.
func (e *env) eprintf(format string, args ...any) { ui.Fprintf(e.err, format, args...) }

// fail prints an error and returns the exit code.
func (e *env) fail(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitFailed
	}
	hint := ""
	if api.IsNoLeader(err) && !unfounded(err) {
		hint = e.leaderless
	}
	text := ui.Lines(strings.TrimSpace(err.Error()))
	var answer *api.Error
	if errors.As(err, &answer) { // a server's text
		text = ui.Indented(string(text))
	}
	e.eprintf("%s%s\n", text, ui.Lines(hint))
	return exitFailed
}

// usage prints what is wrong with the command line, and returns the exit code.
func (e *env) usage(format string, args ...any) int {
	e.eprintf(format+"\nSee `nomadish %s -help`.\n", append(args, e.name)...)
	return exitFailed
}

// withoutArgs is a command that takes no arguments.
func withoutArgs(run func(context.Context, *env) int) func(context.Context, *env, []string) int {
	return func(ctx context.Context, e *env, _ []string) int { return run(ctx, e) }
}

// nothing is what a command takes that has options in its usage, and no arguments.
const nothing = "nothing"

// miscounts returns what is wrong with the number of arguments; "": nothing, or setup finds out.
func (s *spec) miscounts(args []string) string {
	switch {
	case s.takes == nothing || s.usage == "" && !s.counts:
		if len(args) > 0 {
			return fmt.Sprintf("no arguments are taken, %d given", len(args))
		}
	case s.takes != "" && (len(args) != 1 || args[0] == ""):
		return fmt.Sprintf("one %s is needed, %d given", s.takes, len(args))
	}
	return ""
}

// formatted prints v as -json or -t requests; false: neither was set.
func (e *env) formatted(v any) (bool, int) {
	if !e.json && e.template == "" {
		return false, 0
	}
	if e.json && e.template != "" {
		return true, e.usage("-json and -t exclude each other")
	}
	if e.json {
		if err := ui.JSON(e.out, v); err != nil {
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
	e.printf("%s\n", ui.Lines(strings.TrimRight(b.String(), "\n")))
	return true, exitDone
}

// Run runs the command line and returns the exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) > 0 && args[0] == jobparse.Command { // an agent's own, and before all else: it is run for every job file
		return jobparse.Main(args[1:], in, out, errOut)
	}
	all := registry()
	if name := later(args, all); name != "" {
		_, _ = fmt.Fprintln(errOut, laterText(name))
		return exitFailed
	}
	agent.Version = semantic()
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
	p := &program{commands: all, in: in, out: out, err: errOut, ctx: ctx}
	return p.run(args)
}

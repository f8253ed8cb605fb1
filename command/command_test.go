package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/api"
)

// line runs a whole command line as main does.
func line(t *testing.T, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(args, strings.NewReader(""), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	for name, s := range specs() {
		r := &runner{name: name, spec: s}
		help := r.Help()
		wants(t, help, "Usage: nomadish ", "\nExample:\n\n  $ nomadish "+name)
		if s.synopsis == "" || strings.HasSuffix(s.synopsis, ".") {
			t.Errorf("%s: synopsis %q: want one line without a full stop", name, s.synopsis)
		}
		if (s.setup == nil) == (s.raw == nil) {
			t.Errorf("%s: either setup or raw must be set", name)
		}
		if strings.Contains(help, "%!") {
			t.Errorf("%s: help is not formatted right:\n%s", name, help)
		}
	}
}

func TestExamplesParse(t *testing.T) {
	for name, s := range specs() {
		if s.raw != nil {
			continue
		}
		e := &env{}
		fs, _ := (&runner{name: name, spec: s}).flags(e)
		if _, err := parseMixed(fs, strings.Fields(s.example)); err != nil {
			t.Errorf("%s: its example %q: %v", name, s.example, err)
		}
	}
}

// TestArgumentsThatMeanNothing: a command whose usage has no arguments takes none, so that nobody believes that one did something.
func TestArgumentsThatMeanNothing(t *testing.T) {
	var nobody *fake
	for name, s := range specs() {
		if s.usage != "" || s.raw != nil {
			continue
		}
		args := strings.Fields(name)
		if !s.local {
			args = append(args, "-address=http://127.0.0.1:1")
		}
		if got := nobody.run(t, append(args, "more")...); got.code == exitDone || got.out != "" || strings.Contains(got.err, "127.0.0.1") {
			t.Errorf("%s: exit code %d, %q, stderr %q", name, got.code, got.out, got.err)
		}
	}
}

func TestEveryNameStandsInAGroup(t *testing.T) {
	all := specs()
	p := &program{commands: registry()}
	for name := range all {
		if groups[name] != "" {
			t.Errorf("%q is a command and a group", name)
		}
		if strings.Count(name, " ") >= mostWords {
			t.Errorf("%q has more than %d words", name, mostWords)
		}
		for at := strings.LastIndex(name, " "); at >= 0; at = strings.LastIndex(name[:at], " ") {
			if !p.has(name[:at]) {
				t.Errorf("%s: there is no help for %q", name, name[:at])
			}
		}
	}
	for alias, of := range aliases {
		if _, ok := specs()[of]; !ok {
			t.Errorf("alias %q: there is no command %q", alias, of)
		}
	}
}

func TestHelpIsPrinted(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		got := line(t, args...)
		if got.code != exitDone || got.err != "" {
			t.Errorf("%q: exit code %d, stderr %q", args, got.code, got.err)
		}
		wants(t, got.out, want)
	}
	f("nomadish agent -dev", "-help")
	f("Usage: nomadish job run [options] <file>", "job", "run", "-h")
	f("-check-index", "job", "run", "--help")
	f("Usage: nomadish agent", "agent", "-help")
	f("list-peers", "operator", "raft", "-help")
	f(VersionString(), "-version")
	f(VersionString(), "version")
	if got := line(t, "-help"); strings.Contains(got.out, "executor") || strings.Contains(got.out, "node-drain") {
		t.Errorf("help shows what is hidden:\n%s", got.out)
	}
}

func TestUnknownCommands(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		got := line(t, args...)
		if got.code != exitFailed || got.out != "" {
			t.Errorf("%q: exit code %d, output %q", args, got.code, got.out)
		}
		wants(t, got.err, want)
	}
	f("a command is needed")
	f(`there is no command "jbo"`, "jbo")
	f("a command is needed", "-verbose")
	f(`there is no command "plam"; did you mean "plan"?`, "plam", "x.hcl")
	f(`there is no command "job statsu"; did you mean "job status"?`, "job", "statsu", "web")
	f(`there is no command "jbo"; did you mean "job explain"?`, "jbo", "explian", "web")
	f(`there is no command "operator snapshto"; did you mean "operator snapshot save"?`, "operator", "snapshto", "save", "x")
	f(`did you mean "job"?`, "-verbose", "jobs")
	f(`did you mean "node status"?`, "nodes", "status", "-verbose")
	f(`there is no command "job logs"; did you mean "alloc logs"?`, "job", "logs", "web") // what another noun has
	f(`did you mean "node drain"?`, "drain", "n1")
	f(`nomadish: "deployment list" is not there yet: `, "deployment", "list")
	f(`nomadish: "alloc exec" is not there yet: `, "alloc", "exec", "x", "sh")
	f("Subcommands:", "job")
	f("Subcommands:", "operator", "raft")
	f(`there is no command "operator raft x"`, "operator", "raft", "x", "y")
	f(`there is no command "operator raft infos"; did you mean "operator raft info"?`, "operator", "raft", "infos")
	f(`there is no command "jobs"; did you mean "job"?`, "jobs", "job")
}

func TestBadFlags(t *testing.T) {
	got := line(t, "job", "status", "-nope")
	if got.code != exitFailed || got.out != "" {
		t.Errorf("exit code %d, output %q", got.code, got.out)
	}
	wants(t, got.err, "-nope", "See `nomadish job status -help`.")
	got = line(t, "job", "status", "-address", "ftp://x")
	wants(t, got.err, "write it as http://host:port")
}

func TestNobodyAnswers(t *testing.T) {
	f := newFake(t)
	f.Close()
	for _, args := range [][]string{
		{"status"}, {"node", "status"}, {"job", "stop", "web"}, {"server", "members"}, {"operator", "api", "/v1/jobs"},
		{"sim", "nodes"}, {"alloc", "logs", "-job", "web"}, {"system", "gc"},
	} {
		got := f.run(t, args...)
		if got.code != exitFailed || got.out != "" {
			t.Errorf("%q: exit code %d, output %q", args, got.code, got.out)
		}
		wants(t, got.err, "no agent answers at "+f.URL, "nomadish agent -dev", "NOMADISH_ADDR")
	}
}

func TestEnvironmentAndFlagsReachTheAgent(t *testing.T) {
	f := cluster(t)
	t.Setenv("NOMAD_ADDR", "http://127.0.0.1:1")
	t.Setenv("NOMADISH_ADDR", f.URL)
	t.Setenv("NOMAD_NAMESPACE", "lab")
	if got := line(t, "job", "status"); got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, f.requests("GET")[0], "namespace=lab")
	if got := line(t, "job", "status", "-namespace", "*", "-region", "eu"); got.code != exitDone || !strings.Contains(got.out, "Namespace") {
		t.Fatalf("exit code %d, output %q", got.code, got.out)
	}
	wants(t, f.requests("GET")[1], "namespace=%2A", "region=eu")
}

func TestParseMixed(t *testing.T) {
	f := func(text, positional string, verbose bool, name string) {
		t.Helper()
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		v, n := fs.Bool("v", false, ""), fs.String("name", "", "")
		got, err := parseMixed(fs, strings.Fields(text))
		if err != nil || strings.Join(got, " ") != positional || *v != verbose || *n != name {
			t.Errorf("%q: %q, -v=%v, -name=%q, error %v", text, got, *v, *n, err)
		}
	}
	f("", "", false, "")
	f("a", "a", false, "")
	f("-v a", "a", true, "")
	f("a -v", "a", true, "")
	f("a -v b -name x c", "a b c", true, "x")
	f("a --name=x b", "a b", false, "x")
	f("-- -v", "-v", false, "")
	f("a -- -v b", "a -v b", false, "")
	f("-name -v a", "a", false, "-v")
	f("- -v", "-", true, "")
}

func FuzzParseMixed(f *testing.F) {
	f.Add("a -v b -name x c")
	f.Add("-- - -name")
	f.Fuzz(func(t *testing.T, text string) {
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.Bool("v", false, "")
		fs.String("name", "", "")
		words := strings.Fields(text)
		got, err := parseMixed(fs, words)
		if err != nil {
			return
		}
		for _, g := range got {
			if !slices.Contains(words, g) {
				t.Errorf("%q gives %q, which it does not hold", text, g)
			}
		}
	})
}

func TestInterruptedIsSilent(t *testing.T) {
	var out, errOut bytes.Buffer
	e := &env{printer: printer{out: &out}, err: &errOut}
	if code := e.fail(errors.Join(context.Canceled)); code != exitFailed || errOut.Len() != 0 {
		t.Errorf("exit code %d, stderr %q", code, errOut.String())
	}
}

func TestShort(t *testing.T) {
	f := func(id string, verbose bool, want string) {
		t.Helper()
		if got := short(id, verbose); got != want {
			t.Errorf("short(%q, %v) = %q, want %q", id, verbose, got, want)
		}
	}
	f(allocA, false, "5f3a9c01")
	f(allocA, true, allocA)
	f(nodeA, false, "01976c1c-5f3a-7c11")
	f(nodeA, true, nodeA)
	f("abc", false, "abc")
	f("", false, "")
	f("5f3a9c01-0000-8000-7000-00000000000é", false, "5f3a9c01")
}

func TestOperatorAPI(t *testing.T) {
	t.Setenv("NOMADISH_REGION", "")
	f := newFake(t).on("GET /v1/jobs", "[]").on("PUT /v1/jobs", "{}").on("POST /v1/jobs", "posted").
		on("DELETE /v1/job/a", refusal{http.StatusForbidden, "not yours"})
	says := func(want string, args ...string) {
		t.Helper()
		if got := f.runIn(t, "from stdin", append([]string{"operator", "api"}, args...)...); got.code != exitDone || got.out != want {
			t.Errorf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
	says("[]", "/v1/jobs")
	says("[]", "jobs")
	says("[]", f.URL+"/v1/jobs?prefix=a")
	wants(t, f.requests("GET")[2], "/v1/jobs?prefix=a")
	says("{}", "-d", "text", "/v1/jobs")
	if f.lastBody() != "text" {
		t.Errorf("sent %q", f.lastBody())
	}
	says("posted", "-X", "post", "-d", "-", "/v1/jobs")
	if f.lastBody() != "from stdin" {
		t.Errorf("sent %q", f.lastBody())
	}
	says("GET "+f.URL+"/v1/jobs?filter=x&namespace=lab\n", "-dryrun", "-filter", "x", "-namespace", "lab", "/v1/jobs")
	got := f.run(t, "operator", "api", "-X", "DELETE", "/v1/job/a")
	if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, "not yours\n403 Forbidden") {
		t.Errorf("refused: exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	got = f.run(t, "operator", "api", "-verbose", "/v1/jobs")
	wants(t, got.err, "200 OK", "X-Nomad-Index: 7")
	for _, bad := range [][]string{{}, {"a", "b"}, {"-H", "nope", "/v1/jobs"}, {"-d", "@/nonexistent/x", "/v1/jobs"}, {"%zz"}} {
		if got := f.run(t, append([]string{"operator", "api"}, bad...)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
}

func TestSchedulerSetConfig(t *testing.T) {
	f := cluster(t).on("PUT /v1/operator/scheduler/configuration", map[string]any{"Updated": true}, map[string]any{"Updated": false})
	got := f.run(t, "operator", "scheduler", "set-config", "-scheduler-algorithm", "spread", "-preempt-batch-scheduler=true")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	// What was not named stays, and nobody else's change is written over.
	wants(t, f.lastBody(), `"SchedulerAlgorithm":"spread"`, `"BatchSchedulerEnabled":true`, `"PauseEvalBroker":true`)
	wants(t, f.requests("PUT")[0], "cas=9")
	got = f.run(t, "operator", "scheduler", "set-config", "-pause-eval-broker=false", "-check-index", "5")
	if got.code != exitFailed || !strings.Contains(got.err, "has changed since") {
		t.Errorf("overtaken: exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, f.requests("PUT")[1], "cas=5")
	wants(t, f.lastBody(), `"PauseEvalBroker":false`)
	refused := func(want string, args ...string) {
		t.Helper()
		got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if got.code != exitFailed {
			t.Errorf("%q: exit code %d", args, got.code)
		}
		wants(t, got.err, want)
	}
	refused("nothing to change is named")
	refused("nothing to change is named", "-check-index", "5")
	refused("allowed are", "-scheduler-algorithm", "best")
	refused("written after =", "-pause-eval-broker", "false")
}

func TestMissingIsNotUnreachable(t *testing.T) {
	_, err := cluster(t).one(t).oneNode(t.Context(), "nope")
	var nobody *api.Unreachable
	if err == nil || errors.As(err, &nobody) {
		t.Errorf("error %v", err)
	}
}

// one is the environment of a command that asks f.
func (f *fake) one(t *testing.T) *env {
	t.Helper()
	c, err := api.New(api.Config{Address: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &env{client: c}
}

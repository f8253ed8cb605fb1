// Nomadapi runs the tests of the public client module github.com/hashicorp/nomad/api, as they are, against our binary. Their
// harness starts a program `nomad` that it finds in PATH, which is ours here.
//
// What they must come to is in two lists beside this file: the tests that pass, and those that do not yet, with what each waits
// for. It ends with status 1 if a test of the first list fails, if one of the second passes (it belongs into the first), or if
// one is in neither. A test that ends the process of all, as one does that fails after its end, costs only time (see rounds);
// all together have a limit.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const module = "github.com/hashicorp/nomad/api"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nomadapi:", err)
		os.Exit(1)
	}
}

// suite is the module's tests, compiled, and where they run.
type suite struct {
	dir  string // of the module
	tmp  string
	bin  string // the compiled tests
	env  []string
	keep io.Writer // gets all that they print
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("nomadapi", flag.ContinueOnError)
	bin := flags.String("bin", "", "the `program` to test, by its absolute path")
	root := flags.String("root", "..", "the `directory` of the Go module that pins "+module)
	passing := flags.String("passing", "nomadapi/passing.txt", "the `file` that lists the tests that pass")
	waiting := flags.String("waiting", "nomadapi/waiting.txt", "the `file` that lists the others, and what each waits for")
	least := flags.Int("least", 0, "the `number` of tests that the first list must have")
	parallel := flags.Int("parallel", 6, "how many tests run at once")
	logFile := flags.String("log", "", "a `file` for all that the tests print")
	limit := flags.Duration("limit", 8*time.Minute, "end them all after this `time`, and say which did not run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	want, err := readLists(*passing, *waiting)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("stopped after the -limit of %s", *limit))
	defer cancel()
	s, err := prepare(ctx, *root, *bin)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.tmp) }()
	if *logFile != "" {
		f, err := os.Create(*logFile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		s.keep = f
	}
	began := time.Now()
	r := &rounds{test: s.test, out: out, got: map[string]result{}}
	failed := r.both(ctx, s, want, *parallel)
	wrong := want.judge(r.got)
	if n := len(want.passing); n < *least {
		wrong = append(wrong, fmt.Sprintf("the list of those that pass has %d tests, and must have %d at least", n, *least))
	}
	fmt.Fprintf(out, "%s: %s, in %d s\n", module, count(r.got), int(time.Since(began).Seconds()))
	for _, line := range wrong {
		fmt.Fprintln(out, line)
	}
	if failed != nil {
		return failed
	}
	if len(wrong) > 0 {
		return errors.New("the tests did not come to what the lists say")
	}
	return nil
}

// maxAgain is how many tests run once more at most, one by one.
const maxAgain = 20

// both runs all tests, and once more those that should have passed and did not: the tests draw their ports and then let go of
// them, so that another program may have them by the time the agent starts.
func (r *rounds) both(ctx context.Context, s *suite, want *lists, parallel int) error {
	names, err := s.list(ctx)
	if err != nil {
		return err
	}
	// What passes only sometimes counts milliseconds, and what it leaves behind may end the process of all.
	if err := r.all(ctx, names, want.sometimes, parallel); err != nil {
		return err
	}
	again := want.failed(r.got)
	if len(again) > maxAgain {
		return nil // it is not their ports
	}
	if len(again) > 0 {
		fmt.Fprintf(r.out, "run once more by themselves, as they did not pass: %s\n", strings.Join(again, " "))
	}
	return r.alone(ctx, again, names)
}

// prepare copies the module, which stands read-only in Go's cache, compiles its tests and links the program as nomad.
func prepare(ctx context.Context, root, bin string) (*suite, error) {
	if _, err := os.Stat(bin); err != nil || !filepath.IsAbs(bin) {
		return nil, errors.Join(fmt.Errorf("-bin %q: must be the absolute path of a program", bin), err)
	}
	find := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	find.Dir, find.Stderr = root, os.Stderr
	from, err := find.Output()
	if err != nil {
		return nil, fmt.Errorf("find module %s: %w", module, err)
	}
	tmp, err := os.MkdirTemp("", "nomadapi")
	if err != nil {
		return nil, err
	}
	s := &suite{dir: filepath.Join(tmp, "api"), tmp: tmp, bin: filepath.Join(tmp, "api.test"), keep: io.Discard}
	if err := s.fill(ctx, strings.TrimSpace(string(from)), bin); err != nil {
		_ = os.RemoveAll(tmp)
		return nil, err
	}
	return s, nil
}

func (s *suite) fill(ctx context.Context, from, bin string) error {
	if err := os.CopyFS(s.dir, os.DirFS(from)); err != nil {
		return err
	}
	path, data := filepath.Join(s.tmp, "path"), filepath.Join(s.tmp, "data")
	if err := errors.Join(os.Mkdir(path, 0o755), os.Mkdir(data, 0o755), os.Symlink(bin, filepath.Join(path, "nomad"))); err != nil {
		return err
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NOMAD_") && !strings.HasPrefix(v, "TMPDIR=") && !strings.HasPrefix(v, "PATH=") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+data)
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.bin, ".")
	compile.Dir, compile.Stdout, compile.Stderr = s.dir, os.Stderr, os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("compile the tests of %s: %w", module, cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

// list names the tests.
func (s *suite) list(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, s.bin, "-test.list=^Test")
	cmd.Dir, cmd.Env = s.dir, s.env
	text, err := cmd.Output()
	if names := strings.Fields(string(text)); err == nil && len(names) > 0 {
		return names, nil
	}
	return nil, fmt.Errorf("list the tests of %s: %w\n%s", module, cmp.Or(context.Cause(ctx), err, errors.New("there are none")), text)
}

// test is a tester. All that the tests start ends with them.
func (s *suite) test(ctx context.Context, names []string, parallel int) (round, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", s.bin, "-test.v=test2json", "-test.timeout=20m",
		fmt.Sprintf("-test.parallel=%d", parallel), "-test.run=^("+strings.Join(names, "|")+")$")
	var text bytes.Buffer
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, s.keep), s.keep
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second // a test that did not stop its agent leaves it with our pipe
	if err := cmd.Start(); err != nil {
		return round{}, cmp.Or(context.Cause(ctx), err)
	}
	err := cmd.Wait() // that tests failed is in what they printed
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	did := parse(text.Bytes())
	if ctx.Err() == nil && len(did.got) == 0 {
		return did, fmt.Errorf("no test ran: %w\n%s", err, text.Bytes())
	}
	return did, context.Cause(ctx)
}

// sorted returns the names of a map in order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

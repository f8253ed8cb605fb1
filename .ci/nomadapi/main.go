// Nomadapi runs the tests of the public client module github.com/hashicorp/nomad/api, as they are, against our binary. Their
// harness starts a program `nomad` that it finds in PATH, which is ours here.
//
// What they must come to is in two lists beside this file: the tests that pass, and those that do not yet, with what each waits
// for. It ends with status 1 if a test of the first list fails, if one of the second passes (it belongs into the first), or if
// one is in neither.
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
	if err := flags.Parse(args); err != nil {
		return err
	}
	want, err := readLists(*passing, *waiting)
	if err != nil {
		return err
	}
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
	got, err := s.test(ctx, "", *parallel)
	if err != nil {
		return err
	}
	// The tests draw their ports and then let go of them, so that another program may have them by the time the agent
	// starts. Those that should have passed run once more, one by one.
	if again := want.failed(got); len(again) > 0 {
		fmt.Fprintf(out, "failed among the others, run once more by themselves: %s\n", strings.Join(again, " "))
		second, err := s.test(ctx, "^("+strings.Join(again, "|")+")$", 1)
		if err != nil {
			return err
		}
		for name, r := range second {
			got[name] = r
		}
	}
	wrong := want.judge(got)
	if n := len(want.passing); n < *least {
		wrong = append(wrong, fmt.Sprintf("the list of those that pass has %d tests, and must have %d at least", n, *least))
	}
	fmt.Fprintf(out, "%s: %s, in %d s\n", module, count(got), int(time.Since(began).Seconds()))
	for _, line := range wrong {
		fmt.Fprintln(out, line)
	}
	if len(wrong) > 0 {
		return errors.New("the tests did not come to what the lists say")
	}
	return nil
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
		return fmt.Errorf("compile the tests of %s: %w", module, err)
	}
	return nil
}

// test runs the tests that match a regular expression and returns how each ended. All that they start ends with them.
func (s *suite) test(ctx context.Context, match string, parallel int) (map[string]result, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", s.bin, "-test.v=test2json", "-test.timeout=8m",
		fmt.Sprintf("-test.parallel=%d", parallel), "-test.run="+cmp.Or(match, "."))
	var text bytes.Buffer
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, s.keep), s.keep
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second // a test that did not stop its agent leaves it with our pipe
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err := cmd.Wait() // that tests failed is in what they printed
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	got := parse(text.Bytes())
	if len(got) == 0 {
		return nil, fmt.Errorf("no test ran: %w\n%s", err, text.Bytes())
	}
	return got, nil
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

package executor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
	"github.com/nomadish/nomadish/internal/leaks"
)

// The test binary is also the executor, and some of the tasks.
const (
	asExecutor = "EXECUTOR_TEST_MAIN"
	asTask     = "EXECUTOR_TEST_TASK"
)

func TestMain(m *testing.M) {
	switch os.Getenv(asTask) {
	case "lines":
		writeLines()
		os.Exit(0)
	case "flood":
		flood()
	}
	if os.Getenv(asExecutor) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stderr))
	}
	leaks.Main(m)
}

// writeLines writes COUNT numbered lines to stdout; or, slowly, ever more until
// the file UNTIL exists. It says on stderr how many it wrote.
func writeLines() {
	count, _ := strconv.Atoi(os.Getenv("COUNT"))
	until := os.Getenv("UNTIL")
	w := bufio.NewWriterSize(os.Stdout, 1000) // so that writes cut lines
	i := 0
	for ; i < count || until != ""; i++ {
		_, _ = fmt.Fprintf(w, "line %07d\n", i)
		if until == "" || i%100 != 99 {
			continue
		}
		time.Sleep(time.Millisecond)
		if exists(until) {
			i++
			break
		}
	}
	if w.Flush() != nil {
		os.Exit(9)
	}
	fmt.Fprint(os.Stderr, i)
}

// flood writes as fast as it can and says on stderr each time it got a megabyte out.
func flood() {
	mb := bytes.Repeat([]byte("x"), 1<<20)
	for {
		if _, err := os.Stdout.Write(mb); err != nil {
			os.Exit(9)
		}
		fmt.Fprintln(os.Stderr, "mb")
	}
}

// executorCommand makes the test binary an executor.
func executorCommand(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector would keep each of them for a second at its end.
	return []string{"/usr/bin/env", asExecutor + "=1", "GORACE=atexit_sleep_ms=0", self}
}

type fixture struct {
	*Client
	t    testing.TB
	dir  string // the executor's
	logs string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: filepath.Join(t.TempDir(), "executor"), logs: t.TempDir()}
	f.connect()
	t.Cleanup(func() { f.tearDown() })
	return f
}

// connect is the start of an agent.
func (f *fixture) connect() {
	f.t.Helper()
	var err error
	f.Client, err = NewClient(Config{Dir: f.dir, Command: executorCommand(f.t)})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tearDown() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	all, err := f.List(ctx)
	if err != nil {
		f.t.Error(err)
	}
	for _, s := range all {
		if _, err := f.Stop(ctx, s.ID, unix.SIGKILL, 0); err != nil {
			f.t.Error(err)
		}
		if err := f.Forget(ctx, s.ID); err != nil {
			f.t.Error(err)
		}
	}
	pid, err := f.Ensure(ctx)
	if err != nil {
		f.t.Error(err)
	}
	if err := f.Shutdown(ctx); err != nil {
		f.t.Error(err)
	}
	_ = f.Close()
	gone(f.t, pid)
	if f.t.Failed() {
		data, _ := os.ReadFile(filepath.Join(f.dir, logName))
		f.t.Logf("executor's log:\n%s", data)
	}
}

// gone waits for the end of a process that is not a child of the test's.
func gone(t testing.TB, pid int) {
	t.Helper()
	eventually(t, func() bool {
		st, err := readStat(pid)
		return err != nil || st.state == 'Z'
	}, "process %d is still there", pid)
}

// eventually looks until cond holds; it is for what only /proc or a file can tell.
func eventually(t testing.TB, cond func() bool, format string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf(format, args...)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (f *fixture) spec(id string, command ...string) *Spec {
	return &Spec{
		ID: id, Command: command[0], Args: command[1:], Dir: f.logs,
		Env:  []string{"PATH=" + os.Getenv("PATH")},
		Logs: LogSpec{Dir: f.logs, Task: strings.ReplaceAll(id, "/", "_"), MaxFiles: 10, MaxFileBytes: 1 << 20},
	}
}

func (f *fixture) sh(id, script string) *Spec { return f.spec(id, "/bin/sh", "-c", script) }

// self is a task that this test binary is.
func (f *fixture) self(id, what string, env ...string) *Spec {
	exe, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	s := f.spec(id, exe)
	s.Env = append(s.Env, asTask+"="+what)
	s.Env = append(s.Env, env...)
	return s
}

func (f *fixture) start(s *Spec) Status {
	f.t.Helper()
	st, err := f.Start(f.t.Context(), s)
	if err != nil {
		f.t.Fatal(err)
	}
	return st
}

func (f *fixture) wait(id string) Exit {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	st, err := f.Wait(ctx, id)
	if err != nil {
		f.t.Fatal(err)
	}
	return *st.Exit
}

func (f *fixture) output(id, stream string) string {
	f.t.Helper()
	var b strings.Builder
	src := logs.Source{Dir: f.logs, Task: strings.ReplaceAll(id, "/", "_"), Stream: stream}
	err := logs.Read(f.t.Context(), src, logs.Options{}, func(c logs.Chunk) error {
		b.Write(c.Data)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return b.String()
}

// untilOutput waits until the task has written at least n bytes.
func (f *fixture) untilOutput(id, stream string, n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	enough := errors.New("enough")
	src := logs.Source{Dir: f.logs, Task: strings.ReplaceAll(id, "/", "_"), Stream: stream}
	err := logs.Follow(ctx, src, logs.Options{}, func(c logs.Chunk) error {
		if n -= len(c.Data); n <= 0 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		f.t.Fatal(err)
	}
}

func (f *fixture) killExecutor() {
	f.t.Helper()
	pid, err := f.Ensure(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	gone(f.t, pid)
}

func checkLines(t testing.TB, got string, count int) {
	t.Helper()
	for i := range count {
		want := fmt.Sprintf("line %07d\n", i)
		if !strings.HasPrefix(got, want) {
			t.Fatalf("expected %q, got %.60q", want, got)
		}
		got = got[len(want):]
	}
	if got != "" {
		t.Fatalf("more than was written: %.60q", got)
	}
}

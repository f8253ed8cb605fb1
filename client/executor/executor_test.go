package executor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
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
	// The race detector would keep each of them for a second at its end.
	for k, v := range map[string]string{asExecutor: "1", "GORACE": "atexit_sleep_ms=0"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// writeLines writes COUNT numbered lines to stdout; or, slowly, ever more until
// the file UNTIL exists. It says on stderr how many it wrote.
func writeLines() {
	count, _ := strconv.Atoi(os.Getenv("COUNT"))
	until := os.Getenv("UNTIL")
	w := bufio.NewWriterSize(os.Stdout, 1000) // so that writes cut lines
	i := 0
	for ; i < count || until != ""; i++ {
		fmt.Fprintf(w, "line %07d\n", i)
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

type fixture struct {
	*Client
	t    *testing.T
	dir  string // the executor's
	logs string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: filepath.Join(t.TempDir(), "executor"), logs: t.TempDir()}
	f.connect()
	t.Cleanup(func() { f.tearDown() })
	return f
}

// connect is the start of an agent.
func (f *fixture) connect() {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	f.Client, err = NewClient(Config{Dir: f.dir, Command: []string{self}})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tearDown() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
	_ = f.Client.Close()
	gone(f.t, pid)
	if f.t.Failed() {
		data, _ := os.ReadFile(filepath.Join(f.dir, logName))
		f.t.Logf("executor's log:\n%s", data)
	}
}

// gone waits for the end of a process that is not a child of the test's.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, func() bool {
		st, err := readStat(pid)
		return err != nil || st.state == 'Z'
	}, "process %d is still there", pid)
}

// eventually looks until cond holds; it is for what only /proc or a file can tell.
func eventually(t *testing.T, cond func() bool, format string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); {
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
	ctx, cancel := context.WithTimeout(f.t.Context(), 60*time.Second)
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
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
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

func checkLines(t *testing.T, got string, count int) {
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

func TestExit(t *testing.T) {
	f := newFixture(t)
	n := 0
	check := func(script string, want Exit, out string) {
		t.Helper()
		n++
		id := fmt.Sprintf("alloc/%d/web", n)
		f.start(f.sh(id, script))
		got := f.wait(id)
		if got.FinishedAt.IsZero() {
			t.Errorf("%s: no time of end", script)
		}
		got.FinishedAt = time.Time{}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", script, got, want)
		}
		if o := f.output(id, logs.Stdout); o != out {
			t.Errorf("%s: wrote %q, want %q", script, o, out)
		}
	}
	check("exit 0", Exit{}, "")
	check("exit 3", Exit{Code: 3}, "")
	check("echo hello; exit 255", Exit{Code: 255}, "hello\n")
	check("kill -TERM $$", Exit{Signal: int(unix.SIGTERM)}, "")
	check("kill -KILL $$", Exit{Signal: int(unix.SIGKILL)}, "")
	// Its own standard output can be opened by name, as some programs do.
	check("echo a > /dev/stdout; echo b >> /proc/self/fd/1", Exit{}, "a\nb\n")
	check("cat", Exit{}, "") // stdin is empty
	check("echo x; exec >/dev/null; echo y", Exit{}, "x\n")
	check("trap", Exit{}, "") // no signal is ignored from birth
	check(`cat /proc/self/status | grep -E "SigIgn|SigBlk" | cut -f2 | sort -u`, Exit{}, "0000000000000000\n")
}

func TestStderrIsApart(t *testing.T) {
	f := newFixture(t)
	f.start(f.sh("a", "echo out; echo err >&2"))
	f.wait("a")
	if o, e := f.output("a", logs.Stdout), f.output("a", logs.Stderr); o != "out\n" || e != "err\n" {
		t.Fatalf("stdout %q, stderr %q", o, e)
	}
}

func TestLogsDisabled(t *testing.T) {
	f := newFixture(t)
	s := f.sh("a", "echo out; exit 4")
	s.Logs = LogSpec{Disabled: true}
	f.start(s)
	if e := f.wait("a"); e.Code != 4 {
		t.Fatalf("%+v", e)
	}
	if entries, _ := os.ReadDir(f.logs); len(entries) != 0 {
		t.Fatalf("files: %v", entries)
	}
}

func TestStartFails(t *testing.T) {
	f := newFixture(t)
	bad := filepath.Join(f.logs, "bad")
	if err := os.WriteFile(bad, []byte("neither"), 0o700); err != nil {
		t.Fatal(err)
	}
	noLoader := filepath.Join(f.logs, "script")
	if err := os.WriteFile(noLoader, []byte("#!/none/such\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(is error, word string, change func(s *Spec)) {
		t.Helper()
		s := f.sh("a", "exit 0")
		change(s)
		_, err := f.Start(t.Context(), s)
		if !errors.Is(err, is) || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %v with %q", err, is, word)
		}
	}
	check(ErrStart, "no such file", func(s *Spec) { s.Command = "/none/such" })
	check(ErrStart, "#!", func(s *Spec) { s.Command = bad })
	check(ErrStart, "interpreter", func(s *Spec) { s.Command = noLoader })
	check(ErrStart, "working directory", func(s *Spec) { s.Dir = "/none/such" })
	check(ErrStart, "nobody-of-that-name", func(s *Spec) { s.User = "nobody-of-that-name" })
	check(ErrStart, "log", func(s *Spec) { s.Logs.Dir = "/none/such" })
	check(ErrStart, "cgroup", func(s *Spec) { s.CgroupV2 = "/none/such" })
	check(ErrInvalid, "absolute", func(s *Spec) { s.Command = "sh" })
	check(ErrInvalid, "absolute", func(s *Spec) { s.Dir = "" })
	check(ErrInvalid, "ID", func(s *Spec) { s.ID = "" })
	check(ErrInvalid, "ID", func(s *Spec) { s.ID = strings.Repeat("x", 201) })
	check(ErrInvalid, "zero byte", func(s *Spec) { s.Env = []string{"A=\x00"} })
	check(ErrInvalid, "2097152", func(s *Spec) { s.Args = []string{strings.Repeat("x", 3<<20)} })
	check(ErrInvalid, "both must be", func(s *Spec) { s.Logs.MaxFiles = 0 })
	check(ErrInvalid, "task's name", func(s *Spec) { s.Logs.Task = "../x" })
	check(ErrInvalid, "oom_score_adj", func(s *Spec) { s.OOMScoreAdj = 1001 })

	// Nothing stays of them: the ID is free, and the list empty.
	if all, err := f.List(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("%v %v", all, err)
	}
	f.start(f.sh("a", "exit 7"))
	if e := f.wait("a"); e.Code != 7 {
		t.Fatalf("%+v", e)
	}
}

func TestUnknownTask(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	check := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := f.Status(ctx, "x")
	check("status", err)
	_, err = f.Wait(ctx, "x")
	check("wait", err)
	_, err = f.Client.Stop(ctx, "x", unix.SIGINT, 0)
	check("stop", err)
	_, err = f.Stats(ctx, "x")
	check("stats", err)
	check("signal", f.Signal(ctx, "x", unix.SIGINT))
	if err := f.Forget(ctx, "x"); err != nil {
		t.Errorf("forget: %v", err)
	}
}

func TestStartTwice(t *testing.T) {
	f := newFixture(t)
	a := f.start(f.sh("a", "sleep 100"))
	if b := f.start(f.sh("a", "sleep 200")); b.Pid != a.Pid || b.State != StateRunning {
		t.Fatalf("%+v, then %+v", a, b)
	}
	if err := f.Forget(t.Context(), "a"); !errors.Is(err, ErrRunning) {
		t.Fatal(err)
	}
	if err := f.Shutdown(t.Context()); !errors.Is(err, ErrRunning) {
		t.Fatal(err)
	}
	if err := f.Signal(t.Context(), "a", unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.wait("a")
	if err := f.Signal(t.Context(), "a", unix.SIGKILL); !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
	if c := f.start(f.sh("a", "sleep 200")); c.Pid != a.Pid || c.State != StateExited {
		t.Fatalf("%+v", c)
	}
	if err := f.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if d := f.start(f.sh("a", "sleep 200")); d.Pid == a.Pid || d.State != StateRunning {
		t.Fatalf("%+v", d)
	}
}

func TestStop(t *testing.T) {
	f := newFixture(t)
	check := func(id, script string, sig unix.Signal, timeout time.Duration, want Exit) {
		t.Helper()
		f.start(f.sh(id, script+"; echo ready; while :; do sleep 0.01; done"))
		f.untilOutput(id, logs.Stdout, len("ready\n"))
		st, err := f.Client.Stop(t.Context(), id, sig, timeout)
		if err != nil {
			t.Fatal(err)
		}
		got := *st.Exit
		got.FinishedAt = time.Time{}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
	long := time.Hour
	check("default", ":", unix.SIGINT, long, Exit{Signal: int(unix.SIGINT)})
	check("handled", "trap 'exit 5' TERM", unix.SIGTERM, long, Exit{Code: 5})
	check("deaf", "trap '' INT", unix.SIGINT, 50*time.Millisecond, Exit{Signal: int(unix.SIGKILL)})
	check("at once", "trap '' INT", unix.SIGINT, 0, Exit{Signal: int(unix.SIGKILL)})

	// Stopping again with less patience counts; so does a context that ends.
	f.start(f.sh("twice", "trap '' INT; echo ready; while :; do sleep 0.01; done"))
	f.untilOutput("twice", logs.Stdout, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := f.Client.Stop(ctx, "twice", unix.SIGINT, long); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if st, err := f.Client.Stop(t.Context(), "twice", unix.SIGINT, time.Millisecond); err != nil || st.Exit.Signal != int(unix.SIGKILL) {
		t.Fatalf("%+v %v", st, err)
	}
	if st, err := f.Client.Stop(t.Context(), "twice", unix.SIGINT, 0); err != nil || st.State != StateExited {
		t.Fatalf("stop of an ended task: %+v %v", st, err)
	}
}

// Everything that a task started goes with it: its group, and what left it.
func TestNothingIsLeft(t *testing.T) {
	f := newFixture(t)
	check := func(id, end string) {
		t.Helper()
		pids := filepath.Join(f.logs, id+"-pids")
		f.start(f.sh(id, `
			trap '' HUP INT TERM
			sleep 1000 & echo $! >> `+pids+`
			setsid sh -c 'trap "" HUP INT TERM; echo $$ >> `+pids+`; sleep 1000 & echo $! >> `+pids+`; wait' &
			(setsid sh -c 'setsid sleep 1000 & echo $! >> `+pids+`' &)
			while [ $(wc -l < `+pids+`) -lt 4 ]; do sleep 0.01; done
			echo ready
			`+end))
		f.untilOutput(id, logs.Stdout, 1)
		if end == "wait" {
			if _, err := f.Client.Stop(t.Context(), id, unix.SIGINT, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		f.wait(id)
		data, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range strings.Fields(string(data)) {
			pid, _ := strconv.Atoi(p)
			if hasMarker(pid, id) {
				t.Errorf("%s: process %d is left", id, pid)
			}
		}
	}
	check("exits", "exit 0")
	check("stopped", "wait")
}

// The agent goes away while one task runs and another one ends.
func TestAgentComesBack(t *testing.T) {
	f := newFixture(t)
	stays := f.start(f.sh("stays", "while :; do sleep 0.01; done"))
	flag := filepath.Join(f.logs, "go")
	f.start(f.sh("ends", "while [ ! -e "+flag+" ]; do sleep 0.01; done; echo bye; exit 42"))
	before, err := f.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Wait(t.Context(), "ends"); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(taskDir(f.dir, "ends"), recordName)
	eventually(t, func() bool {
		data, err := os.ReadFile(record)
		return err == nil && bytes.Contains(data, []byte(StateExited))
	}, "the end was not written down")
	f.connect()
	after, err := f.Ensure(t.Context())
	if err != nil || after != before {
		t.Fatalf("executor %d, then %d, %v", before, after, err)
	}
	if e := f.wait("ends"); e.Code != 42 || e.Unknown {
		t.Fatalf("%+v", e)
	}
	if o := f.output("ends", logs.Stdout); o != "bye\n" {
		t.Fatalf("%q", o)
	}
	st, err := f.Status(t.Context(), "stays")
	if err != nil || st.State != StateRunning || st.Pid != stays.Pid || st.StartTicks != stays.StartTicks || st.Adopted {
		t.Fatalf("%+v %v", st, err)
	}
}

// The executor is killed again and again while a task writes: the task goes on,
// and not a byte is missing or twice.
func TestExecutorKilled(t *testing.T) {
	f := newFixture(t)
	flag := filepath.Join(t.TempDir(), "enough")
	s := f.self("a", "lines", "UNTIL="+flag)
	s.Logs.MaxFileBytes = 50_000
	s.Logs.MaxFiles = 1000
	first := f.start(s)
	ended := f.start(f.sh("ended before", "exit 6"))
	f.wait("ended before")
	for i := range 5 {
		f.untilOutput("a", logs.Stdout, (i+1)*20_000)
		f.killExecutor()
		// What the Wait for a running task does by itself in an agent.
		if _, err := f.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	st, err := f.Status(t.Context(), "a")
	if err != nil || st.State != StateRunning || st.Pid != first.Pid || !st.Adopted {
		t.Fatalf("%+v %v", st, err)
	}
	if st, err := f.Stats(t.Context(), "a"); err != nil || st.Pids[0] != first.Pid {
		t.Fatalf("%+v %v", st, err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := f.wait("a")
	if !e.Unknown && e.Code != 0 || e.Unknown && e.Reason == "" {
		t.Fatalf("%+v", e)
	}
	count, err := strconv.Atoi(f.output("a", logs.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	checkLines(t, f.output("a", logs.Stdout), count)
	if st, err := f.Status(t.Context(), "ended before"); err != nil || st.Exit == nil || st.Exit.Code != 6 || st.Pid != ended.Pid {
		t.Fatalf("%+v %v", st, err)
	}
}

// A task that ends while there is no executor: its end is found, its last words
// too, since the agent held its pipes.
func TestEndsWithoutExecutor(t *testing.T) {
	f := newFixture(t)
	flag := filepath.Join(f.logs, "go")
	st := f.start(f.sh("a", "while [ ! -e "+flag+" ]; do sleep 0.01; done; echo last words"))
	f.killExecutor()
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone(t, st.Pid)
	e := f.wait("a")
	if !e.Unknown || !strings.Contains(e.Reason, "no executor") {
		t.Fatalf("%+v", e)
	}
	if o := f.output("a", logs.Stdout); o != "last words\n" {
		t.Fatalf("%q", o)
	}
}

// An adopted task can be stopped like any other, with what it started.
func TestStopAdopted(t *testing.T) {
	f := newFixture(t)
	f.start(f.sh("a", "trap '' INT; sleep 1000 & (setsid sleep 1000 &); echo ready; while :; do sleep 0.01; done"))
	f.untilOutput("a", logs.Stdout, 1)
	f.killExecutor()
	st, err := f.Client.Stop(t.Context(), "a", unix.SIGINT, 10*time.Millisecond)
	if err != nil || st.Exit == nil {
		t.Fatalf("%+v %v", st, err)
	}
	procs, err := allProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if p.state != 'Z' && hasMarker(p.pid, "a") && p.session != p.pid {
			t.Errorf("process %d is left", p.pid)
		}
	}
}

func TestManyLinesRotated(t *testing.T) {
	f := newFixture(t)
	const count = 1_000_000
	s := f.self("a", "lines", fmt.Sprintf("COUNT=%d", count))
	s.Logs.MaxFileBytes = 100_003
	s.Logs.MaxFiles = 1000
	f.start(s)
	if e := f.wait("a"); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	checkLines(t, f.output("a", logs.Stdout), count)
}

// Neither an agent that is gone nor files that cannot be written hold a task up.
func TestNeverBlocks(t *testing.T) {
	f := newFixture(t)
	s := f.self("a", "flood")
	s.Logs.MaxFiles = 2
	parent := t.TempDir()
	s.Logs.Dir = filepath.Join(parent, "logs")
	if err := os.Mkdir(s.Logs.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.logs = s.Logs.Dir
	s.Dir = "/"
	f.start(s)
	f.untilOutput("a", logs.Stderr, 3*20)
	if err := f.Client.Close(); err != nil {
		t.Fatal(err)
	}
	f.untilOutput("a", logs.Stderr, 3*40)
	// Without the directory no next file can be begun.
	away := filepath.Join(parent, "away")
	if err := os.Rename(s.Logs.Dir, away); err != nil {
		t.Fatal(err)
	}
	f.logs = away
	f.untilOutput("a", logs.Stderr, 3*80)
	f.connect()
	eventually(t, func() bool {
		st, err := f.Status(t.Context(), "a")
		return err == nil && st.Dropped > 10<<20
	}, "nothing is counted as dropped")
	// The files say so as soon as they can be written again.
	if err := f.Signal(t.Context(), "a", unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, s.Logs.Dir); err != nil {
		t.Fatal(err)
	}
	f.logs = s.Logs.Dir
	st, err := f.Client.Stop(t.Context(), "a", unix.SIGKILL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if o := f.output("a", logs.Stdout); !strings.Contains(o, fmt.Sprintf("%d bytes of output are missing here", st.Dropped)) {
		t.Fatalf("the files do not say that %d bytes are missing: ...%q", st.Dropped, o[max(0, len(o)-200):])
	}
}

func TestHundredAtOnce(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			id := strconv.Itoa(i)
			if _, err := f.Start(t.Context(), f.spec(id, "/bin/true")); err != nil {
				t.Error(err)
				return
			}
			if st, err := f.Wait(t.Context(), id); err != nil || st.Exit.Code != 0 {
				t.Errorf("%+v %v", st, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	t.Logf("100 processes from start to known exit: %v", took)
	// Twenty times what it takes on two idle cores; a hang or a poll shows.
	if took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestStats(t *testing.T) {
	f := newFixture(t)
	st := f.start(f.sh("a", "sleep 1000 & echo ready; while :; do :; done"))
	f.untilOutput("a", logs.Stdout, 1)
	eventually(t, func() bool {
		s, err := f.Stats(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Pids) == 2 && s.Pids[0] == st.Pid && s.CPUUser+s.CPUSystem > 0 && s.RSS > 10<<10
	}, "no sensible figures")
	if _, err := f.Client.Stop(t.Context(), "a", unix.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Stats(t.Context(), "a"); !errors.Is(err, ErrNotRunning) {
		t.Fatal(err)
	}
}

func TestUser(t *testing.T) {
	f := newFixture(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	users := []string{me.Username, me.Uid}
	if os.Geteuid() == 0 {
		users = append(users, "nobody") // only root can be somebody else
	}
	for _, name := range users {
		s := f.sh(name, "id -u; echo again > /dev/stdout")
		s.User, s.Dir = name, "/"
		f.start(s)
		f.wait(name)
		want, err := user.Lookup(name)
		if err != nil {
			want = me
		}
		if o := f.output(name, logs.Stdout); o != want.Uid+"\nagain\n" {
			t.Errorf("%s: %q %q", name, o, f.output(name, logs.Stderr))
		}
	}
}

func TestExecutorEndsWhenIdle(t *testing.T) {
	f := newFixture(t)
	f.cfg.IdleTimeout = 50 * time.Millisecond
	pid, err := f.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.start(f.sh("a", "exit 8"))
	f.wait("a")
	if err := f.Client.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	f.connect()
	// A new one knows what the old one saw.
	if e := f.wait("a"); e.Code != 8 {
		t.Fatalf("%+v", e)
	}
}

func TestTermWaitsForTasks(t *testing.T) {
	f := newFixture(t)
	f.start(f.sh("a", "sleep 1000"))
	pid, err := f.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if st, err := f.Status(t.Context(), "a"); err != nil || st.State != StateRunning {
		t.Fatalf("%+v %v", st, err)
	}
	if err := f.Signal(t.Context(), "a", unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	if e := f.wait("a"); e.Signal != int(unix.SIGKILL) {
		t.Fatalf("%+v", e)
	}
}

// Many agents at once start one executor.
func TestOnlyOneExecutor(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	pids := map[int]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := NewClient(f.cfg)
			if err != nil {
				t.Error(err)
				return
			}
			pid, err := c.Ensure(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			pids[pid] = true
			mu.Unlock()
			_ = c.Close()
		})
	}
	wg.Wait()
	if len(pids) != 1 {
		t.Fatalf("executors: %v", pids)
	}
}

func TestExecutorDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Config{Dir: filepath.Join(file, "executor"), Command: []string{self}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
}

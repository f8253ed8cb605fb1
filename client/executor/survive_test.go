package executor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

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
	if err := f.Close(); err != nil {
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
	st, err := f.Stop(t.Context(), "a", unix.SIGINT, 10*time.Millisecond)
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

func TestExecutorEndsWhenIdle(t *testing.T) {
	f := newFixture(t)
	f.cfg.IdleTimeout = 50 * time.Millisecond
	pid, err := f.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.start(f.sh("a", "exit 8"))
	f.wait("a")
	if err := f.Close(); err != nil {
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
	c, err := NewClient(Config{Dir: filepath.Join(file, "executor"), Command: executorCommand(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
}

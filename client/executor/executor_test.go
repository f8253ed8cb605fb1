package executor

import (
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

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

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
	// None is blocked either, but for those above 31: the C library's own, which it
	// may hold while it makes a process.
	check(`cat /proc/self/status | grep -E "SigIgn|SigBlk" | cut -f2 | cut -c9- | sed "s/^[08]/0/" | sort -u`, Exit{}, "00000000\n")
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
	_, err = f.Stop(ctx, "x", unix.SIGINT, 0)
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
		st, err := f.Stop(t.Context(), id, sig, timeout)
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
	if _, err := f.Stop(ctx, "twice", unix.SIGINT, long); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if st, err := f.Stop(t.Context(), "twice", unix.SIGINT, time.Millisecond); err != nil || st.Exit.Signal != int(unix.SIGKILL) {
		t.Fatalf("%+v %v", st, err)
	}
	if st, err := f.Stop(t.Context(), "twice", unix.SIGINT, 0); err != nil || st.State != StateExited {
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
			if _, err := f.Stop(t.Context(), id, unix.SIGINT, 10*time.Millisecond); err != nil {
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
	if err := f.Close(); err != nil {
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
	st, err := f.Stop(t.Context(), "a", unix.SIGKILL, 0)
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
	if _, err := f.Stop(t.Context(), "a", unix.SIGKILL, 0); err != nil {
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

package executor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

// A family of four: a shell, its child that left the session and a child of that, and
// one that was left by its parent. All write ever on; the shell ends well on SIGTERM.
const family = `
	trap 'echo bye; exit 5' TERM
	setsid sh -c 'sh -c "while :; do echo a; sleep 0.01; done" & while :; do echo b; sleep 0.01; done' &
	(setsid sh -c 'while :; do echo c; sleep 0.01; done' &)
	while :; do echo d; sleep 0.01; done`

// livesOf returns the states of all processes of a task, found by their mark.
func livesOf(t *testing.T, id string) (states string) {
	t.Helper()
	procs, err := allProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if hasMarker(p.pid, id) && p.state != 'Z' {
			states += string(p.state)
		}
	}
	return states
}

func (f *fixture) wantSuspended(id string) {
	f.t.Helper()
	states := livesOf(f.t.(*testing.T), id)
	if len(states) < 4 || strings.Trim(states, "TD") != "" {
		f.t.Fatalf("states of the suspended task's processes: %q", states)
	}
}

// wantRunning waits until each of the family has written again.
func (f *fixture) wantRunning(id string) {
	f.t.Helper()
	had := f.output(id, logs.Stdout)
	eventually(f.t, func() bool {
		now := f.output(id, logs.Stdout)
		for _, who := range []string{"a", "b", "c", "d"} {
			if strings.Count(now, who) <= strings.Count(had, who) {
				return false
			}
		}
		return true
	}, "not all of the task goes on")
}

func (f *fixture) startFamily(id string) {
	f.t.Helper()
	f.start(f.sh(id, family))
	f.wantRunning(id)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSuspendAndResume(t *testing.T) {
	f := newFixture(t)
	f.startFamily("a")
	for range 2 {
		must(t, f.Suspend(t.Context(), "a"))
		must(t, f.Suspend(t.Context(), "a")) // again: nothing changes
		f.wantSuspended("a")
		must(t, f.Resume(t.Context(), "a"))
		must(t, f.Resume(t.Context(), "a"))
		f.wantRunning("a")
	}
	if _, err := f.Stop(t.Context(), "a", unix.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{f.Suspend(t.Context(), "a"), f.Resume(t.Context(), "a")} {
		if !errors.Is(err, ErrNotRunning) {
			t.Errorf("of one that has ended: %v", err)
		}
	}
	if err := f.Suspend(t.Context(), "unknown"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of an unknown one: %v", err)
	}
}

// A suspended task is ended as any other: it receives the signal.
func TestStopOfSuspended(t *testing.T) {
	f := newFixture(t)
	f.startFamily("a")
	must(t, f.Suspend(t.Context(), "a"))
	st, err := f.Stop(t.Context(), "a", unix.SIGTERM, time.Minute)
	if err != nil || st.Exit.Code != 5 {
		t.Fatalf("%+v, %v", st.Exit, err)
	}
	if states := livesOf(t, "a"); states != "" {
		t.Errorf("left of it: %q", states)
	}
	f.start(f.sh("b", "trap '' TERM; echo deaf; while :; do sleep 0.01; done"))
	f.untilOutput("b", logs.Stdout, len("deaf"))
	must(t, f.Suspend(t.Context(), "b"))
	if st, err = f.Stop(t.Context(), "b", unix.SIGTERM, 20*time.Millisecond); err != nil || st.Exit.Signal != int(unix.SIGKILL) {
		t.Fatalf("one that is deaf: %+v, %v", st.Exit, err)
	}
}

// A suspended task stays so without agent and executor, and the next executor resumes it.
func TestSuspendedTaskSurvivesTheExecutor(t *testing.T) {
	f := newFixture(t)
	f.startFamily("a")
	must(t, f.Suspend(t.Context(), "a"))
	f.killExecutor()
	f.wantSuspended("a")
	must(t, f.Suspend(t.Context(), "a"))
	f.wantSuspended("a")
	must(t, f.Resume(t.Context(), "a"))
	f.wantRunning("a")
}

// A task with a cgroup of its own is suspended by that, in whatever hierarchies this
// machine lets the test make one; one that shares it with others is not.
func TestSuspendByCgroup(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	mine, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	f := newFixture(t)
	for i, kind := range []struct{ controller, fs, option, file, running string }{
		{"", "cgroup2", "", freezerV2, "0"}, {"freezer", "cgroup", "freezer", freezerV1, "THAWED"},
	} {
		_, at := mountOf(string(mounts), kind.fs, kind.option)
		dir := filepath.Join(at, cgroupOf(string(mine), kind.controller), "nomadish-test-"+strconv.Itoa(os.Getpid()))
		if at == "" || os.Mkdir(dir, 0o755) != nil {
			t.Logf("%s: none to be made here", kind.fs)
			continue
		}
		t.Cleanup(func() {
			eventually(t, func() bool { return os.Remove(dir) == nil }, "cgroup %s stays", dir)
		})
		id := "a" + strconv.Itoa(i)
		procs := filepath.Join(dir, "cgroup.procs")
		f.start(f.sh(id, "echo $$ > "+procs+"; "+family))
		f.wantRunning(id)
		state := func() string {
			data, err := os.ReadFile(filepath.Join(dir, kind.file))
			must(t, err)
			return strings.TrimSpace(string(data))
		}
		must(t, f.Suspend(t.Context(), id))
		if got := state(); got == kind.running {
			t.Errorf("%s: suspended, but %s is %q", kind.fs, kind.file, got)
		}
		must(t, f.Resume(t.Context(), id))
		f.wantRunning(id)
		must(t, f.Suspend(t.Context(), id))
		f.killExecutor()
		st, err := f.Stop(t.Context(), id, unix.SIGTERM, time.Minute)
		if err != nil || st.Exit.Signal == int(unix.SIGKILL) {
			t.Errorf("%s: stopped while suspended: %+v, %v", kind.fs, st.Exit, err)
		}
		f.start(f.sh(id+"x", "echo $$ > "+procs+"; "+family))
		f.start(f.sh(id+"y", "echo $$ > "+procs+"; "+family))
		f.wantRunning(id + "x")
		f.wantRunning(id + "y")
		must(t, f.Suspend(t.Context(), id+"x"))
		f.wantSuspended(id + "x")
		f.wantRunning(id + "y")
		for _, end := range []string{id + "x", id + "y"} {
			if _, err := f.Stop(t.Context(), end, unix.SIGTERM, time.Minute); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFreezersOf(t *testing.T) {
	const v2 = "36 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	const hybrid = "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n31 25 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	const part = "36 25 0:31 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	f := func(its, mine, mounts string, want ...string) {
		t.Helper()
		if got := freezersOf(its, mine, mounts); !slices.Equal(got, want) {
			t.Errorf("%q beside %q: %q, want %q", its, mine, got, want)
		}
	}
	f("0::/tasks/a\n", "0::/agent\n", v2, "/sys/fs/cgroup/tasks/a/cgroup.freeze")
	f("0::/agent\n", "0::/agent\n", v2)
	f("0::/\n", "0::/agent\n", v2)
	f("0::/up\n", "0::/up/agent\n", v2) // it would suspend the executor too
	f("0::/upper\n", "0::/up/agent\n", v2, "/sys/fs/cgroup/upper/cgroup.freeze")
	f("6:freezer:/a\n0::/agent\n", "6:freezer:/\n0::/agent\n", hybrid, "/sys/fs/cgroup/freezer/a/freezer.state")
	f("6:cpu,freezer:/a\n0::/b\n", "6:cpu,freezer:/\n0::/\n", hybrid, "/sys/fs/cgroup/unified/b/cgroup.freeze", "/sys/fs/cgroup/freezer/a/freezer.state")
	f("0::/box/a\n", "0::/box\n", part, "/sys/fs/cgroup/a/cgroup.freeze")
	f("0::/other/a\n", "0::/box\n", part)
	f("0::/a\n", "0::/b\n", "")
	f("nonsense", "", "more - of it")
}

func FuzzFreezersOf(f *testing.F) {
	f.Add("0::/a\n", "0::/b\n", "36 25 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, its, mine, mounts string) {
		for _, file := range freezersOf(its, mine, mounts) {
			if base := filepath.Base(file); base != freezerV1 && base != freezerV2 {
				t.Errorf("would write to %q", file)
			}
		}
	})
}

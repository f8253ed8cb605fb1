package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/cgroup"
)

// limited returns a fixture, and where its tasks' groups are, with what can be limited there; that is nothing on a machine
// that lets the test make no control groups.
func limited(t *testing.T) (f *fixture, parent string, can string) {
	t.Helper()
	parent = "nomadish-test-" + strconv.Itoa(os.Getpid()) + "/" + strings.ToLower(t.Name())
	system, err := cgroup.Detect(runtime.NumCPU())
	must(t, err)
	base, err := system.Open(parent)
	must(t, err)
	can = strings.Join(base.Limited(), ",")
	t.Logf("limited: %q; missing: %s", can, base.Missing())
	t.Cleanup(func() { // after the fixture's own: its executor has removed all of it
		if left := dirsNamed(parent); len(left) > 0 {
			t.Errorf("control groups are left: %q", left)
		}
		above, err := system.Open(filepath.Dir(parent))
		must(t, err)
		above.Close()
	})
	return newFixture(t), parent, can
}

// dirsNamed lists the control groups whose path holds a word.
func dirsNamed(word string) []string {
	var out []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, word) {
			out = append(out, path)
		}
		return nil // one that went away meanwhile is none
	})
	return out
}

func (f *fixture) within(s *Spec, parent string, l cgroup.Limits) *Spec {
	s.Cgroup = &Cgroup{Parent: parent, Limits: l}
	return s
}

// A task that takes more memory than it may ends as a whole, and alone.
func TestMemoryLimit(t *testing.T) {
	f, parent, can := limited(t)
	small := cgroup.Limits{Memory: 20 << 20, CPU: 100}
	f.start(f.within(f.sh("other", "exec sleep 1000"), parent, small))
	// The shell is not what takes the memory, and would go on.
	f.start(f.within(f.sh("eater", "head -c ${BYTES:-400000000} /dev/zero | tail | wc -c; test -n \"$BYTES\" || exec sleep 1000"), parent, small))
	if !strings.Contains(can, "memory") {
		f.killAll("eater")
		return
	}
	got := f.wait("eater")
	if !got.OOMKilled || got.Signal != int(unix.SIGKILL) || got.Message != "the task reached its memory limit of 20 MiB" {
		t.Errorf("ended as %+v", got)
	}
	few := f.within(f.sh("few", "head -c 4000000 /dev/zero | tail | wc -c"), parent, small)
	f.start(few)
	if got := f.wait("few"); got.OOMKilled || got.Code != 0 || got.Message != "" {
		t.Errorf("a task within its limits ended as %+v", got)
	}
	if st, err := f.Status(t.Context(), "other"); err != nil || st.State != StateRunning {
		t.Errorf("the other task: %+v, %v", st, err)
	}
}

// killAll ends tasks that this machine cannot limit.
func (f *fixture) killAll(ids ...string) {
	for _, id := range ids {
		if _, err := f.Stop(f.t.Context(), id, unix.SIGKILL, 0); err != nil {
			f.t.Error(err)
		}
	}
}

// A task cannot have more processes than it may, and its end says that it tried.
func TestPidsLimit(t *testing.T) {
	f, parent, can := limited(t)
	f.start(f.within(f.sh("bomb", "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; echo all; kill $(jobs -p)"), parent, cgroup.Limits{Pids: 30}))
	got := f.wait("bomb")
	if strings.Contains(can, "pids") {
		if got.Code == 0 || got.OOMKilled || got.Message != "the task reached its limit of 30 processes and threads" {
			t.Errorf("ended as %+v", got)
		}
	} else if got.Code != 0 {
		t.Errorf("ended as %+v", got)
	}
}

// daemon leaves its task's session and environment and writes down who it is.
func daemon(file string) string {
	return fmt.Sprintf("(setsid env -i /bin/sh -c 'echo $$ > %s.new; mv %[1]s.new %[1]s; exec sleep 1000' &) ; ", file)
}

func (f *fixture) pidIn(file string) int {
	f.t.Helper()
	pid := 0
	eventually(f.t, func() bool {
		data, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err == nil
	}, "%s: no number in it", file)
	return pid
}

// What a task has started ends with it, wherever it went: when it is stopped, when it ends by itself, and when an
// executor that came after the one that started it sees its end.
func TestGroupEnds(t *testing.T) {
	f, parent, _ := limited(t)
	if len(dirsNamed(parent)) == 0 {
		t.Log("this machine lets the test make no control groups")
		return
	}
	for name, end := range map[string]func(id, gate string){
		"stop": func(id, _ string) { f.killAll(id) },
		"self": func(_, gate string) { must(t, os.WriteFile(gate, nil, 0o600)) },
		"adopted": func(id, _ string) {
			f.killExecutor()
			f.killAll(id)
		},
		"unseen": func(id, gate string) {
			st, err := f.Status(t.Context(), id)
			must(t, err)
			must(t, f.Close()) // or it starts another one at once
			pid := f.executorPid()
			must(t, unix.Kill(pid, unix.SIGKILL))
			gone(t, pid)
			must(t, os.WriteFile(gate, nil, 0o600))
			gone(t, st.Pid)
			f.connect()
		},
	} {
		dir := t.TempDir()
		file, gate := filepath.Join(dir, "pid"), filepath.Join(dir, "gate")
		f.start(f.within(f.sh(name, daemon(file)+"while [ ! -e "+gate+" ]; do sleep 0.01; done"), parent, cgroup.Limits{Pids: 50}))
		pid := f.pidIn(file)
		end(name, gate)
		f.wait(name)
		if st, err := readStat(pid); err == nil && st.state != 'Z' {
			t.Errorf("%s: the daemon is left in state %c", name, st.state)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		eventually(t, func() bool { return len(dirsNamed("/"+name+".scope")) == 0 }, "%s: its control groups are left", name)
	}
}

// executorPid is the process that holds the executor's lock.
func (f *fixture) executorPid() int {
	f.t.Helper()
	c, err := NewClient(f.cfg)
	must(f.t, err)
	pid, err := c.Ensure(f.t.Context())
	must(f.t, err)
	must(f.t, c.Close())
	return pid
}

// A task is in its groups from its first instruction on, and the executor is not.
func TestBornInGroup(t *testing.T) {
	f, parent, can := limited(t)
	f.start(f.within(f.sh("a/b c", "cat /proc/self/cgroup"), parent, cgroup.Limits{Memory: 50 << 20, Pids: 50, CPU: 100}))
	f.wait("a/b c")
	out := f.output("a/b c", "stdout")
	for _, c := range strings.Split(can, ",") {
		if path := cgroupOf(out, c); c != "" && !strings.HasSuffix(path, parent+"/a%2Fb%20c.scope") && cgroupOf(out, "") != path {
			t.Errorf("%s: it is in %q:\n%s", c, path, out)
		}
	}
	pid, err := f.Ensure(t.Context())
	must(t, err)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/cgroup", pid))
	must(t, err)
	for _, file := range tasks {
		if own, err := os.ReadFile(file); err == nil && strings.Contains(string(own), parent) {
			t.Errorf("a thread of the executor is in a task's group:\n%s", own)
		}
	}
}

// What an executor that died has left of groups is removed by the next one.
func TestStaleGroups(t *testing.T) {
	f, parent, _ := limited(t)
	bases := dirsNamed(parent)
	for _, dir := range bases {
		must(t, os.MkdirAll(filepath.Join(dir, "stale.scope", "below"), 0o755))
	}
	f.start(f.within(f.sh("new", "exit 0"), parent, cgroup.Limits{}))
	f.wait("new")
	for _, dir := range bases {
		if exists(filepath.Join(dir, "stale.scope")) {
			t.Errorf("%s: it is left", dir)
		}
	}
}

// A start that fails leaves no groups, and neither does the place of all groups disappear under a running executor.
func TestGroupOfFailedStart(t *testing.T) {
	f, parent, _ := limited(t)
	bad := f.within(f.spec("bad", "/none/such"), parent, cgroup.Limits{Pids: 50})
	if _, err := f.Start(t.Context(), bad); err == nil {
		t.Fatal("started")
	}
	if left := dirsNamed("bad.scope"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for _, dir := range dirsNamed(parent) {
		must(t, os.Remove(dir))
	}
	f.start(f.within(f.sh("good", "exit 3"), parent, cgroup.Limits{Pids: 50}))
	if got := f.wait("good"); got.Code != 3 {
		t.Errorf("ended as %+v", got)
	}
	for _, wrong := range []string{"", "/abs", "../up", "a/../..", "a\nb"} {
		if _, err := f.Start(t.Context(), f.within(f.sh("wrong", "exit 0"), wrong, cgroup.Limits{})); err == nil {
			t.Errorf("%q: taken", wrong)
		}
	}
}

// An executor of an earlier version is known to set no limits.
func TestLimitsOfEarlierExecutor(t *testing.T) {
	f := newFixture(t)
	_, err := f.Ensure(t.Context())
	must(t, err)
	if !f.Limits() {
		t.Error("an executor of this version: no limits")
	}
	f.link.version = versionLimits - 1
	if f.Limits() {
		t.Error("an executor of an earlier version: limits")
	}
}

// A suspended task of a group can be stopped within its time.
func TestStopOfSuspendedGroup(t *testing.T) {
	f, parent, _ := limited(t)
	f.start(f.within(f.sh("suspended", family), parent, cgroup.Limits{Memory: 50 << 20, Pids: 50}))
	f.wantRunning("suspended")
	must(t, f.Suspend(t.Context(), "suspended"))
	st, err := f.Stop(t.Context(), "suspended", unix.SIGTERM, time.Minute)
	if err != nil || st.Exit.Signal == int(unix.SIGKILL) {
		t.Errorf("%+v, %v", st.Exit, err)
	}
}

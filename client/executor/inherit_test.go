package executor

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

// inherited is what a process has of its executor.
const inherited = "ls /proc/$$/fd; grep NoNewPrivs /proc/self/status; id -G"

// TestInherit: a process has three descriptors, the groups that it is to have, and cannot gain privileges unless it may.
func TestInherit(t *testing.T) {
	// Open in the executor, which a process of this test starts, as an agent's parent leaves them in an agent.
	for range 3 {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0) // without O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd) //nolint:errcheck // only read from
	}
	f := newFixture(t)
	own, user, group := groupsOf(t, "id -G"), "", ""
	if os.Geteuid() == 0 {
		user, own, group = "nobody", groupsOf(t, "id -G nobody"), " 2100000007" // only root can be somebody else
	}
	for _, row := range []struct {
		name   string
		allow  bool
		groups []int
		want   string
	}{
		{"default", false, nil, "0\n1\n2\nNoNewPrivs:\t1\n" + own},
		{"allowed", true, nil, "0\n1\n2\nNoNewPrivs:\t0\n" + own},
		{"again", false, nil, "0\n1\n2\nNoNewPrivs:\t1\n" + own},
		{"groups", false, []int{2100000007}, "0\n1\n2\nNoNewPrivs:\t1\n" + own + group},
	} {
		s := f.sh(row.name, inherited)
		s.User, s.AllowNewPrivs, s.Groups, s.Dir = user, row.allow, row.groups, "/"
		f.start(s)
		if exit := f.wait(row.name); exit.Code != 0 {
			t.Errorf("%s: %+v: %s", row.name, exit, f.output(row.name, logs.Stderr))
		}
		if got := strings.TrimSpace(f.output(row.name, logs.Stdout)); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if ok, err := f.AddsGroups(t.Context()); err != nil || !ok {
		t.Errorf("the executor adds groups: %v, %v", ok, err)
	}
	pid, err := f.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := inheritedBy(t, pid); n != 0 {
		t.Errorf("the executor itself keeps %d descriptors of the process that started it", n)
	}
}

// groupsOf runs a command and returns its output.
func groupsOf(t *testing.T, command string) string {
	t.Helper()
	f := newFixture(t)
	s := f.sh("id", command)
	f.start(s)
	f.wait("id")
	return strings.TrimSpace(f.output("id", logs.Stdout))
}

// inheritedBy counts the descriptors of an executor, other than the standard streams, that are the null device.
func inheritedBy(t *testing.T, pid int) (n int) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && to == os.DevNull && len(e.Name()) > 0 && e.Name() > "2" {
			n++
		}
	}
	return n
}

// TestRenew: an executor of an earlier version starts tasks as long as it has some, and makes room for a new one when it has none.
func TestRenew(t *testing.T) {
	f := newFixture(t)
	earlier := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.link.version = versionGroups - 1
	}
	pid := func() int {
		t.Helper()
		p, err := f.Ensure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := pid()
	f.start(f.sh("long", "while :; do sleep 0.01; done"))
	earlier()
	if ok, err := f.AddsGroups(t.Context()); ok || err != nil {
		t.Errorf("an earlier version adds groups: %v, %v", ok, err)
	}
	f.start(f.sh("beside", "exit 3"))
	if exit := f.wait("beside"); exit.Code != 3 || pid() != first {
		t.Errorf("beside a task of an earlier version's executor: %+v, executor %d, was %d", exit, pid(), first)
	}
	if _, err := f.Stop(t.Context(), "long", unix.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	earlier()
	f.start(f.sh("after", "exit 4"))
	if exit := f.wait("after"); exit.Code != 4 || pid() == first {
		t.Errorf("after its last task: %+v, executor %d, was %d", exit, pid(), first)
	}
	if exit := f.wait("beside"); exit.Code != 3 {
		t.Errorf("the next executor knows of %+v", exit)
	}
	gone(t, first)
}

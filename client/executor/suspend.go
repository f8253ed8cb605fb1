package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How a task is suspended. If it has a cgroup to itself, that is suspended: the kernel
// takes all of it at once, and what is born meanwhile. Any other is stopped process by
// process, again and again until a look at all of them finds none that runs: SIGSTOP
// cannot be caught, and what is stopped forks no more.
//
// A process that waits in the kernel for a child that it forked with vfork(2), and that
// is stopped now, neither stops nor suspends until that child goes on. It does not run
// either: a process that was sent SIGSTOP, and is in the kernel at a later look, counts
// as stopped.
const (
	// suspendTimeout is how long the processes may take to stop.
	suspendTimeout = 5 * time.Second
	suspendPoll    = 2 * time.Millisecond
)

func (s *server) suspendOrResume(ctx context.Context, id string, suspend bool) error {
	t, err := s.get(id)
	if err != nil {
		return err
	}
	if suspend {
		return s.suspend(ctx, t)
	}
	return s.resume(t)
}

// suspend suspends a task; one that cannot be suspended is resumed.
func (s *server) suspend(ctx context.Context, t *task) error {
	t.suspendMu.Lock()
	defer t.suspendMu.Unlock()
	pid, err := t.running()
	if err != nil {
		return err
	}
	freezer, err := t.groupFreezer(), error(nil)
	if freezer == "" {
		freezer, err = ownFreezer(pid, func(pid int) bool { return t.owns(pid) })
	}
	if err != nil {
		s.log.Warn("task's cgroup not used to suspend it", "task", t.id, "error", err)
	}
	// Written down before: the executor that comes after this one must resume it.
	if err := s.recordSuspended(t, true, freezer); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, suspendTimeout)
	defer cancel()
	if freezer != "" {
		err = setFreezer(ctx, freezer, true)
	} else {
		err = t.stopAll(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("suspend task %q: %w", t.id, err), s.resumeLocked(t))
	}
	return nil
}

// groupFreezer returns the file by which the kernel suspends the task's own control group, or "" if it has none.
func (t *task) groupFreezer() string {
	if t.rec.Cgroup == nil || t.rec.Cgroup.Unified == "" {
		return ""
	}
	if file := filepath.Join(t.rec.Cgroup.Unified, freezerV2); exists(file) {
		return file
	}
	return "" // a kernel before 5.2
}

// resume lets a task's processes go on; it does nothing for one that is not suspended.
func (s *server) resume(t *task) error {
	t.suspendMu.Lock()
	defer t.suspendMu.Unlock()
	return s.resumeLocked(t)
}

func (s *server) resumeLocked(t *task) error {
	if _, err := t.running(); err != nil {
		return err
	}
	t.mu.Lock()
	suspended, freezer := t.rec.Suspended, t.rec.Freezer
	t.mu.Unlock()
	if !suspended {
		return nil
	}
	var err error
	if freezer != "" {
		ctx, cancel := context.WithTimeout(context.Background(), suspendTimeout)
		defer cancel()
		err = setFreezer(ctx, freezer, false)
	} else {
		err = t.signalAll(unix.SIGCONT)
	}
	if err != nil {
		return fmt.Errorf("resume task %q: %w", t.id, err)
	}
	return s.recordSuspended(t, false, "")
}

// recordSuspended writes to the record that a task is suspended, and by which freezer file, or is not.
func (s *server) recordSuspended(t *task, suspended bool, freezer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return ErrNotRunning
	}
	t.rec.Suspended, t.rec.Freezer = suspended, freezer
	return s.store.put(&t.rec, false)
}

// running returns the task's process while it runs.
func (t *task) running() (pid int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped || t.rec.State != StateRunning || t.adopted && !alive(t.rec.Pid, t.rec.StartTicks) {
		return 0, ErrNotRunning
	}
	return t.rec.Pid, nil
}

// owns reports whether a process is the task's, wherever it went, or nobody's any more.
// One that is just being made or ended cannot show its mark: it is looked at again.
func (t *task) owns(pid int) bool {
	const looks = 3
	t.mu.Lock()
	main := t.rec.Pid
	t.mu.Unlock()
	for range looks {
		st, err := readStat(pid)
		if err != nil || st.state == 'Z' || st.state == 'X' || st.session == main || hasMarker(pid, t.id) {
			return true
		}
		time.Sleep(suspendPoll)
	}
	return false
}

// family lists the task's processes: those of its session, their descendants, and what
// was started for it and has left them.
func (t *task) family(main int) ([]procStat, error) {
	procs, err := allProcs()
	if err != nil {
		return nil, err
	}
	list := members(procs, main)
	known := make(map[int]bool, len(list))
	for _, p := range list {
		known[p.pid] = true
	}
	self := os.Getpid()
	for _, p := range procs {
		// What left its family is this process's child, or somebody's if it did so in an
		// earlier executor's time.
		if !known[p.pid] && (p.ppid == self || t.adopted) && hasMarker(p.pid, t.id) {
			list = append(list, members(procs, p.pid)...)
		}
	}
	return list, nil
}

// stopAll stops process by process until none runs.
func (t *task) stopAll(ctx context.Context) error {
	signaled := map[int]uint64{} // process → when it began
	for {
		main, err := t.running()
		if err != nil {
			return err
		}
		list, err := t.family(main)
		if err != nil {
			return err
		}
		running := 0
		for _, p := range list {
			if isStopped(p.state) || p.state == inKernel && signaled[p.pid] == p.startTicks {
				continue
			}
			running++
			signaled[p.pid] = p.startTicks
			if err := t.signalOne(p, unix.SIGSTOP); err != nil {
				return err
			}
		}
		if running == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes still run: %w", running, ctx.Err())
		case <-time.After(suspendPoll):
		}
	}
}

// isStopped reports, by the kernel's letter for a process's state, whether it is stopped,
// traced or dead.
func isStopped(state byte) bool { return strings.IndexByte("TtZX", state) >= 0 }

// inKernel is the letter of a process that waits in the kernel and cannot be disturbed.
const inKernel = 'D'

// signalAll sends a signal to each process of the task, the youngest first, so that a
// parent finds its children as they were.
func (t *task) signalAll(sig unix.Signal) error {
	main, err := t.running()
	if err != nil {
		return err
	}
	list, err := t.family(main)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(list) {
		if err := t.signalOne(p, sig); err != nil {
			return err
		}
	}
	return nil
}

// signalOne sends a signal to a process that was seen as the task's.
func (t *task) signalOne(p procStat, sig unix.Signal) error {
	now, err := readStat(p.pid)
	if gone := err != nil || now.startTicks != p.startTicks; gone {
		return nil // its number may be somebody else's by now
	}
	if err := unix.Kill(p.pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.pid, err)
	}
	return nil
}

// The files by which a cgroup is suspended, in the unified hierarchy and in the first one.
const (
	freezerV2 = "cgroup.freeze"
	freezerV1 = "freezer.state"
)

// ownFreezer finds the file by which the cgroup that a process has to itself and its
// family can be suspended; empty: it has none.
func ownFreezer(pid int, owns func(pid int) bool) (string, error) {
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("cgroup: %w", err)
	}
	its, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", fmt.Errorf("cgroup: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("cgroup: %w", err)
	}
	for _, file := range freezersOf(string(its), string(mine), string(mounts)) {
		if !exists(file) {
			continue // for example, a kernel before 5.2
		}
		procs, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup.procs"))
		if err != nil {
			return "", fmt.Errorf("cgroup: %w", err)
		}
		if !slices.ContainsFunc(strings.Fields(string(procs)), func(f string) bool {
			other, err := strconv.Atoi(f)
			return err != nil || !owns(other)
		}) {
			return file, nil
		}
	}
	return "", nil
}

// freezersOf lists the files that may suspend a process, best first: those of cgroups
// that the executor itself is not in. its and mine are /proc/<pid>/cgroup, mounts is
// /proc/self/mountinfo.
func freezersOf(its, mine, mounts string) (files []string) {
	for _, kind := range []struct{ controllers, fs, option, file string }{
		{"", "cgroup2", "", freezerV2}, {"freezer", "cgroup", "freezer", freezerV1},
	} {
		path, own := cgroupOf(its, kind.controllers), cgroupOf(mine, kind.controllers)
		if path == "" || path == "/" || path == own || strings.HasPrefix(own, path+"/") {
			continue
		}
		root, at := mountOf(mounts, kind.fs, kind.option)
		if at == "" {
			continue
		}
		if root != "/" {
			rest, below := strings.CutPrefix(path, root)
			if !below {
				continue
			}
			path = rest
		}
		files = append(files, filepath.Join(at, path, kind.file))
	}
	return files
}

// cgroupOf finds a process's cgroup in the hierarchy of a controller; "" names the
// unified one.
func cgroupOf(cgroups, controller string) string {
	for line := range strings.Lines(cgroups) {
		_, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if ok && slices.Contains(strings.Split(controllers, ","), controller) {
			return path
		}
	}
	return ""
}

// mountOf finds where a hierarchy is mounted, and which part of it.
func mountOf(mounts, fs, option string) (root, at string) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 || g[0] != fs {
			continue
		}
		if option == "" || slices.Contains(strings.Split(g[2], ","), option) {
			return f[3], f[4]
		}
	}
	return "", ""
}

// allInKernel reports whether no thread of a cgroup of the first hierarchy runs.
func allInKernel(tasks string) bool {
	data, err := os.ReadFile(tasks)
	if err != nil {
		return false
	}
	for _, f := range strings.Fields(string(data)) {
		tid, err := strconv.Atoi(f)
		if err != nil {
			return false
		}
		if st, err := readStat(tid); err == nil && !isStopped(st.state) && st.state != inKernel {
			return false
		}
	}
	return true
}

// setFreezer suspends or resumes a cgroup and waits until the kernel reports it.
func setFreezer(ctx context.Context, file string, suspend bool) error {
	word, want := "0", "frozen 0"
	look := filepath.Join(filepath.Dir(file), "cgroup.events")
	if suspend {
		word, want = "1", "frozen 1"
	}
	if filepath.Base(file) == freezerV1 {
		word, want, look = "THAWED", "THAWED", file
		if suspend {
			word, want = "FROZEN", "FROZEN"
		}
	}
	if err := os.WriteFile(file, []byte(word), 0); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	for still := false; ; {
		data, err := os.ReadFile(look)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if slices.Contains(strings.Split(strings.TrimSpace(string(data)), "\n"), want) {
			return nil
		}
		if suspend && filepath.Base(file) == freezerV1 {
			was := still
			if still = allInKernel(filepath.Join(filepath.Dir(file), "tasks")); still && was {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cgroup %s is not %q: %w", filepath.Dir(file), want, ctx.Err())
		case <-time.After(suspendPoll):
		}
	}
}

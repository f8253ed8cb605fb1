package executor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// exitInfoFor is how long the kernel is queried for an adopted process's exit
// status: it has it only once the process's parent has fetched it.
const exitInfoFor = 200 * time.Millisecond

// adoptAll takes over what earlier executors have left.
func (s *server) adoptAll() error {
	recs, err := s.store.load()
	if err != nil {
		return err
	}
	for _, rec := range recs {
		if err := s.adopt(rec); err != nil {
			return fmt.Errorf("adopt task %q: %w", rec.ID, err)
		}
	}
	return nil
}

func (s *server) adopt(rec *record) error {
	t := &task{id: rec.ID, rec: *rec, adopted: true, done: make(chan struct{})}
	if err := s.groups.adopt(rec.Cgroup); err != nil {
		s.log.Error("task's control group not found", "task", t.id, "error", err)
	}
	if rec.State == StateExited {
		t.reaped = true
		close(t.done)
		s.tasks[t.id] = t
		s.dropGroup(t)
		return nil
	}
	sameBoot := rec.BootID == s.boot
	if sameBoot && (rec.State == StateStarting || rec.StartTicks == 0) {
		// The executor died around the fork. If the process came to life it is ours.
		p, ok, err := findMarked(rec.ID)
		if err != nil {
			return err
		}
		if ok {
			t.rec.State, t.rec.Pid, t.rec.StartTicks = StateRunning, p.pid, p.startTicks
			if err := s.store.put(&t.rec, false); err != nil {
				return err
			}
		}
	}
	if t.rec.State == StateStarting {
		// Its start was never reported to anybody.
		s.dropGroup(t)
		return s.store.remove(t.id)
	}
	s.tasks[t.id] = t
	s.count(1, 0)
	if !sameBoot {
		t.reaped, t.found = true, true
		go s.finish(t, &Exit{Unknown: true, Reason: "the machine was restarted while it ran", FinishedAt: time.Now()})
		return nil
	}
	s.openPumps(t)
	if err := s.groups.watch(t); err != nil {
		s.log.Warn("task's memory not watched: its limit ends a process of it only", "task", t.id, "error", err)
	}
	s.log.Info("task adopted", "task", t.id, "pid", t.rec.Pid)
	watched, err := watchProcess(t.rec.Pid, t.rec.StartTicks)
	if err != nil {
		return err
	}
	if watched == nil {
		t.reaped, t.found = true, true
		go s.finish(t, &Exit{Unknown: true, Reason: "it ended while no executor was running", FinishedAt: time.Now()})
		return nil
	}
	go s.awaitAdopted(t, watched)
	return nil
}

// dropGroup removes the control groups that an ended task has left. If they cannot be removed, the other
// tasks are adopted all the same.
func (s *server) dropGroup(t *task) {
	if err := s.groups.remove(t.rec.Cgroup); err != nil {
		s.log.Error("task's control group not removed", "task", t.id, "error", err)
	}
}

// findMarked looks for the session leader that was started for the task.
func findMarked(id string) (procStat, bool, error) {
	procs, err := allProcs()
	if err != nil {
		return procStat{}, false, err
	}
	for _, p := range procs {
		if p.session == p.pid && hasMarker(p.pid, id) {
			return p, true, nil
		}
	}
	return procStat{}, false, nil
}

// watchProcess returns a descriptor of a living process, or nil if it has ended.
func watchProcess(pid int, ticks uint64) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w: Linux 5.10 or newer is needed", pid, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// Looked at after the descriptor is open: now it cannot change its meaning.
	if !alive(pid, ticks) {
		return nil, f.Close()
	}
	return f, nil
}

// awaitAdopted waits for the end of a process that is not a child.
func (s *server) awaitAdopted(t *task, pidfd *os.File) {
	defer func() { _ = pidfd.Close() }()
	exit := &Exit{Unknown: true, Reason: "its executor died before it did, and with it the way to its exit code"}
	raw, err := pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return hasExited(int(fd)) })
	}
	if err != nil {
		exit.Reason = err.Error()
		s.log.Error("adopted task not watched", "task", t.id, "error", err)
	}
	t.mu.Lock()
	t.reaped = true
	if t.killer != nil {
		t.killer.Stop()
	}
	t.mu.Unlock()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			if ws, ok := exitInfo(int(fd)); ok {
				exit = exitOf(ws, time.Now())
			}
		})
	}
	exit.FinishedAt = time.Now()
	s.finish(t, exit)
}

// hasExited reports whether the process of a pidfd has ended.
func hasExited(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents != 0
}

// exitInfo reads from the kernel (Linux 6.15 and newer) how the process ended.
func exitInfo(fd int) (unix.WaitStatus, bool) {
	for deadline := time.Now().Add(exitInfoFor); ; time.Sleep(sweepStep) {
		info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		err := unix.IoctlPidfdInfo(fd, &info)
		if err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			return unix.WaitStatus(info.Exit_code), true
		}
		if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) || time.Now().After(deadline) {
			return 0, false
		}
	}
}

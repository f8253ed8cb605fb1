package executor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

const (
	// sweepFor is how long processes that left their task's group are looked for
	// and killed after its end, and sweepStep the pause between two looks.
	sweepFor  = 500 * time.Millisecond
	sweepStep = 2 * time.Millisecond
	// statsEvery is how long one reading of /proc serves all tasks.
	statsEvery = 500 * time.Millisecond
)

// server is the executor's side: the tasks and what happens to them.
type server struct {
	dir   string
	store store
	log   hclog.Logger
	// groups are the control groups of the tasks.
	groups groups
	boot   string
	pid    int

	// forks is held from before a process is forked until its task is in byPid,
	// and by the reaper while it looks a process up.
	forks sync.Mutex

	mu    sync.Mutex
	tasks map[string]*task
	byPid map[int]*task // started by this executor and not reaped
	// busy counts what keeps the executor alive: running tasks and connections.
	running, conns int
	idle           *time.Timer
	idleAfter      time.Duration
	closing        bool // no new connections or tasks: the executor ends
	draining       bool // end as soon as no task runs
	quit           chan struct{}

	statsMu sync.Mutex
	procs   []procStat
	procsAt time.Time
}

func newServer(dir string, idleAfter time.Duration, log hclog.Logger) (*server, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	s := &server{
		dir: dir, store: store{dir}, log: log, boot: boot, pid: os.Getpid(),
		tasks: map[string]*task{}, byPid: map[int]*task{},
		idleAfter: idleAfter, quit: make(chan struct{}),
	}
	s.idle = time.AfterFunc(idleAfter, s.idleOut)
	return s, nil
}

// count moves the counters that keep the executor alive.
func (s *server) count(running, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(running, conns)
}

func (s *server) countLocked(running, conns int) {
	s.running += running
	s.conns += conns
	s.idle.Stop()
	switch {
	case s.running > 0:
	case s.draining:
		s.closeLocked()
	case s.conns == 0:
		s.idle.Reset(s.idleAfter)
	}
}

// idleOut ends an executor that nobody needs.
func (s *server) idleOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == 0 && s.conns == 0 {
		s.log.Info("nothing to do: ending", "after", s.idleAfter)
		s.closeLocked()
	}
}

// drain ends the executor as soon as no task runs.
func (s *server) drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.count(0, 0)
}

func (s *server) closeLocked() {
	s.closing = true
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
}

// shutdown takes no more tasks from now on, unless one runs. The session ends the
// executor (by end) once that has been answered.
func (s *server) shutdown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		return fmt.Errorf("%w: %d of them; stop them first", ErrRunning, s.running)
	}
	s.closing = true
	return nil
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *server) get(id string) (*task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tasks[id]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return t, nil
}

func (s *server) list() []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*task, 0, len(s.tasks))
	for _, t := range s.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *task) int { return strings.Compare(a.id, b.id) })
	return all
}

// start starts a task. One that has been started under that ID already is left
// as it is and its status returned, so that a request may be repeated.
func (s *server) start(spec *Spec, now time.Time) (Status, error) {
	if spec == nil {
		return Status{}, fmt.Errorf("%w: no task given", ErrInvalid)
	}
	if err := spec.Validate(); err != nil {
		return Status{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	t := &task{id: spec.ID, done: make(chan struct{}), rec: record{
		ID: spec.ID, State: StateStarting, BootID: s.boot, StartedAt: now, Logs: spec.Logs, CgroupV2: spec.CgroupV2,
	}}
	// The task's lock is held while it starts: whoever finds it waits for that.
	t.mu.Lock()
	s.mu.Lock()
	old, known := s.tasks[spec.ID]
	if !known && s.closing {
		s.mu.Unlock()
		return Status{}, fmt.Errorf("%w: it is ending; try again", ErrBusy)
	}
	if !known {
		s.tasks[spec.ID] = t
	}
	s.mu.Unlock()
	if known {
		t.mu.Unlock()
		st := old.status()
		if st.State == StateStarting {
			return Status{}, fmt.Errorf("%w: an earlier start of %q has just failed; try again", ErrBusy, spec.ID)
		}
		return st, nil
	}
	s.count(1, 0)
	err := s.launch(t, spec)
	t.mu.Unlock()
	if err != nil {
		s.mu.Lock()
		delete(s.tasks, spec.ID)
		s.mu.Unlock()
		t.finishPumps()
		t.endWatch()
		err = errors.Join(err, s.groups.remove(t.rec.Cgroup), s.store.remove(spec.ID))
		s.count(-1, 0)
		close(t.done)
		return Status{}, err
	}
	return t.status(), nil
}

// launch does what can fail of start. t.mu is held.
func (s *server) launch(t *task, spec *Spec) error {
	who, err := lookupIdentity(spec.User)
	if err != nil {
		return err
	}
	who.join(spec.Groups)
	if t.rec.Cgroup, err = s.groups.plan(spec); err != nil {
		return err
	}
	if err := s.store.create(t.id); err != nil {
		return err
	}
	// Written before there is a process, so that an executor that dies right after
	// the fork leaves a trace by which the next one finds it.
	if err := s.store.put(&t.rec, false); err != nil {
		return err
	}
	if err := s.groups.create(spec, t.rec.Cgroup); err != nil {
		return err
	}
	if err := s.groups.watch(t); err != nil {
		s.log.Warn("task's memory not watched: its limit ends a process of it only", "task", t.id, "error", err)
	}
	streams, err := t.openStreams(s.dir, who)
	if err != nil {
		return err
	}
	defer streams.close()
	s.forks.Lock()
	pid, err := fork(spec, who, streams, &s.groups, t.rec.Cgroup)
	if err == nil {
		s.mu.Lock()
		s.byPid[pid] = t
		s.mu.Unlock()
	}
	s.forks.Unlock()
	if err != nil {
		return err
	}
	t.rec.State, t.rec.Pid = StateRunning, pid
	// A zombie still has its start time, and it is not reaped while t.mu is held.
	if st, err := readStat(pid); err == nil {
		t.rec.StartTicks = st.startTicks
	}
	if err := s.store.put(&t.rec, false); err != nil {
		// It runs; without its number on disk the marker finds it.
		s.log.Error("task's record not written", "task", t.id, "error", err)
	}
	return nil
}

// reap fetches the status of every child that has ended.
func (s *server) reap() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		pid := childOf(&info)
		if err != nil || pid == 0 {
			return // no children, or none that has ended
		}
		s.forks.Lock()
		s.mu.Lock()
		t := s.byPid[pid]
		delete(s.byPid, pid)
		s.mu.Unlock()
		s.forks.Unlock()
		s.reapOne(pid, t)
	}
}

// reapOne fetches the status of one child; t is nil for an orphan of some task's
// that came to this process.
func (s *server) reapOne(pid int, t *task) {
	var ws unix.WaitStatus
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		// The rest of the group goes with its leader. Now, while the leader's
		// number cannot be used again.
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
	for {
		got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if t == nil {
			return
		}
		now := time.Now()
		exit := &Exit{Unknown: true, Reason: "its exit status was fetched by another process", FinishedAt: now}
		if err == nil && got == pid {
			exit = exitOf(ws, now)
		}
		t.reaped = true
		if t.killer != nil {
			t.killer.Stop()
		}
		go s.finish(t, exit)
		return
	}
}

// finish does what is to be done after a task's process has gone: the processes
// that escaped, the output, the record; then it notifies those who wait.
func (s *server) finish(t *task, exit *Exit) {
	t.endWatch()
	killed := s.groups.kill(t.rec.Cgroup)
	if killed != nil {
		s.log.Error("task's processes not all killed", "task", t.id, "error", killed)
	}
	s.sweep(t)
	t.finishPumps()
	s.groups.judge(t, exit)
	if killed == nil {
		s.dropGroup(t)
	}
	t.mu.Lock()
	t.rec.Dropped += t.dropped.Swap(0)
	t.rec.State, t.rec.Exit = StateExited, exit
	err := s.store.put(&t.rec, true)
	t.mu.Unlock()
	if err != nil {
		// An agent that is there learns it all the same.
		s.log.Error("task's end not written", "task", t.id, "error", err)
	}
	// At once, so that whoever learns of the end, and has the executor shut down then, is not refused as if the task still ran.
	s.mu.Lock()
	defer s.mu.Unlock()
	close(t.done)
	s.countLocked(-1, 0)
}

// sweep kills what a task's process left behind outside its group. Orphans of
// this executor's tasks become its children, where they are easily found.
func (s *server) sweep(t *task) {
	for deadline := time.Now().Add(sweepFor); ; time.Sleep(sweepStep) {
		if s.killStrays(t) == 0 || time.Now().After(deadline) {
			return
		}
	}
}

func (s *server) killStrays(t *task) int {
	var pids []int
	if t.adopted {
		procs, err := allProcs()
		if err != nil {
			return 0
		}
		for _, p := range procs {
			pids = append(pids, p.pid)
		}
	} else {
		var err error
		if pids, err = ownChildren(); err != nil {
			return 0
		}
	}
	found := 0
	for _, pid := range pids {
		s.mu.Lock()
		_, main := s.byPid[pid]
		s.mu.Unlock()
		if main || pid == os.Getpid() {
			continue
		}
		st, err := readStat(pid)
		if err != nil || st.state == 'Z' || st.state == 'X' {
			continue
		}
		if st.session == t.rec.Pid && !t.found || hasMarker(pid, t.id) {
			found++
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return found
}

// signal sends a signal to a task's process group.
func (s *server) signal(id string, sig int) error {
	t, err := s.get(id)
	if err != nil {
		return err
	}
	if sig < 1 || sig > 64 {
		return fmt.Errorf("%w: signal %d: must be 1 to 64", ErrInvalid, sig)
	}
	return t.signalGroup(syscall.Signal(sig))
}

// stop signals a task to end and has it killed after timeout. The task's done is closed
// when it has.
func (s *server) stop(t *task, sig int, timeout time.Duration) error {
	if sig < 1 || sig > 64 {
		return fmt.Errorf("%w: signal %d: must be 1 to 64", ErrInvalid, sig)
	}
	if err := t.signalGroup(syscall.Signal(sig)); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	t.killBy(max(0, timeout), time.Now())
	if err := s.resume(t); err != nil && !errors.Is(err, ErrNotRunning) {
		s.log.Error("task not resumed to be stopped", "task", t.id, "error", err)
	}
	return nil
}

// stats measures a task.
func (s *server) stats(id string) (Stats, error) {
	t, err := s.get(id)
	if err != nil {
		return Stats{}, err
	}
	st := t.status()
	if st.State != StateRunning {
		return Stats{}, ErrNotRunning
	}
	s.statsMu.Lock()
	defer s.statsMu.Unlock()
	now := time.Now()
	// A reading from before the process was there does not count.
	if now.Sub(s.procsAt) > statsEvery || s.procsAt.Before(st.StartedAt.Add(statsEvery)) {
		procs, err := allProcs()
		if err != nil {
			return Stats{}, err
		}
		s.procs, s.procsAt = procs, now
	}
	stats, ok := measure(s.procs, st.Pid, s.procsAt)
	if !ok {
		return Stats{}, ErrNotRunning
	}
	return stats, nil
}

// forget drops what is kept of an ended task. An unknown one is forgotten already.
func (s *server) forget(id string) error {
	s.mu.Lock()
	t, ok := s.tasks[id]
	s.mu.Unlock()
	if !ok {
		return nil
	}
	select {
	case <-t.done:
	default:
		return fmt.Errorf("%w: %q: stop it before it is forgotten", ErrRunning, id)
	}
	if err := s.store.remove(id); err != nil {
		return err
	}
	s.mu.Lock()
	if s.tasks[id] == t {
		delete(s.tasks, id)
	}
	s.mu.Unlock()
	return nil
}

// openPumps goes on moving the output of a task that an earlier executor began.
func (s *server) openPumps(t *task) {
	if t.rec.Logs.Disabled {
		return
	}
	for _, stream := range []string{logs.Stdout, logs.Stderr} {
		if err := t.openPump(s.dir, stream); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Error("task's output not recovered", "task", t.id, "stream", stream, "error", err)
		}
	}
}

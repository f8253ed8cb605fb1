package executor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/cgroup"
	"github.com/nomadish/nomadish/client/logs"
	"github.com/nomadish/nomadish/internal/descriptors"
)

// task is one task that the server knows.
type task struct {
	id string

	// suspendMu is locked while the task is being suspended or resumed, and before mu.
	suspendMu sync.Mutex

	mu     sync.Mutex
	rec    record
	reaped bool // the process is gone: its pid may be somebody else's now

	adopted bool         // started by an earlier executor
	found   bool         // adopted when its process was gone already: its pid means nothing
	dropped atomic.Int64 // bytes of output lost
	pumps   []*pump
	unwatch func()        // ends the watching of its memory, or nil
	done    chan struct{} // closed once rec.Exit is set and written down
	killer  *time.Timer   // kills the group when a stop's time is over, or nil
	killAt  time.Time     // when killer does
}

// status is a copy of what is known.
func (t *task) status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Status{
		ID: t.id, State: t.rec.State, Pid: t.rec.Pid, StartTicks: t.rec.StartTicks,
		StartedAt: t.rec.StartedAt, Adopted: t.adopted, Dropped: t.rec.Dropped + t.dropped.Load(),
	}
	if t.rec.Exit != nil {
		e := *t.rec.Exit
		s.Exit = &e
	}
	return s
}

// signalGroup sends sig to all of the task's process group.
func (t *task) signalGroup(sig unix.Signal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	// While the process is not reaped its number, which is the group's too,
	// belongs to it. An adopted one is somebody else's to reap, so look.
	if t.reaped || t.adopted && !alive(t.rec.Pid, t.rec.StartTicks) {
		return ErrNotRunning
	}
	err := unix.Kill(-t.rec.Pid, sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("signal process group %d: %w", t.rec.Pid, err)
	}
	return nil
}

// killBy has the group killed in d, or earlier if that was requested before.
func (t *task) killBy(d time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.Add(d)
	if t.reaped || t.killer != nil && t.killAt.Before(at) {
		return
	}
	if t.killer != nil {
		t.killer.Stop()
	}
	t.killAt = at
	t.killer = time.AfterFunc(d, func() {
		// Nothing is to be done if it has ended meanwhile, which is all that can
		// go wrong with one's own children.
		_ = t.signalGroup(unix.SIGKILL)
	})
}

// identity is whom a task runs as.
type identity struct {
	uid, gid int
	cred     *syscall.Credential // nil: as the executor itself
}

func lookupIdentity(name string) (identity, error) {
	self := identity{uid: os.Geteuid(), gid: os.Getegid()}
	if name == "" {
		return self, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, nerr := strconv.Atoi(name); nerr == nil {
			u, err = user.LookupId(name)
		}
	}
	if err != nil {
		return self, fmt.Errorf("%w: user %q: %w", ErrStart, name, err)
	}
	uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uerr, gerr); err != nil {
		return self, fmt.Errorf("%w: user %q: %w", ErrStart, name, err)
	}
	if int(uid) == self.uid {
		return self, nil
	}
	cred := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	groups, err := u.GroupIds()
	if err != nil {
		return self, fmt.Errorf("%w: groups of user %q: %w", ErrStart, name, err)
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			cred.Groups = append(cred.Groups, uint32(n))
		}
	}
	return identity{uid: int(uid), gid: int(gid), cred: cred}, nil
}

// join adds groups to those that the process has. One that runs as the executor's own user keeps the executor's.
func (i *identity) join(groups []int) {
	if i.cred == nil {
		return
	}
	for _, g := range groups {
		i.cred.Groups = append(i.cred.Groups, uint32(g)) // checked by Spec.Validate
	}
}

// streams are the descriptors that become the process's standard streams. They
// are not os.Files: those would make the pipes non-blocking for the task.
type streams struct{ fds [3]int }

func (s *streams) close() {
	for _, fd := range s.fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// openStreams opens the process's standard streams and starts the pumps.
func (t *task) openStreams(dir string, who identity) (*streams, error) {
	s := &streams{fds: [3]int{-1, -1, -1}}
	for i, stream := range []string{"stdin", logs.Stdout, logs.Stderr} {
		path := os.DevNull
		var err error
		if i > 0 && !t.rec.Logs.Disabled {
			path = fifoPath(dir, t.id, stream)
			err = makeFifo(path, who.uid, who.gid)
		}
		if err == nil {
			// For reading too: with a reader of its own the process gets no
			// SIGPIPE, and the pipe keeps its content, when there is no executor.
			s.fds[i], err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		}
		if err == nil && path != os.DevNull {
			err = t.openPump(dir, stream)
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%w: %s: %w", ErrStart, stream, err)
		}
	}
	return s, nil
}

// openPump starts moving one stream.
func (t *task) openPump(dir, stream string) error {
	l := t.rec.Logs
	out, err := logs.OpenWriter(logs.Source{Dir: l.Dir, Task: l.Task, Stream: stream}, l.MaxFiles, l.MaxFileBytes)
	if err != nil {
		return err
	}
	p, err := openPump(fifoPath(dir, t.id, stream), out, &t.dropped)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	t.pumps = append(t.pumps, p)
	return nil
}

func (t *task) finishPumps() {
	for _, p := range t.pumps {
		p.finish()
	}
}

// endWatch ends the watching of the task's memory.
func (t *task) endWatch() {
	if t.unwatch != nil {
		t.unwatch()
	}
}

// fork starts the process. The caller holds the server's fork lock, so that the
// reaper does not meet the process before the task is known by its pid. group are the control groups that it is born into.
func fork(spec *Spec, who identity, s *streams, groups *groups, group *cgroup.Group) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Dir: spec.Dir,
		Env: append(append(make([]string, 0, len(spec.Env)+1), spec.Env...), Marker+"="+spec.ID),
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: who.cred},
	}
	for _, fd := range s.fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if spec.CgroupV2 != "" {
		cg, err := os.Open(spec.CgroupV2)
		if err != nil {
			return 0, fmt.Errorf("%w: cgroup: %w", ErrStart, err)
		}
		defer func() { _ = cg.Close() }()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(cg.Fd())
	}
	pid, err = forkExec(spec, attr, groups, group)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) {
		// The machine's plight, not the task's: may be tried again.
		return 0, fmt.Errorf("fork for %s: %w", spec.Command, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w%s", ErrStart, spec.Command, err, hint(spec, err))
	}
	if spec.OOMScoreAdj != 0 {
		path := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
		// Lowering it needs a privilege; the task runs all the same.
		_ = os.WriteFile(path, []byte(strconv.Itoa(spec.OOMScoreAdj)), 0)
	}
	return pid, nil
}

// forkExec starts the process in its control groups, with nothing of the executor's but what attr states.
func forkExec(spec *Spec, attr *syscall.ProcAttr, groups *groups, group *cgroup.Group) (pid int, err error) {
	if err := descriptors.CloseOnExec(); err != nil {
		return 0, err
	}
	// What the process inherits of the thread that forks it is given to one thread: its groups and its privileges.
	cgroup.OnThread(func() (stays bool) {
		if !spec.AllowNewPrivs {
			if err = noNewPrivs(); err != nil {
				return false
			}
		}
		pid, stays, err = groups.fork(group, func(unified int) (int, error) {
			if unified >= 0 {
				attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, unified
			}
			return syscall.ForkExec(spec.Command, append([]string{spec.Command}, spec.Args...), attr)
		})
		return stays && spec.AllowNewPrivs
	})
	return pid, err
}

// hint returns what is probably wrong, where the kernel's word alone would mislead.
func hint(spec *Spec, err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return ": neither a program for this machine nor a script that begins with #!"
	case !isDir(spec.Dir):
		return fmt.Sprintf(": the working directory %s does not exist or is closed to the user", spec.Dir)
	case errors.Is(err, syscall.ENOENT) && exists(spec.Command):
		return ": the program is there, but the interpreter or loader that it names is not"
	}
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// exitOf translates the kernel's word.
func exitOf(ws unix.WaitStatus, now time.Time) *Exit {
	e := &Exit{FinishedAt: now}
	if ws.Signaled() {
		e.Signal = int(ws.Signal())
	} else {
		e.Code = ws.ExitStatus()
	}
	return e
}

// oomKilled reports whether the kernel killed in a cgroup for want of memory.
func oomKilled(group string) bool {
	if group == "" {
		return false
	}
	data, err := os.ReadFile(group + "/memory.events")
	if err != nil {
		return false
	}
	return cgroup.CountOf(data, "oom_kill") > 0
}

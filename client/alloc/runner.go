package alloc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// Store keeps what a later life of the agent must know. done functions must
// neither block nor take locks. A nil Store keeps nothing.
type Store interface {
	PutAlloc(a *structs.Allocation, done func(error))
	PutRun(id string, run []byte, done func(error))
}

// Host is the node that allocations run on.
type Host interface {
	// Node is the node as it was last registered; not to be changed.
	Node() *structs.Node
	// Go runs fn on a goroutine of its own. ctx ends when the agent shuts down,
	// which waits for fn; after that fn is not run at all.
	Go(fn func(ctx context.Context))
	// StartSlot waits for leave to start a task; release returns it.
	StartSlot(ctx context.Context) (release func(), err error)
	// Report has the allocation's state reported, soon if urgent. It is
	// called with the allocation's lock held and must not call back.
	Report(allocID string, urgent bool)
	// Room is called, likewise, when the allocation's Phase has changed: it releases room
	// (all that was reserved for it, once it has ended), or needs a Grant.
	Room(allocID string)
}

// Config is what the Runners of a node have in common.
type Config struct {
	Region  string
	Drivers *driver.Registry
	Store   Store
	Host    Host
	// BaseEnv is beneath every task's environment.
	BaseEnv        map[string]string
	MaxKillTimeout time.Duration
	// Users specifies as whom tasks may run. Groups keeps apart the allocations of tasks that do not run as the agent's user;
	// nil: those of one user are not kept apart.
	Users  users.Policy
	Groups *GroupPool
	Logger hclog.Logger
}

// Runner runs one allocation. It is safe for use by many goroutines.
type Runner struct {
	c   *Config // not to be changed
	id  string
	dir Dir
	// restored: it is of an earlier life of the agent.
	restored bool

	mu       sync.Mutex
	alloc    *structs.Allocation // with Job; replaced, never changed
	tasks    []*task.Runner
	state    State
	granted  bool   // it may start tasks
	resuming bool   // it was suspended, and its node was notified that it needs room to go on
	waits    string // for people: what it waits for before it is granted
	halt     halt
	noDelay  bool
	changed  bool // something moved since it settled last
	urgent   bool // and the servers should know soon
	closed   bool
	limit    *time.Timer // max_run_duration
	health   health
	ended    chan struct{} // closed when all tasks are dead; made on first use

	dirs sync.Mutex // making directories, without mu
}

// New makes the runner of an allocation that is new on this node. Nothing starts
// before Grant.
func New(c *Config, dir Dir, a *structs.Allocation) (*Runner, error) {
	r := &Runner{c: c, id: a.ID, dir: dir, alloc: a}
	group := groupOf(a)
	if group == nil {
		return nil, fmt.Errorf("allocation %s: its job version has no group %q", a.ID, a.TaskGroup)
	}
	for _, t := range group.Tasks {
		r.tasks = append(r.tasks, task.New(r.taskConfig(t)))
	}
	r.state.ClientStatus, r.state.ClientDescription = structs.AllocClientPending, descPending
	r.state.Deployment = a.DeploymentStatus
	r.health.reset(r)
	return r, nil
}

// Restore makes the runner of an allocation of an earlier life of the agent: what
// ran is found again at once. Nothing is started before Grant.
func Restore(c *Config, dir Dir, a *structs.Allocation, run []byte) (*Runner, error) {
	if len(run) == 0 {
		return New(c, dir, a)
	}
	r := &Runner{c: c, id: a.ID, dir: dir, alloc: a, restored: true}
	if err := codec.Decode(run, &r.state); err != nil {
		return nil, fmt.Errorf("allocation %s: %w", a.ID, err)
	}
	group := groupOf(a)
	if group == nil {
		return nil, fmt.Errorf("allocation %s: its job version has no group %q", a.ID, a.TaskGroup)
	}
	for _, t := range group.Tasks {
		s := r.state.Tasks[t.Name]
		if s == nil || s.Task == nil {
			r.tasks = append(r.tasks, task.New(r.taskConfig(t)))
			continue
		}
		r.tasks = append(r.tasks, task.Restore(r.taskConfig(t), s))
	}
	r.state.Tasks = nil
	r.health.reset(r)
	r.Do(func() {
		if a.ServerTerminal() {
			r.halt = haltStop
		}
		for _, t := range r.tasks {
			t.Recover()
		}
		r.changed = true
	})
	return r, nil
}

// groupOf is the allocation's group in its job version.
func groupOf(a *structs.Allocation) *structs.TaskGroup {
	if a.Job == nil {
		return nil
	}
	for _, g := range a.Job.TaskGroups {
		if g.Name == a.TaskGroup {
			return g
		}
	}
	return nil
}

func (r *Runner) taskConfig(t *structs.Task) task.Config {
	c := task.Config{
		AllocID: r.id, Task: t, Policy: r.policy(t), MaxKillTimeout: r.c.MaxKillTimeout, Host: taskHost{r},
		Durable: r.c.Store != nil,
	}
	c.Driver, c.DriverErr = r.c.Drivers.Get(t.Driver)
	c.Prepare = func(ctx context.Context, runID string) (*driver.TaskConfig, error) {
		return r.prepare(ctx, t.Name, runID)
	}
	return c
}

func (r *Runner) policy(t *structs.Task) task.Policy {
	p := t.RestartPolicy
	if p == nil {
		if g := groupOf(r.alloc); g != nil {
			p = g.RestartPolicy
		}
	}
	return task.PolicyOf(p, r.alloc.Job.Type, t.Lifecycle)
}

// Restored reports whether the allocation was here in an earlier life of the agent.
func (r *Runner) Restored() bool { return r.restored }

// ID is the allocation's ID.
func (r *Runner) ID() string { return r.id }

// Dir is the allocation's directory.
func (r *Runner) Dir() Dir { return r.dir }

// Alloc is the allocation as the servers last sent it; not to be changed.
func (r *Runner) Alloc() *structs.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alloc
}

// Ended is closed when the allocation has ended for good.
func (r *Runner) Ended() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endedNow()
}

// endedNow is Ended with the lock held.
func (r *Runner) endedNow() <-chan struct{} {
	if r.ended == nil {
		r.ended = make(chan struct{})
		if !r.state.EndedAt.IsZero() {
			close(r.ended)
		}
	}
	return r.ended
}

// EndedAt is when it ended; false if it has not.
func (r *Runner) EndedAt() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.EndedAt, !r.state.EndedAt.IsZero()
}

// HasRun reports whether a task of it ever ran here, or may have.
func (r *Runner) HasRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := !r.state.StartedAt.IsZero()
	for _, t := range r.tasks {
		begun = begun || t.Begun()
	}
	return begun
}

// Keep makes the allocation durable; done as in Store.
func (r *Runner) Keep(done func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.Store == nil {
		if done != nil {
			done(nil)
		}
		return
	}
	r.c.Store.PutAlloc(r.alloc, nil)
	r.save(done)
}

// Grant lets it start its tasks, or go on after it was suspended. What is granted to one
// that is suspended again meanwhile goes back.
func (r *Runner) Grant() {
	r.Do(func() {
		r.granted, r.changed = true, true
		if r.state.SuspendedAt.IsZero() {
			r.waits = ""
		}
	})
}

// Update takes what the servers changed. Older news are ignored.
func (r *Runner) Update(a *structs.Allocation) {
	r.Do(func() {
		if a.Job == nil { // purged: what it was is known here
			whole := *a
			whole.Job = r.alloc.Job
			a = &whole
		}
		if a.AllocModifyIndex < r.alloc.AllocModifyIndex || groupOf(a) == nil {
			return
		}
		redeployed := a.DeploymentID != r.alloc.DeploymentID || a.JobVersion != r.alloc.JobVersion
		r.alloc = a
		for _, t := range groupOf(a).Tasks {
			for _, mine := range r.tasks {
				if mine.Name() == t.Name {
					mine.Update(t, r.policy(t))
				}
			}
		}
		if r.c.Store != nil {
			r.c.Store.PutAlloc(a, nil)
		}
		if redeployed && !a.ServerTerminal() {
			r.state.Deployment = a.DeploymentStatus
			r.health.reset(r)
		}
		if n := a.DesiredTransition.NoShutdownDelay; n != nil && *n {
			r.noDelay = true
		}
		if a.ServerTerminal() && r.halt == haltNone {
			r.halt = haltStop
		}
		r.changed = true
	})
}

// Stop ends the allocation at once, without delays and what comes after: the
// servers have forgotten it.
func (r *Runner) Stop() {
	r.Do(func() { r.halt, r.noDelay, r.changed = haltNow, true, true })
}

// Restart restarts a task, or all that run if name is empty. dead: those too that
// have ended, while the allocation has not.
func (r *Runner) Restart(name string, dead bool) error {
	var errs []error
	r.Do(func() {
		if !r.state.EndedAt.IsZero() || r.halt != haltNone {
			errs = append(errs, structs.Errorf(structs.CodeBadRequest, "restart allocation %s: it has ended", structs.ShortID(r.id)))
			return
		}
		if r.refuseSuspended("restart", &errs) {
			return
		}
		found := false
		for _, t := range r.tasks {
			if name != "" && t.Name() != name || name == "" && !dead && !t.Running() {
				continue
			}
			found = true
			if name == "" && dead && t.Task().Lifecycle != nil && !t.Task().Lifecycle.Sidecar {
				continue // once done, hooks are done
			}
			if err := t.Restart("User requested task to restart", dead || name == ""); err != nil {
				errs = append(errs, structs.Errorf(structs.CodeBadRequest, "%w", err))
			}
		}
		if !found {
			errs = append(errs, r.noTask(name))
		}
	})
	return errors.Join(errs...)
}

// Signal sends a signal to a running task, or to all that run if name is empty.
func (r *Runner) Signal(ctx context.Context, name, signal string) error {
	type target struct {
		name   string
		handle driver.Handle
	}
	var targets []target
	var err error
	r.Do(func() {
		var refused []error
		if r.refuseSuspended("signal", &refused) {
			err = refused[0]
			return
		}
		for _, t := range r.tasks {
			if name != "" && t.Name() != name {
				continue
			}
			if h := t.Handle(); h != nil {
				targets = append(targets, target{t.Name(), h})
				t.Signaled(signal)
			}
		}
		if len(targets) == 0 {
			err = r.noTask(name)
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range targets {
		if err := t.handle.Signal(ctx, signal); err != nil {
			errs = append(errs, structs.Errorf(structs.CodeBadRequest, "signal task %q: %w", t.name, err))
		}
	}
	return errors.Join(errs...)
}

// noTask is the error for a task that does not exist or does not run.
func (r *Runner) noTask(name string) error {
	var names []string
	for _, t := range r.tasks {
		if t.Name() == name {
			return structs.Errorf(structs.CodeBadRequest, "task %q: is not running", name)
		}
		names = append(names, t.Name())
	}
	if name == "" {
		return structs.Errorf(structs.CodeBadRequest, "allocation %s: no task of it is running", structs.ShortID(r.id))
	}
	return structs.Errorf(structs.CodeNotFound, "task %q: not in this allocation; it has %q", name, names)
}

// Handles are the running tasks' handles by name.
func (r *Runner) Handles() map[string]driver.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]driver.Handle{}
	for _, t := range r.tasks {
		if h := t.Handle(); h != nil {
			out[t.Name()] = h
		}
	}
	return out
}

// Tasks are the names of its tasks.
func (r *Runner) Tasks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.tasks))
	for _, t := range r.tasks {
		names = append(names, t.Name())
	}
	return names
}

// Snapshot returns what is reported to the servers.
func (r *Runner) Snapshot() *structs.AllocClientUpdate {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := &structs.AllocClientUpdate{
		ID: r.id, NodeID: r.alloc.NodeID, ClientStatus: r.state.ClientStatus, ClientDescription: r.state.ClientDescription,
		TaskStates: make(map[string]*structs.TaskState, len(r.tasks)),
	}
	for _, t := range r.tasks {
		u.TaskStates[t.Name()] = t.TaskState()
	}
	if d := r.state.Deployment; d != nil {
		c := *d
		u.DeploymentStatus = &c
	}
	return u
}

// Close makes the runner deaf; its tasks go on. The agent is ending. What was under
// way must be waited for by the Host.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, t := range r.tasks {
		t.Close()
	}
	if r.limit != nil {
		r.limit.Stop()
	}
	r.health.stop()
}

// Do runs fn with the lock held, then settles.
func (r *Runner) Do(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
	r.settle()
}

// save makes the state durable; the lock is held.
func (r *Runner) save(done func(error)) {
	if r.c.Store == nil {
		if done != nil {
			done(nil)
		}
		return
	}
	s := r.state
	s.Tasks = make(map[string]*task.State, len(r.tasks))
	for _, t := range r.tasks {
		s.Tasks[t.Name()] = t.State()
	}
	raw, err := codec.Encode(&s)
	if err != nil {
		r.c.Logger.Error("an allocation's state cannot be kept", "alloc_id", r.id, "error", err)
		if done != nil {
			done(err)
		}
		return
	}
	r.c.Store.PutRun(r.id, raw, done)
}

// taskHost shows a Runner to its tasks.
type taskHost struct{ r *Runner }

func (h taskHost) Do(fn func())                    { h.r.Do(fn) }
func (h taskHost) Go(fn func(ctx context.Context)) { h.r.c.Host.Go(fn) }
func (h taskHost) Save(done func(error))           { h.r.save(done) }
func (h taskHost) Changed(_ *task.Runner, urgent bool) {
	h.r.changed = true
	h.r.urgent = h.r.urgent || urgent
}

func (h taskHost) StartSlot(ctx context.Context) (func(), error) { return h.r.c.Host.StartSlot(ctx) }

// Halt ends the allocation in order, as if the servers wanted it stopped.
func (r *Runner) Halt() {
	r.Do(func() {
		if r.halt == haltNone {
			r.halt, r.changed = haltStop, true
		}
	})
}

// AddEvent adds an event to the history of all tasks that are not dead.
func (r *Runner) AddEvent(kind, text string) {
	r.Do(func() {
		for _, t := range r.tasks {
			t.AddEvent(task.NewEvent(kind, time.Now(), text))
		}
	})
}

// TaskDead returns a channel that is closed when a task, or else the allocation, has
// ended for good.
func (r *Runner) TaskDead(name string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tasks {
		if t.Name() == name {
			return t.Done()
		}
	}
	return r.endedNow()
}

// ClientStatus is the status that is reported to the servers.
func (r *Runner) ClientStatus() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.ClientStatus
}

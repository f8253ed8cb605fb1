package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// Host is the allocation that a task belongs to. It makes the calls of and to one
// allocation's tasks one at a time: all methods of a Runner are called with the
// Host's lock held, unless their comments state otherwise.
type Host interface {
	// Do runs fn with the lock held.
	Do(fn func())
	// Go runs fn on a goroutine of its own, without the lock. ctx ends when the
	// agent shuts down, which waits for fn.
	Go(fn func(ctx context.Context))
	// Changed is called, with the lock held, after the state has changed. urgent
	// states that the servers should know soon.
	Changed(t *Runner, urgent bool)
	// Save makes the allocation's state durable as it is now, then calls done (nil
	// allowed), which must neither block nor take the lock. It does not block.
	Save(done func(error))
	// StartSlot waits for leave to start a task; release returns it.
	StartSlot(ctx context.Context) (release func(), err error)
}

// Config is what a Runner is made of.
type Config struct {
	AllocID string
	Task    *structs.Task
	Policy  Policy
	Driver  driver.Driver
	// DriverErr is the reason why Driver is nil.
	DriverErr error
	// Durable is true if Save keeps something.
	Durable bool
	// MaxKillTimeout bounds the task's kill_timeout.
	MaxKillTimeout time.Duration
	// Prepare makes directories and interpolates. It is called without the lock.
	Prepare func(ctx context.Context, runID string) (*driver.TaskConfig, error)
	Host    Host
}

// phase is where a task stands; structs.TaskState.State is derived from it.
type phase int

const (
	phaseWaiting  phase = iota // not started, nor to be started
	phaseRecover               // looking for what an earlier life started
	phaseStarting              // being prepared and started
	phaseRunning
	phaseBackoff // waits for its restart
	phaseDead
)

// Runner runs one task.
type Runner struct {
	c     Config
	state *State
	phase phase

	handle     driver.Handle
	stopWait   func()             // cancels the notification of the exit
	cancelRun  context.CancelFunc // of a start or recovery that is going on
	timer      *time.Timer        // restart or shutdown delay
	generation int                // of timer and start: what comes from an older one is void

	suspension suspension

	killing    bool // it shall end for good
	killEvent  *structs.TaskEvent
	stopping   bool // the handle is being stopped
	restarting bool // started again at its end, whatever the policy states
	closed     bool
	done       chan struct{} // closed when it is dead; made on first use
}

// New makes the runner of a task that has not run on this node.
func New(c Config) *Runner {
	t := &Runner{c: c, state: &State{Task: &structs.TaskState{State: structs.TaskStatePending}}}
	t.suspension.runner = t
	t.state.addEvent(time.Now().UnixNano(), fixedEvents[structs.TaskReceived])
	return t
}

// Restore makes the runner of a task of an earlier life of the agent. Recover
// looks for what it started.
func Restore(c Config, s *State) *Runner {
	t := &Runner{c: c, state: s}
	t.suspension.runner = t
	s.recall()
	if s.Task.State == structs.TaskStateDead {
		t.phase = phaseDead
	}
	return t
}

// Name is the task's name.
func (t *Runner) Name() string { return t.c.Task.Name }

// Task is the task's specification.
func (t *Runner) Task() *structs.Task { return t.c.Task }

// Update replaces the runner's version of its task's specification, which
// counts from the next start on; how it is ended and restarted counts at once.
func (t *Runner) Update(task *structs.Task, policy Policy) { t.c.Task, t.c.Policy = task, policy }

// State is a copy of the state.
func (t *Runner) State() *State { return t.state.Copy() }

// TaskState is a copy of what is reported to the servers.
func (t *Runner) TaskState() *structs.TaskState { return t.state.taskState() }

// Bare is the live TaskState without its events; the caller must not keep nor change it.
func (t *Runner) Bare() *structs.TaskState { return t.state.Task }

// Begun reports whether it was started, or was about to be.
func (t *Runner) Begun() bool { return t.state.RunID != "" }

// Dead reports whether the task has ended for good.
func (t *Runner) Dead() bool { return t.phase == phaseDead }

// Failed reports whether it has ended badly.
func (t *Runner) Failed() bool { return t.phase == phaseDead && t.state.Task.Failed }

// Waiting reports whether nobody has started it yet.
func (t *Runner) Waiting() bool { return t.phase == phaseWaiting }

// Ran reports whether it was running at least once.
func (t *Runner) Ran() bool { return t.state.Ran }

// Running reports whether it runs now.
func (t *Runner) Running() bool { return t.phase == phaseRunning }

// Done returns a channel that is closed when the task is dead.
func (t *Runner) Done() <-chan struct{} {
	if t.done != nil {
		return t.done
	}
	ch := make(chan struct{})
	if t.phase == phaseDead {
		close(ch)
	} else {
		t.done = ch
	}
	return ch
}

// Handle is the running task's handle, or nil.
func (t *Runner) Handle() driver.Handle {
	if t.phase != phaseRunning {
		return nil
	}
	return t.handle
}

// watchExit requests a notification of the end of h.
func (t *Runner) watchExit(h driver.Handle) {
	gen := t.generation
	report := func(res driver.ExitResult) {
		t.c.Host.Do(func() { t.exited(gen, res) })
	}
	if n, ok := h.(driver.Notifier); ok {
		// The call may come from within, where the lock is held.
		t.stopWait = n.OnExit(func(res driver.ExitResult) {
			t.c.Host.Go(func(context.Context) { report(res) })
		})
		return
	}
	t.stopWait = func() {}
	t.c.Host.Go(func(ctx context.Context) {
		if res, err := h.Wait(ctx); err == nil {
			report(res)
		}
	})
}

// exited takes the end of a run.
func (t *Runner) exited(gen int, res driver.ExitResult) {
	if gen != t.generation || t.phase != phaseRunning || t.closed {
		return
	}
	now := time.Now()
	t.stopTimer()
	t.clearSuspension()
	t.event(terminatedEvent(res, now), false)
	switch {
	case t.killing:
		t.fixed(structs.TaskKilled, now, false)
		t.die(false)
	case t.restarting:
		t.restartAfter(Decision{Restart: true, Reason: ""}, now)
	default:
		t.decide(res.Successful(), true, now)
	}
}

// decide applies the restart policy.
func (t *Runner) decide(well, curable bool, now time.Time) {
	var d Decision
	t.state.Restarts, d = t.state.Restarts.Next(t.c.Policy, well, curable, now, rand.Float64()) // jitter
	if d.Restart {
		t.restartAfter(d, now)
		return
	}
	if !well || d.Failed {
		t.event(notRestartingEvent(d, now), false)
	}
	t.die(d.Failed || !well)
}

// restartAfter waits and starts again.
func (t *Runner) restartAfter(d Decision, now time.Time) {
	t.phase = phaseBackoff
	t.state.Task.Restarts++
	t.state.Task.LastRestart = now.UTC()
	t.state.RestartAt = now.Add(d.Delay)
	t.setState(structs.TaskStatePending)
	t.event(restartingEvent(d, now), true)
	t.c.Host.Save(nil)
	t.after(d.Delay, t.begin)
	if t.suspension.wanted {
		t.waitForStart()
	}
}

// after calls fn, with the lock held, unless something else happens before.
func (t *Runner) after(delay time.Duration, fn func()) {
	t.stopTimer()
	t.generation++
	gen := t.generation
	t.timer = time.AfterFunc(delay, func() {
		t.c.Host.Do(func() {
			if t.generation == gen && !t.closed {
				t.timer = nil
				fn()
			}
		})
	})
}

func (t *Runner) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// die ends the task for good.
func (t *Runner) die(failed bool) {
	t.phase = phaseDead
	t.stopTimer()
	t.state.RestartAt = time.Time{}
	t.state.Task.Failed = failed
	t.state.Task.FinishedAt = time.Now().UTC()
	t.setState(structs.TaskStateDead)
	if t.done != nil {
		close(t.done)
		t.done = nil
	}
	h := t.handle
	t.c.Host.Save(func(err error) {
		if _, ok := h.(driver.Releaser); ok && err == nil {
			t.c.Host.Go(func(ctx context.Context) { t.release(ctx, h) })
		}
	})
	t.c.Host.Changed(t, true)
}

// release drops what the driver keeps of an ended task, whose end is durable.
func (t *Runner) release(ctx context.Context, h driver.Handle) {
	if driver.Release(ctx, h) != nil {
		return // tried again by the next life of the agent
	}
	t.c.Host.Do(func() {
		t.state.Handle = nil
		t.c.Host.Save(nil)
	})
}

// Kill ends the task for good, for the reason in event (nil: its own doing).
// The shutdown delay is waited unless noDelay.
func (t *Runner) Kill(event *structs.TaskEvent, noDelay bool) {
	if t.phase == phaseDead || t.closed {
		return
	}
	if t.killing {
		if noDelay && t.phase == phaseRunning && !t.stopping {
			t.stopTimer()
			t.event(NewEvent(structs.TaskSkippingShutDelay, time.Now(), "Skipping shutdown_delay"), false)
			t.stopHandle()
		}
		return
	}
	t.killing, t.killEvent = true, event
	if event != nil {
		t.event(event, false)
	}
	switch t.phase {
	case phaseWaiting, phaseBackoff:
		t.cutShort()
	case phaseStarting, phaseRecover:
		if t.cancelRun != nil {
			t.cancelRun()
		}
	case phaseRunning:
		t.stopAfterDelay(noDelay)
	case phaseDead:
	}
}

func (t *Runner) stopAfterDelay(noDelay bool) {
	delay := t.c.Task.ShutdownDelay
	if t.stopping {
		return
	}
	if delay <= 0 || noDelay {
		t.stopHandle()
		return
	}
	t.event(NewEvent(structs.TaskWaitingShutDelay, time.Now(),
		fmt.Sprintf("Waiting for shutdown_delay of %v before killing the task.", delay)), true)
	gen := t.generation
	t.stopTimer()
	t.timer = time.AfterFunc(delay, func() { // not after(): the exit's generation must stay good
		t.c.Host.Do(func() {
			if t.generation == gen && t.phase == phaseRunning && !t.closed {
				t.stopHandle()
			}
		})
	})
}

// stopHandle has the driver end the running task; its exit comes as any other.
func (t *Runner) stopHandle() {
	if t.stopping || t.closed {
		return
	}
	t.stopping = true
	timeout := t.c.Task.KillTimeout
	if t.c.MaxKillTimeout > 0 {
		timeout = min(timeout, t.c.MaxKillTimeout)
	}
	reason := ""
	if t.killEvent != nil {
		reason = t.killEvent.DisplayMessage
	}
	t.event(killingEvent(reason, timeout, time.Now()), true)
	h, signal, gen := t.handle, t.c.Task.KillSignal, t.generation
	t.c.Host.Go(func(ctx context.Context) {
		err := h.Stop(ctx, timeout, signal)
		if err == nil || ctx.Err() != nil || errors.Is(err, driver.ErrTaskNotRunning) {
			return
		}
		t.c.Host.Do(func() { t.stopFailed(gen, err) })
	})
}

// stopRetry is the delay before a driver that could not stop a task is called again.
const stopRetry = 5 * time.Second

func (t *Runner) stopFailed(gen int, err error) {
	if gen != t.generation || t.phase != phaseRunning || t.closed {
		return
	}
	e := NewEvent(structs.TaskKilling, time.Now(), "Could not be killed yet: "+err.Error())
	e.KillError = err.Error()
	t.event(e, true)
	t.stopTimer()
	t.timer = time.AfterFunc(stopRetry, func() {
		t.c.Host.Do(func() {
			if gen == t.generation && t.phase == phaseRunning {
				t.stopping = false
				t.stopHandle()
			}
		})
	})
}

// Restart ends the running task and starts it again, without counting it against
// the policy. A task that is dead is started again only if dead is set.
func (t *Runner) Restart(reason string, dead bool) error {
	event := func() {
		e := NewEvent(structs.TaskRestartSignal, time.Now(), reason)
		e.RestartReason = reason
		e.Details["restart_reason"] = reason
		t.event(e, false)
	}
	switch {
	case t.killing && t.phase != phaseDead:
		return fmt.Errorf("restart task %q: it is being stopped", t.Name())
	case t.phase == phaseRunning:
		event()
		t.restarting = true
		t.stopHandle()
	case t.phase == phaseBackoff:
		event()
		t.after(0, t.begin)
	case t.phase == phaseDead && dead:
		event()
		t.killing, t.killEvent = false, nil
		t.state.Task.Failed = false
		t.state.Task.FinishedAt = time.Time{}
		t.state.Restarts = Restarts{}
		t.begin()
	default:
		return fmt.Errorf("restart task %q: %w", t.Name(), driver.ErrTaskNotRunning)
	}
	return nil
}

// Signaled notes that a signal is sent; the caller sends it through the Handle.
func (t *Runner) Signaled(signal string) {
	e := NewEvent(structs.TaskSignaling, time.Now(), "Task being sent signal "+signal)
	e.TaskSignal = signal
	e.Details["task_signal"] = signal
	t.event(e, false)
}

// Close makes the runner deaf; its task goes on. The agent is ending.
func (t *Runner) Close() {
	t.closed = true
	t.stopTimer()
	if t.suspension.retry != nil {
		t.suspension.retry.Stop()
	}
	if t.cancelRun != nil {
		t.cancelRun()
	}
	if t.stopWait != nil {
		t.stopWait()
	}
}

func (t *Runner) setState(s string) { t.state.Task.State = s }

// event adds to the history and notifies the host.
func (t *Runner) event(e *structs.TaskEvent, urgent bool) {
	t.state.addEvent(e.Time, e)
	t.c.Host.Changed(t, urgent)
}

// fixed does so with an event of a kind that is always the same.
func (t *Runner) fixed(kind string, now time.Time, urgent bool) {
	t.state.addEvent(now.UnixNano(), fixedEvents[kind])
	t.c.Host.Changed(t, urgent)
}

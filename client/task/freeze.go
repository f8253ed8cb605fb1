package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

const (
	// freezeRetry is waited before a driver that could not freeze or thaw is asked again.
	freezeRetry = time.Second
	// freezeTries is how often a driver is asked to freeze before the task counts as one
	// that cannot be.
	freezeTries = 3
)

// freezer is a task's way into the cold and back. One call of the driver is under way at
// a time; what is wanted then is looked at when it has answered.
type freezer struct {
	wanted bool // it shall be frozen
	frozen bool // it is
	busy   bool // the driver is freezing or thawing
	fails  int  // calls to freeze that failed in a row
	unable bool // it cannot be frozen
	again  bool // it was frozen by an earlier life of the agent
	retry  *time.Timer
}

// Freeze has the task frozen: now if it runs, as soon as it does if it is being
// started. One that waits for its restart waits for Start instead.
func (t *Runner) Freeze() {
	if t.ice.wanted {
		return
	}
	t.ice.wanted = true
	if t.phase == phaseBackoff {
		t.hold()
	}
	t.freezeOrThaw()
}

// Thaw has the task go on.
func (t *Runner) Thaw() {
	if !t.ice.wanted {
		return
	}
	t.ice = freezer{frozen: t.ice.frozen, busy: t.ice.busy, retry: t.ice.retry}
	t.freezeOrThaw()
}

// Still tells whether nothing of the task runs, nor will before Start or Thaw.
func (t *Runner) Still() bool {
	return t.phase == phaseDead || t.phase == phaseWaiting || t.phase == phaseRunning && t.ice.frozen
}

// CannotFreeze tells whether its driver failed to freeze it, or cannot.
func (t *Runner) CannotFreeze() bool { return t.ice.unable }

// hold has a task that waits for its restart wait for Start.
func (t *Runner) hold() {
	t.stopTimer()
	t.generation++
	t.phase = phaseWaiting
	t.c.Host.Changed(t, false)
}

// freezeOrThaw does what is wanted and not so.
func (t *Runner) freezeOrThaw() {
	if t.ice.busy || t.closed || t.phase != phaseRunning {
		return
	}
	switch {
	case t.ice.wanted && !t.ice.frozen && !t.ice.unable && !t.killing && !t.stopping:
		t.freeze()
	case !t.ice.wanted && t.state.Frozen:
		t.callDriver(nil, func(ctx context.Context, p driver.Pauser) error { return p.Resume(ctx) }, t.thawed)
	}
}

func (t *Runner) freeze() {
	if _, ok := t.handle.(driver.Pauser); !ok {
		t.freezeFailed(fmt.Errorf("driver %s cannot freeze its tasks", t.c.Task.Driver), true)
		return
	}
	// Noted before it is done: whatever life of the agent comes next must thaw it.
	t.ice.again, t.state.Frozen = t.state.Frozen, true
	saved := make(chan error, 1)
	t.c.Host.Save(func(err error) { saved <- err })
	t.callDriver(saved, func(ctx context.Context, p driver.Pauser) error { return p.Pause(ctx) }, t.froze)
}

// callDriver makes a call of the driver once saved says that the state is durable.
func (t *Runner) callDriver(saved <-chan error, call func(context.Context, driver.Pauser) error, done func(error)) {
	p, ok := t.handle.(driver.Pauser)
	if !ok {
		return
	}
	t.ice.busy = true
	gen := t.generation
	t.c.Host.Go(func(ctx context.Context) {
		var err error
		if saved != nil {
			select {
			case err = <-saved:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err == nil {
			err = call(ctx, p)
		}
		t.c.Host.Do(func() {
			t.ice.busy = false
			switch {
			case t.closed || ctx.Err() != nil:
				return // the next life of the agent goes on
			case gen != t.generation || t.phase != phaseRunning: // another run, or none
			case errors.Is(err, driver.ErrTaskNotRunning):
				return // its end is told elsewhere
			default:
				t.keep(t.handle)
				done(err)
			}
			t.freezeOrThaw()
		})
	})
}

// froze takes the outcome of a freezing.
func (t *Runner) froze(err error) {
	if err != nil {
		t.ice.fails++
		t.freezeFailed(err, t.ice.fails >= freezeTries)
		return
	}
	t.ice.frozen, t.ice.fails = true, 0
	if !t.ice.again {
		t.event(NewEvent(structs.TaskSuspended, time.Now(), "Task frozen in place; its memory and files are kept"), true)
	}
	t.c.Host.Changed(t, true)
	t.c.Host.Save(nil)
}

// thawed takes the outcome of a thawing. One that fails is tried for ever.
func (t *Runner) thawed(err error) {
	if err != nil {
		t.event(failureEvent(structs.TaskSuspendFailure, fmt.Errorf("could not be thawed yet: %w", err), time.Now()), true)
		t.retryFreezing()
		return
	}
	t.ice.frozen, t.state.Frozen = false, false
	t.event(NewEvent(structs.TaskResumed, time.Now(), "Task goes on where it was"), true)
	t.c.Host.Save(nil)
}

func (t *Runner) freezeFailed(err error, final bool) {
	if t.ice.unable = final; !final {
		t.retryFreezing()
		return
	}
	t.event(failureEvent(structs.TaskSuspendFailure, fmt.Errorf("could not be frozen: %w", err), time.Now()), true)
}

func (t *Runner) retryFreezing() {
	t.ice.busy = true // until then
	t.ice.retry = time.AfterFunc(freezeRetry, func() {
		t.c.Host.Do(func() {
			t.ice.busy = false
			t.freezeOrThaw()
		})
	})
}

// melted forgets that a run was frozen: it has ended.
func (t *Runner) melted() {
	t.ice.frozen, t.state.Frozen = false, false
}

// Tell adds an event that is no doing of the task's own to its history, while it is not dead.
func (t *Runner) Tell(e *structs.TaskEvent) {
	if t.phase != phaseDead && !t.closed {
		t.event(e, true)
	}
}

// Note adds an event to the history of a task that does not run.
func (t *Runner) Note(e *structs.TaskEvent) {
	if t.phase == phaseWaiting || t.phase == phaseRunning && t.ice.frozen {
		t.event(e, true)
	}
}

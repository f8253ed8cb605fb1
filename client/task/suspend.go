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
	// suspendRetry is the delay before a call of the driver that failed to suspend or resume is repeated.
	suspendRetry = time.Second
	// suspendTries is how many calls in a row may fail to suspend before the task counts as one
	// that cannot be suspended.
	suspendTries = 3
)

// suspension is the state of suspending and resuming a task. One call of the driver is under way at
// a time; what is wanted by then is compared again when it has returned.
type suspension struct {
	runner    *Runner // of the task
	wanted    bool    // it is to be suspended
	suspended bool    // it is
	busy      bool    // the driver is suspending or resuming it
	fails     int     // calls to suspend that failed in a row
	unable    bool    // it cannot be suspended
	again     bool    // it was suspended by an earlier life of the agent
	retry     *time.Timer
}

// Suspend suspends the task: now if it runs, as soon as it does if it is being
// started. One that waits for its restart waits for Start instead.
func (t *Runner) Suspend() {
	if t.suspension.wanted {
		return
	}
	t.suspension.wanted = true
	if t.phase == phaseBackoff {
		t.waitForStart()
	}
	t.suspension.suspendOrResume()
}

// Resume resumes the task.
func (t *Runner) Resume() {
	if !t.suspension.wanted {
		return
	}
	s := &t.suspension // not replaced as a whole: a call of the driver may be reading its runner
	s.wanted, s.fails, s.unable, s.again = false, 0, false, false
	t.suspension.suspendOrResume()
}

// Quiescent reports whether nothing of the task runs, nor will before Start or Resume.
func (t *Runner) Quiescent() bool {
	return t.phase == phaseDead || t.phase == phaseWaiting || t.phase == phaseRunning && t.suspension.suspended
}

// CannotSuspend reports whether its driver failed to suspend it, or does not support that.
func (t *Runner) CannotSuspend() bool { return t.suspension.unable }

// waitForStart makes a task that waits for its restart wait for Start.
func (t *Runner) waitForStart() {
	t.stopTimer()
	t.generation++
	t.phase = phaseWaiting
	t.c.Host.Changed(t, false)
}

// suspendOrResume calls the driver if the task is not in the state that is wanted.
func (s *suspension) suspendOrResume() {
	if s.busy || s.runner.closed || s.runner.phase != phaseRunning {
		return
	}
	switch {
	case s.wanted && !s.suspended && !s.unable && !s.runner.killing && !s.runner.stopping:
		s.suspend()
	case !s.wanted && s.runner.state.Suspended:
		s.callDriver(nil, func(ctx context.Context, p driver.Suspender) error { return p.Resume(ctx) }, s.resumeDone)
	}
}

func (s *suspension) suspend() {
	if _, ok := s.runner.handle.(driver.Suspender); !ok {
		s.suspendFailed(fmt.Errorf("driver %s cannot suspend its tasks", s.runner.c.Task.Driver), true)
		return
	}
	// Noted before it is done: whatever life of the agent comes next must resume it.
	s.again, s.runner.state.Suspended = s.runner.state.Suspended, true
	saved := make(chan error, 1)
	s.runner.c.Host.Save(func(err error) { saved <- err })
	s.callDriver(saved, func(ctx context.Context, p driver.Suspender) error { return p.Suspend(ctx) }, s.suspendDone)
}

// callDriver makes a call of the driver once saved reports that the state is durable.
func (s *suspension) callDriver(saved <-chan error, call func(context.Context, driver.Suspender) error, done func(error)) {
	p, ok := s.runner.handle.(driver.Suspender)
	if !ok {
		return
	}
	s.busy = true
	gen := s.runner.generation
	s.runner.c.Host.Go(func(ctx context.Context) {
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
		s.runner.c.Host.Do(func() {
			s.busy = false
			switch {
			case s.runner.closed || ctx.Err() != nil:
				return // the next life of the agent continues
			case gen != s.runner.generation || s.runner.phase != phaseRunning: // another run, or none
			case errors.Is(err, driver.ErrTaskNotRunning):
				return // its end is reported elsewhere
			default:
				s.runner.keep(s.runner.handle)
				done(err)
			}
			s.suspendOrResume()
		})
	})
}

// suspendDone handles the outcome of a call to suspend.
func (s *suspension) suspendDone(err error) {
	if err != nil {
		s.fails++
		s.suspendFailed(err, s.fails >= suspendTries)
		return
	}
	s.suspended, s.fails = true, 0
	if !s.again {
		s.runner.event(NewEvent(structs.TaskSuspended, time.Now(), "Task suspended; its memory and files are kept"), true)
	}
	s.runner.c.Host.Changed(s.runner, true)
	s.runner.c.Host.Save(nil)
}

// resumeDone handles the outcome of a call to resume. One that fails is repeated until it succeeds.
func (s *suspension) resumeDone(err error) {
	if err != nil {
		s.runner.event(failureEvent(structs.TaskSuspendFailure, fmt.Errorf("could not be resumed yet: %w", err), time.Now()), true)
		s.retrySuspension()
		return
	}
	s.suspended, s.runner.state.Suspended = false, false
	s.runner.event(NewEvent(structs.TaskResumed, time.Now(), "Task resumed"), true)
	s.runner.c.Host.Save(nil)
}

func (s *suspension) suspendFailed(err error, final bool) {
	if s.unable = final; !final {
		s.retrySuspension()
		return
	}
	s.runner.event(failureEvent(structs.TaskSuspendFailure, fmt.Errorf("could not be suspended: %w", err), time.Now()), true)
}

func (s *suspension) retrySuspension() {
	s.busy = true // until then
	s.retry = time.AfterFunc(suspendRetry, func() {
		s.runner.c.Host.Do(func() {
			s.busy = false
			s.suspendOrResume()
		})
	})
}

// clearSuspension forgets that a run was suspended: it has ended.
func (t *Runner) clearSuspension() {
	t.suspension.suspended, t.state.Suspended = false, false
}

// AddEvent adds an event that the task did not cause itself to its history, while it is not dead.
func (t *Runner) AddEvent(e *structs.TaskEvent) {
	if t.phase != phaseDead && !t.closed {
		t.event(e, true)
	}
}

// AddIdleEvent adds an event to the history of a task that does not run.
func (t *Runner) AddIdleEvent(e *structs.TaskEvent) {
	if t.phase == phaseWaiting || t.phase == phaseRunning && t.suspension.suspended {
		t.event(e, true)
	}
}

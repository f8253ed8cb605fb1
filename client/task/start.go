package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// Start starts a waiting task.
func (t *Runner) Start() {
	if t.phase != phaseWaiting || t.killing || t.closed {
		return
	}
	t.begin()
}

// newRunID names a start. The random part keeps it different from those of a life
// whose state was lost.
func (t *Runner) newRunID() string {
	return fmt.Sprintf("%s-%s-%08x", t.c.AllocID, t.c.Task.Name, rand.Uint32()) // not a secret
}

func (t *Runner) begin() {
	t.phase = phaseStarting
	t.restarting, t.stopping = false, false
	t.clearSuspension()
	t.generation++
	gen := t.generation
	t.state.RestartAt = time.Time{}
	old := earlier{t.handle, t.state.Handle}
	t.handle = nil
	t.state.RunID = t.newRunID()
	t.state.Handle = nil
	t.setState(structs.TaskStatePending)
	t.fixed(structs.TaskSetup, time.Now(), false)
	if t.c.Driver == nil {
		t.startFailed(gen, structs.TaskDriverFailure, t.c.DriverErr)
		return
	}
	saved := make(chan error, 1)
	t.c.Host.Save(func(err error) { saved <- err })
	runID := t.state.RunID
	t.c.Host.Go(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		proceed := false
		t.c.Host.Do(func() {
			if proceed = t.generation == gen && !t.killing; proceed {
				t.cancelRun = cancel
			}
		})
		if !proceed {
			t.c.Host.Do(func() { t.startAborted(gen) })
			return
		}
		h, kind, err := t.launch(ctx, runID, saved, old)
		t.c.Host.Do(func() { t.launched(ctx, gen, h, kind, err) })
	})
}

// earlier is the run before this start.
type earlier struct {
	handle driver.Handle
	state  []byte
}

// release drops what the driver keeps of it. Failing to costs only disk space.
func (e earlier) release(ctx context.Context, d driver.Driver) {
	if e.handle == nil && len(e.state) > 0 {
		e.handle, _ = d.Recover(ctx, e.state)
	}
	if e.handle != nil {
		_ = driver.Release(ctx, e.handle)
	}
}

// launch does the slow part of a start, without the lock: what can go wrong has a
// kind of event.
func (t *Runner) launch(ctx context.Context, runID string, saved <-chan error, old earlier) (driver.Handle, string, error) {
	release, err := t.c.Host.StartSlot(ctx)
	if err != nil {
		return nil, structs.TaskSetupFailure, err
	}
	defer release()
	config, err := t.c.Prepare(ctx, runID)
	if err != nil {
		return nil, structs.TaskSetupFailure, err
	}
	if err := t.c.Driver.Validate(config.Config); err != nil {
		return nil, structs.TaskFailedValidation, err
	}
	select {
	case err := <-saved:
		if err != nil {
			return nil, structs.TaskSetupFailure, driver.Recoverable(fmt.Errorf("keep the task's state: %w", err))
		}
	case <-ctx.Done():
		return nil, structs.TaskSetupFailure, ctx.Err()
	}
	old.release(ctx, t.c.Driver)
	h, err := t.c.Driver.Start(ctx, config)
	return h, structs.TaskDriverFailure, err
}

// launched takes the outcome of a start.
func (t *Runner) launched(ctx context.Context, gen int, h driver.Handle, kind string, err error) {
	if t.generation != gen {
		return
	}
	t.cancelRun = nil
	switch {
	case err == nil:
		if !t.state.Ran { // it would be the same at each restart
			for _, note := range driver.Notes(h) {
				t.event(NewEvent(structs.TaskDriverMessage, time.Now(), note), false)
			}
		}
		t.started(h, structs.TaskStarted)
	case t.killing:
		t.cutShort()
	case t.closed || ctx.Err() != nil:
		// The agent ends: the next life starts the task.
	default:
		t.startFailed(gen, kind, err)
	}
}

func (t *Runner) startAborted(gen int) {
	if t.generation == gen && t.killing {
		t.cutShort()
	}
}

// cutShort ends a task that is killed while it does not run. Without a word of that nobody could distinguish it from one
// whose work is done.
func (t *Runner) cutShort() {
	if t.killEvent == nil {
		t.fixed(structs.TaskKilled, time.Now(), false)
	}
	t.die(false)
}

// started takes over a task that runs: new (TaskStarted) or found (TaskReattached).
func (t *Runner) started(h driver.Handle, kind string) {
	now := time.Now()
	t.handle, t.phase = h, phaseRunning
	t.keep(h)
	t.state.Ran = true
	if kind == structs.TaskStarted || t.state.Task.StartedAt.IsZero() {
		t.state.Task.StartedAt = now.UTC()
	}
	t.setState(structs.TaskStateRunning)
	t.fixed(kind, now, true)
	t.c.Host.Save(nil)
	if t.closed {
		return // the next life of the agent finds it
	}
	t.watchExit(h)
	if t.killing {
		t.stopHandle()
	}
	t.suspension.suspendOrResume()
}

// keep notes how the next life of the agent finds what h started.
func (t *Runner) keep(h driver.Handle) {
	if t.c.Durable {
		t.state.Handle = h.State()
	}
}

func (t *Runner) startFailed(gen int, kind string, err error) {
	if gen != t.generation {
		return
	}
	now := time.Now()
	t.event(failureEvent(kind, err, now), false)
	t.decide(false, driver.IsRecoverable(err), now)
}

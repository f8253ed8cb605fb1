package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// recoverRetry is waited before a driver that failed to recover a task is called
// again.
const recoverRetry = time.Second

// Recover takes up what an earlier life of the agent left: it finds the running
// task, learns the end of one that ended meanwhile, or goes on waiting for a
// restart. A task of which nothing can be found waits for Start, as does one that
// was about to be started.
func (t *Runner) Recover() {
	switch {
	case t.phase == phaseDead:
		if len(t.state.Handle) > 0 && t.c.Driver != nil {
			t.c.Host.Go(t.releaseDead)
		}
	case len(t.state.Handle) > 0 && t.c.Driver != nil && t.state.RestartAt.IsZero():
		t.phase = phaseRecover
		t.find()
	case t.state.RunID != "" && t.finder() != nil && t.state.RestartAt.IsZero():
		// The agent died while the task was being started.
		t.phase = phaseRecover
		t.find()
	case !t.state.RestartAt.IsZero():
		t.phase = phaseBackoff
		t.after(max(0, time.Until(t.state.RestartAt)), func() {
			// Like a lost task: the servers may not want it any more.
			t.phase = phaseWaiting
			t.c.Host.Changed(t, false)
		})
	case t.c.Driver == nil && t.state.Ran:
		t.lost(t.c.DriverErr)
	}
}

// finder is the driver, if it finds tasks by their ID.
func (t *Runner) finder() driver.Finder {
	f, _ := t.c.Driver.(driver.Finder)
	return f
}

func (t *Runner) find() {
	gen, state, id := t.generation, t.state.Handle, t.state.RunID
	t.c.Host.Go(func(ctx context.Context) {
		var h driver.Handle
		var err error
		if len(state) > 0 {
			h, err = t.c.Driver.Recover(ctx, state)
		} else {
			h, err = t.finder().Find(ctx, id)
		}
		t.c.Host.Do(func() {
			switch {
			case t.closed || t.generation != gen || ctx.Err() != nil:
			case err == nil:
				t.started(h, structs.TaskReattached)
			case errors.Is(err, driver.ErrTaskNotFound) && len(state) == 0:
				t.unstarted()
			case errors.Is(err, driver.ErrTaskNotFound):
				t.lost(err)
			default:
				t.after(recoverRetry, t.find)
			}
		})
	})
}

// unstarted makes a task that was about to be started wait for Start again.
func (t *Runner) unstarted() {
	t.state.RunID = ""
	if t.killing {
		t.cutShort()
		return
	}
	t.phase = phaseWaiting
	t.c.Host.Changed(t, false)
}

// lost gives up a task of which nothing can be found: nobody knows how it ended.
// It is started anew once the servers have confirmed that they still want it.
func (t *Runner) lost(err error) {
	t.state.Handle, t.state.RunID = nil, ""
	t.event(failureEvent(structs.TaskRestoreFailed, fmt.Errorf("the task is gone: %w", err), time.Now()), false)
	if t.killing {
		t.cutShort()
		return
	}
	t.phase = phaseWaiting
	t.state.Task.Restarts++
	t.setState(structs.TaskStatePending)
	t.c.Host.Save(nil)
	t.c.Host.Changed(t, true)
}

// releaseDead drops what the driver kept of a task whose end was durable before
// the agent ended.
func (t *Runner) releaseDead(ctx context.Context) {
	var state []byte
	t.c.Host.Do(func() { state = t.state.Handle })
	h, err := t.c.Driver.Recover(ctx, state)
	if err == nil {
		err = driver.Release(ctx, h)
	}
	if err != nil && !errors.Is(err, driver.ErrTaskNotFound) {
		return // tried again by the next life of the agent
	}
	t.c.Host.Do(func() {
		t.state.Handle = nil
		t.c.Host.Save(nil)
	})
}

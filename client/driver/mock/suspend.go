package mock

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// CanSuspend is true (driver.SuspendCapable).
func (d *Driver) CanSuspend() bool { return true }

// Suspend makes the task's time stand still (driver.Suspender): it neither ends nor prints.
func (h *handle) Suspend(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return driver.ErrTaskNotRunning
	case h.s.SuspendedAt.IsZero():
		h.s.SuspendedAt = h.clock.Now()
		h.suspensions++
		h.stopTimers()
	}
	return nil
}

// Resume lets it go on: what was left of its time is left.
func (h *handle) Resume(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return driver.ErrTaskNotRunning
	}
	h.resumeAt(h.clock.Now())
	return nil
}

// stopTimers takes all timers back. h.mu is held.
func (h *handle) stopTimers() {
	if h.stopEnd != nil {
		h.stopEnd()
		h.stopEnd, h.endAt = nil, time.Time{} // one that fires all the same finds another time
	}
	for i, stop := range h.stopTalk {
		if stop != nil {
			stop()
			h.stopTalk[i] = nil
		}
	}
}

// resumeAt moves the task's beginning by the time that it stood still, and sets its timers
// again. h.mu is held.
func (h *handle) resumeAt(now time.Time) {
	if h.s.SuspendedAt.IsZero() || h.over {
		return
	}
	h.s.StartedAt = h.s.StartedAt.Add(now.Sub(h.s.SuspendedAt))
	h.s.SuspendedAt = time.Time{}
	h.setTimers()
}

// setTimers sets the timers of what is still to come, unless time stands still. h.mu is
// held.
func (h *handle) setTimers() {
	if !h.s.SuspendedAt.IsZero() {
		return
	}
	for i := range h.stopTalk {
		h.talkOn(i)
	}
	h.endBy(h.s.StartedAt.Add(h.s.Plan.RunFor), false)
}

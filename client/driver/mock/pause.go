package mock

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// Freezes is true (driver.Freezer).
func (d *Driver) Freezes() bool { return true }

// Pause makes the task's time stand still (driver.Pauser): it neither ends nor speaks.
func (h *handle) Pause(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return driver.ErrTaskNotRunning
	case h.s.PausedAt.IsZero():
		h.s.PausedAt = h.clock.Now()
		h.pauses++
		h.still()
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
	h.thaw(h.clock.Now())
	return nil
}

// still takes all timers back. h.mu is held.
func (h *handle) still() {
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

// thaw moves the task's beginning by the time that it stood still, and sets its timers
// again. h.mu is held.
func (h *handle) thaw(now time.Time) {
	if h.s.PausedAt.IsZero() || h.over {
		return
	}
	h.s.StartedAt = h.s.StartedAt.Add(now.Sub(h.s.PausedAt))
	h.s.PausedAt = time.Time{}
	h.resume()
}

// resume sets the timers of what is still to come, unless time stands still. h.mu is
// held.
func (h *handle) resume() {
	if !h.s.PausedAt.IsZero() {
		return
	}
	for i := range h.stopTalk {
		h.talkOn(i)
	}
	h.endBy(h.s.StartedAt.Add(h.s.Plan.RunFor), false)
}

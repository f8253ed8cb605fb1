package workflow

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Steps is a driver that works as [Driver.Run] has it work, but is moved on by its caller, one step after the other, on its
// goroutine: for simulations.
type Steps struct {
	d    *Driver
	feed *state.Feed
	open map[structs.NamespacedID]bool // workflows to look at in the next step
	due  bool                          // reservations are to be looked at
	last time.Time                     // when they were
}

// Start returns a driver that [Steps.Step] moves on. All runs that have not ended are looked at in its first step.
func (d *Driver) Start() *Steps {
	snap := d.store.Snapshot()
	return &Steps{d: d, feed: d.store.Feed(snap.Index()), open: alive(snap), due: true}
}

// Step moves on what has changed since the step before, and tries again what failed in that.
func (s *Steps) Step(ctx context.Context) {
	for {
		changes, found, err := s.feed.Poll()
		if err != nil { // it has fallen behind
			*s = *s.d.Start()
			break
		}
		if !found {
			break
		}
		s.due = s.due || mayReserve(&changes)
		if begins(&changes) {
			s.last = time.Time{}
		}
		for id := range changed(&changes) { // order does not matter: a set made of a set
			s.open = with(s.open, id)
		}
	}
	s.open = s.d.look(ctx, s.open)
	if now := s.d.opts.Clock.Now(); s.due && now.Sub(s.last) >= reserveEvery {
		s.due, s.last = s.d.reserve(ctx), now
	}
}

// Again returns in how long Step has something to do though nothing has happened; false: it has not.
func (s *Steps) Again() (time.Duration, bool) {
	switch {
	case s.due:
		return max(0, s.last.Add(reserveEvery).Sub(s.d.opts.Clock.Now())), true
	case len(s.open) > 0:
		return retryAfter, true
	}
	return 0, false
}

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
	v    *reserving
}

// Start returns a driver that [Steps.Step] moves on. All runs that have not ended are looked at in its first step.
func (d *Driver) Start() *Steps {
	snap := d.store.Snapshot()
	return &Steps{d: d, feed: d.store.Feed(snap.Index()), open: alive(snap), v: newReserving(d)}
}

// Step moves on what has changed since the step before, and tries again what failed in that.
func (s *Steps) Step(ctx context.Context) {
	if s.feed.Each(func(changes *state.Changes) {
		s.v.note(changes)
		for id := range changed(changes) { // order does not matter: a set made of a set
			s.open = with(s.open, id)
		}
	}) != nil { // it has fallen behind
		*s = *s.d.Start()
	}
	s.open = s.d.look(ctx, s.open)
	if s.v.ready() {
		s.v.reserve(ctx, func() bool { return true })
	}
}

// Again returns in how long Step has something to do though nothing has happened; false: it has not.
func (s *Steps) Again() (time.Duration, bool) {
	wait := s.v.pause(s.open)
	return wait, wait > 0
}

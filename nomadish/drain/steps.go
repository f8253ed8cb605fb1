package drain

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/statefeed"
)

// Steps is a drainer that works as [Drainer.Run] has it work, but is moved on by its caller,
// one step after the other, on its goroutine: for simulations.
type Steps struct {
	d      *Drainer
	store  *state.Store
	follow *statefeed.Follower
	watch  *watch
	due    time.Time // of the next look, if looks
	looks  bool
}

// Start begins to drain, by a clock.
func (d *Drainer) Start(store *state.Store, c clock.Clock) *Steps {
	d.clock = c
	s := &Steps{d: d, store: store}
	s.follow = statefeed.Follow(store, s.resync, func(changes *state.Changes) {
		if s.watch.note(*changes) {
			s.due, s.looks = s.d.clock.Now(), true
		}
	})
	return s
}

func (s *Steps) resync(snap *state.Snapshot) {
	s.watch = watchOf(snap)
	s.due, s.looks = s.d.clock.Now(), true
}

// Step takes in what was committed, and looks at the draining nodes if that is called for.
func (s *Steps) Step(ctx context.Context) {
	for s.follow.Next() {
		continue // it has been taken in
	}
	if !s.looks || s.d.clock.Now().Before(s.due) {
		return
	}
	next := s.d.look(ctx, s.store.Snapshot(), s.watch)
	s.due, s.looks = s.d.clock.Now().Add(next), next > 0
}

// Again returns in how long Step has something to do though nothing has happened; false: it has not.
func (s *Steps) Again() (time.Duration, bool) { return max(0, s.due.Sub(s.d.clock.Now())), s.looks }

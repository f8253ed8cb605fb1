package heartbeat

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/statefeed"
)

// Pulse is how often [Steps.Pulse] is to be called.
const Pulse = pulse

// Steps is timers that run as [Timers.Run] has them run, but are moved on by their caller,
// one step after the other, on its goroutine: for simulations.
type Steps struct {
	t      *Timers
	follow *statefeed.Follower
	watch  *watcher
}

// Check is a node that is to be probed by both ways.
type Check struct {
	NodeID string
	began  time.Time
}

// Start begins to wait for the nodes that the state knows.
func (t *Timers) Start(store *state.Store) *Steps {
	t.start(store)
	return &Steps{t: t, follow: statefeed.Follow(store, t.resync, t.committed), watch: &watcher{t: t}}
}

// Follow takes in the next commit, or all of the state where the feed has moved on; false:
// there was nothing to be taken in.
func (s *Steps) Follow() bool { return s.follow.Next() }

// Mark marks nodes down whose time is over; false: there is none.
func (s *Steps) Mark(ctx context.Context) bool { return s.t.markSome(ctx) }

// Watch declares what the checks have found, and returns those that begin now: of each the caller reports what has come of it, by
// [Steps.Checked], when both ways have answered or Liveness.Check is over.
func (s *Steps) Watch(ctx context.Context) (checks []Check) {
	for _, r := range s.watch.due() {
		checks = append(checks, Check{r.id, r.began})
	}
	s.watch.declare(ctx)
	s.watch.report(ctx)
	return checks
}

// Checked judges a check by which ways the node has answered.
func (s *Steps) Checked(c Check, session, gossip bool) {
	s.watch.take(result{id: c.NodeID, began: c.began, session: session, gossip: gossip})
}

// Pulse records that the process runs. When it was not called for much longer than it is to be,
// the process stood still, and nodes get their time anew.
func (s *Steps) Pulse() { s.t.pulse() }

// Stop waits for nobody any more.
func (s *Steps) Stop() { s.t.stop() }

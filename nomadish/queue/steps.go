package queue

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/statefeed"
	"github.com/nomadish/nomadish/structs"
)

// Steps is a broker that runs as [Broker.Run] has it run, but is moved on by its caller, one
// step after the other, on its goroutine: for simulations, in which nothing may depend on how
// goroutines take turns. Of the broker's own methods Await, CatchUp and Dequeue wait for
// others, so they must not be called.
type Steps struct {
	b      *Broker
	follow *statefeed.Follower
	chores *chores
	later  time.Duration // see Later
}

// Start fills the broker from the state.
func (b *Broker) Start(store *state.Store) *Steps {
	s := &Steps{b: b, chores: b.enable(store)}
	s.follow = statefeed.Follow(store, b.resync, func(c *state.Changes) { b.committed(store.Snapshot(), c) })
	return s
}

// Follow takes in the next commit, or all of the state where the feed has moved on without
// the broker; false: there was nothing to be taken in.
func (s *Steps) Follow() bool { return s.follow.Next() }

// Take is Dequeue without waiting; a nil evaluation: there is none to be taken now.
func (s *Steps) Take(schedulers []string) (*structs.EvalDequeueReply, error) {
	got, _, later, err := s.b.take(schedulers)
	s.later = later
	return got, err
}

// Later returns in how long an evaluation has waited for its gate for long enough, which the last call of Take did not return for that reason; 0:
// there is none.
func (s *Steps) Later() time.Duration { return s.later }

// Chores commits what the broker wants to be changed, once; false: there was nothing. What
// could not be committed is wanted still.
func (s *Steps) Chores(ctx context.Context) (did bool, err error) {
	batch := s.chores.take()
	if len(batch) == 0 {
		return false, nil
	}
	if err = s.chores.commit(ctx, s.b.applier, s.b.opts.Logger, batch); err != nil {
		for _, w := range batch {
			s.chores.put(true, w)
		}
	}
	return true, err
}

// Untried reports whether there may be something for a queue pass since the last call.
func (s *Steps) Untried() bool {
	select {
	case <-s.b.gates.untried:
		return true
	default:
		return false
	}
}

// Stop empties the broker.
func (s *Steps) Stop() { s.b.disable() }

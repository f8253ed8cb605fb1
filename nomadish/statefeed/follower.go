// Package statefeed is for those who keep what they make of the state current as commits come, on a goroutine of their own. It must never change the state.
package statefeed

import "github.com/nomadish/nomadish/nomadish/state"

// Follower keeps what its caller makes of the state current, one commit after the other, on the caller's goroutine.
type Follower struct {
	store     *state.Store
	feed      *state.Feed
	resync    func(*state.Snapshot)
	committed func(*state.Changes)
}

// Follow calls resync with the state as it is, and returns a follower that goes on from there: it calls committed for each commit, and resync anew
// where the feed has moved on without it.
func Follow(store *state.Store, resync func(*state.Snapshot), committed func(*state.Changes)) *Follower {
	f := &Follower{store: store, resync: resync, committed: committed}
	f.start()
	return f
}

func (f *Follower) start() {
	snap := f.store.Snapshot()
	f.feed = f.store.Feed(snap.Index())
	f.resync(snap)
}

// Next takes in the next commit, or all of the state where the feed has moved on; false: there was nothing to be taken in.
func (f *Follower) Next() bool {
	changes, found, err := f.feed.Poll()
	switch {
	case err != nil:
		f.start()
		return true
	case found:
		f.committed(&changes)
	}
	return found
}

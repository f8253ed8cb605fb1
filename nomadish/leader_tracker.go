package nomadish

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/rpc"
)

// leaderTracker follows Raft's leadership, as this server knows it, and notifies waiters when it changes.
type leaderTracker struct {
	mu       sync.Mutex
	leader   rpc.Reign
	lastAddr string             // the address that led last
	end      context.CancelFunc // of what it led
	changed  chan struct{}      // closed at the next change

	observer *raft.Observer
	seen     chan raft.Observation
	done     chan struct{}
	wg       sync.WaitGroup
}

func newLeaderTracker() *leaderTracker {
	t := &leaderTracker{changed: make(chan struct{}), seen: make(chan raft.Observation, 16), done: make(chan struct{})}
	t.leader.Over, t.end = context.WithCancel(context.Background())
	return t
}

// watch follows Raft's leadership until close.
func (t *leaderTracker) watch(r *raft.Raft) {
	// A dropped observation is harmless: any queued one triggers a read of the current leader.
	t.observer = raft.NewObserver(t.seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(t.observer)
	look := func() {
		addr, id := r.LeaderWithID()
		t.set(string(addr), string(id))
	}
	look() // it may have come before the observer
	t.wg.Go(func() {
		for {
			select {
			case <-t.seen:
				look()
			case <-t.done:
				r.DeregisterObserver(t.observer)
				return
			}
		}
	})
}

// set notes who leads now. A leader counts until another is known: one that does not
// answer for a while may still lead.
func (t *leaderTracker) set(addr, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr != "" && addr != t.lastAddr {
		t.lastAddr = addr
		t.end()
		t.leader.Over, t.end = context.WithCancel(context.Background())
	}
	t.leader.Addr, t.leader.ID = addr, id
	t.announceLocked()
}

// announce wakes those that wait for a change.
func (t *leaderTracker) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.announceLocked()
}

func (t *leaderTracker) announceLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *leaderTracker) close() {
	close(t.done)
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}

// leadership shows Raft to the endpoints.
type leadership struct {
	*raftNode
	leading func() bool
}

// Reign implements rpc.Leadership.
func (l *leadership) Reign() rpc.Reign {
	l.leaders.mu.Lock()
	defer l.leaders.mu.Unlock()
	return l.leaders.leader
}

// Changed implements rpc.Leadership.
func (l *leadership) Changed() <-chan struct{} {
	l.leaders.mu.Lock()
	defer l.leaders.mu.Unlock()
	return l.leaders.changed
}

// IsLeader implements rpc.Leadership.
func (l *leadership) IsLeader() bool { return l.leading() }

// Verify implements rpc.Leadership.
func (l *leadership) Verify(ctx context.Context) error { return l.await(ctx, l.VerifyLeader()) }

// LastContact implements rpc.Leadership.
func (l *leadership) LastContact() time.Duration {
	if l.State() == raft.Leader {
		return 0
	}
	at := l.Raft.LastContact()
	if at.IsZero() {
		return -1
	}
	return time.Since(at)
}

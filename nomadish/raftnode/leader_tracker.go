package raftnode

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// LeaderInfo is who leads, as this server knows.
type LeaderInfo struct {
	Addr string // RPC; empty: nobody
	ID   string
	// Over ends when this server learns of another leader.
	Over context.Context
}

// leaderTracker follows Raft's leadership, as this server knows it, and notifies waiters when it changes.
type leaderTracker struct {
	mu       sync.Mutex
	leader   LeaderInfo
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

// LeaderInfo returns who leads, as this server knows.
func (n *Node) LeaderInfo() LeaderInfo {
	n.leaders.mu.Lock()
	defer n.leaders.mu.Unlock()
	return n.leaders.leader
}

// Changed returns a channel that is closed when who leads may have changed.
func (n *Node) Changed() <-chan struct{} {
	n.leaders.mu.Lock()
	defer n.leaders.mu.Unlock()
	return n.leaders.changed
}

// Announce wakes those that wait for Changed: what a leader runs is started.
func (n *Node) Announce() { n.leaders.announce() }

// Verify confirms with a majority that this server still leads.
func (n *Node) Verify(ctx context.Context) error { return n.Await(ctx, n.VerifyLeader()) }

// LeaderContact returns how long ago this server heard of the leader; negative: never.
func (n *Node) LeaderContact() time.Duration {
	if n.State() == raft.Leader {
		return 0
	}
	at := n.LastContact()
	if at.IsZero() {
		return -1
	}
	return time.Since(at)
}

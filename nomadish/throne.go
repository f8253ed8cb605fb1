package nomadish

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/rpc"
)

// throne is who leads, as this server knows, with notices of changes for those that
// wait.
type throne struct {
	mu      sync.Mutex
	reign   rpc.Reign
	ruler   string             // the address that led last
	end     context.CancelFunc // of its reign
	changed chan struct{}      // closed at the next change

	observer *raft.Observer
	seen     chan raft.Observation
	done     chan struct{}
	wg       sync.WaitGroup
}

func newThrone() *throne {
	t := &throne{changed: make(chan struct{}), seen: make(chan raft.Observation, 16), done: make(chan struct{})}
	t.reign.Over, t.end = context.WithCancel(context.Background())
	return t
}

// watch follows Raft's leadership until close.
func (t *throne) watch(r *raft.Raft) {
	// One that is full misses nothing: what is in it makes us look at the latest.
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

// set takes over what is known now. A reign lasts until another begins: one that does
// not answer for a while may go on.
func (t *throne) set(addr, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr != "" && addr != t.ruler {
		t.ruler = addr
		t.end()
		t.reign.Over, t.end = context.WithCancel(context.Background())
	}
	t.reign.Addr, t.reign.ID = addr, id
	t.announceLocked()
}

// announce wakes those that wait for a change.
func (t *throne) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.announceLocked()
}

func (t *throne) announceLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *throne) close() {
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
	l.throne.mu.Lock()
	defer l.throne.mu.Unlock()
	return l.throne.reign
}

// Changed implements rpc.Leadership.
func (l *leadership) Changed() <-chan struct{} {
	l.throne.mu.Lock()
	defer l.throne.mu.Unlock()
	return l.throne.changed
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

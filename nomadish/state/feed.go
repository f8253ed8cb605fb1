package state

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// Kind is what a Change is about.
type Kind uint8

// The kinds, with what Change.Old and Change.New hold.
const (
	KindJob            Kind = iota + 1 // *structs.Job
	KindEval                           // *structs.Evaluation
	KindAlloc                          // *AllocRow
	KindNode                           // *structs.Node
	KindConfig                         // *structs.SchedulerConfiguration
	KindReservation                    // *structs.Reservation; Key is the node ID
	KindRequest                        // *structs.PendingRequest; Key is namespace/job/group, Type one of RequestWaiting …
	KindNodePool                       // *structs.NodePool
	KindVirtualCluster                 // *structs.VirtualCluster; Key is the namespace
	KindExchange                       // *structs.Exchange; Key is its ID
	KindProject                        // *structs.Project, *structs.CalendarEdit or *structs.Flow; Key is its name, or the project's
)

// Change is one thing that a commit changed. Old and New are shared values, never
// to be changed: a created thing has Old nil, a deleted one New nil.
type Change struct {
	Kind     Kind
	Key      string // ID; for a job namespace/id
	Old, New any
	Type     string // the event type, as Nomad's stream names it
}

// Changes is all that the entry at Index changed, in the order of its making.
type Changes struct {
	Index uint64
	Items []Change
}

// changedAllocs walks the IDs of the allocations that commits have changed.
func changedAllocs(feed []Changes) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range feed {
			for i := range c.Items {
				if c.Items[i].Kind == KindAlloc && !yield(c.Items[i].Key) {
					return
				}
			}
		}
	}
}

// ErrFellBehind reports that the changes that a consumer has not seen are gone: too
// many came meanwhile, or a restore replaced the state. Read all of a snapshot and
// take a new feed from its index.
var ErrFellBehind = errors.New("feed: fell behind; start again from a snapshot")

// ring keeps the latest changes for all consumers together.
type ring struct {
	mu      sync.Mutex
	limit   int // items over all commits
	commits []Changes
	items   int
	lost    uint64        // commits up to this index are not here
	epoch   uint64        // counts restores
	more    chan struct{} // closed at the next append
}

func newRing(limit int) *ring { return &ring{limit: limit, more: make(chan struct{})} }

// append adds what was shown together. All of that is kept, whatever the limit: whoever has read what was before finds it.
func (r *ring) append(together []Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.commits)
	r.commits = append(r.commits, together...)
	for i := range together {
		r.items += len(together[i].Items)
	}
	drop := 0
	for r.items > r.limit && drop < before {
		r.items -= len(r.commits[drop].Items)
		r.lost = r.commits[drop].Index
		r.commits[drop] = Changes{} // its values may go
		drop++
	}
	r.commits = r.commits[drop:]
	r.wake()
}

// reset forgets everything: the state was replaced by one at index.
func (r *ring) reset(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits, r.items, r.lost = nil, 0, index
	r.epoch++
	r.wake()
}

func (r *ring) wake() {
	close(r.more)
	r.more = make(chan struct{})
}

// Feed reads the changes of commits in order, one consumer's position in the ring
// that all share. It is for one goroutine and needs no closing.
type Feed struct {
	ring  *ring
	after uint64
	epoch uint64
}

// Feed returns a feed of the commits after an index: a snapshot's, usually.
func (s *Store) Feed(after uint64) *Feed {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	return &Feed{ring: s.ring, after: after, epoch: s.ring.epoch}
}

// FeedKept is Feed, but where commits after the index are not kept any more it begins
// with the first that is. It is for those who do without what they missed.
func (s *Store) FeedKept(after uint64) *Feed {
	s.ring.mu.Lock()
	defer s.ring.mu.Unlock()
	return &Feed{ring: s.ring, after: max(after, s.ring.lost), epoch: s.ring.epoch}
}

// Next waits for the next commit that changed something that a Change reports. The
// error is ErrFellBehind, or ctx's.
func (f *Feed) Next(ctx context.Context) (Changes, error) {
	for {
		next, more, err := f.take()
		if err != nil || more == nil {
			return next, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Changes{}, ctx.Err()
		}
	}
}

// Poll is Next without waiting; found reports whether there is a commit.
func (f *Feed) Poll() (next Changes, found bool, err error) {
	next, more, err := f.take()
	return next, err == nil && more == nil, err
}

// take returns the next commit, or the channel to wait on.
func (f *Feed) take() (Changes, <-chan struct{}, error) {
	r := f.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.epoch != r.epoch || f.after < r.lost {
		return Changes{}, nil, ErrFellBehind
	}
	// The first after it, not the one behind it: should an entry ever be applied twice, nobody must read it again without end.
	i, _ := slices.BinarySearchFunc(r.commits, f.after, func(c Changes, after uint64) int {
		if c.Index <= after {
			return -1
		}
		return 1
	})
	if i == len(r.commits) {
		return Changes{}, r.more, nil
	}
	f.after = r.commits[i].Index
	return r.commits[i], nil, nil
}

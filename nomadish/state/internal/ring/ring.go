// Package ring keeps the latest of what commits have changed, once for all who read it in order, each at a position of its own. It knows
// nothing of what is kept. It must never block who adds to it, nor lose a part of a batch.
package ring

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFellBehind reports that the changes that a consumer has not seen are gone: too
// many came meanwhile, or a restore replaced the state. Read all of a snapshot and
// take a new feed from its index.
var ErrFellBehind = errors.New("feed: fell behind; start again from a snapshot")

// Batch is all that one commit changed, in the order of its making.
type Batch[T any] struct {
	Index uint64
	Items []T
}

// Ring keeps the latest batches. Safe for concurrent use.
type Ring[T any] struct {
	mu      sync.Mutex
	limit   int // items over all batches
	batches []Batch[T]
	items   int
	lost    uint64        // batches up to this index are not here
	epoch   uint64        // counts resets
	more    chan struct{} // closed at the next append
}

// New returns a new ring of so many items.
func New[T any](limit int) *Ring[T] { return &Ring[T]{limit: limit, more: make(chan struct{})} }

// Append adds what was shown together. All of that is kept, whatever the limit: whoever has read what was before finds it.
func (r *Ring[T]) Append(together []Batch[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.batches)
	r.batches = append(r.batches, together...)
	for i := range together {
		r.items += len(together[i].Items)
	}
	drop := 0
	for r.items > r.limit && drop < before {
		r.items -= len(r.batches[drop].Items)
		r.lost = r.batches[drop].Index
		r.batches[drop] = Batch[T]{} // its values may go
		drop++
	}
	r.batches = r.batches[drop:]
	r.wake()
}

// Drop forgets the batches up to an index, which everybody has read who is to read them.
func (r *Ring[T]) Drop(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	drop := 0
	for ; drop < len(r.batches) && r.batches[drop].Index <= index; drop++ {
		r.items -= len(r.batches[drop].Items)
		r.lost = r.batches[drop].Index
	}
	r.batches = slices.Delete(r.batches, 0, drop)
}

// Reset forgets everything: the state was replaced by one at index.
func (r *Ring[T]) Reset(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches, r.items, r.lost = nil, 0, index
	r.epoch++
	r.wake()
}

func (r *Ring[T]) wake() {
	close(r.more)
	r.more = make(chan struct{})
}

// Feed reads batches in order, one consumer's position in the ring that all share. It is for one goroutine and needs no closing.
type Feed[T any] struct {
	ring  *Ring[T]
	after uint64
	epoch uint64
}

// Feed returns a feed of the batches after an index: a snapshot's, usually.
func (r *Ring[T]) Feed(after uint64) *Feed[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Feed[T]{ring: r, after: after, epoch: r.epoch}
}

// FeedKept is Feed, but where batches after the index are not kept any more it begins with the first that is. It is for those who do
// without what they missed.
func (r *Ring[T]) FeedKept(after uint64) *Feed[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Feed[T]{ring: r, after: max(after, r.lost), epoch: r.epoch}
}

// Next waits for the next batch. The error is ErrFellBehind, or ctx's.
func (f *Feed[T]) Next(ctx context.Context) (Batch[T], error) {
	for {
		next, more, err := f.take()
		if err != nil || more == nil {
			return next, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Batch[T]{}, ctx.Err()
		}
	}
}

// Poll is Next without waiting; found reports whether there is a batch.
func (f *Feed[T]) Poll() (next Batch[T], found bool, err error) {
	next, more, err := f.take()
	return next, err == nil && more == nil, err
}

// Each calls do for each batch that is there, and waits for none. The error is ErrFellBehind.
func (f *Feed[T]) Each(do func(*Batch[T])) error {
	for {
		next, found, err := f.Poll()
		if err != nil || !found {
			return err
		}
		do(&next)
	}
}

// take returns the next batch, or the channel to wait on.
func (f *Feed[T]) take() (Batch[T], <-chan struct{}, error) {
	r := f.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.epoch != r.epoch || f.after < r.lost {
		return Batch[T]{}, nil, ErrFellBehind
	}
	// The first after it, not the one behind it: should an entry ever be applied twice, nobody must read it again without end.
	i, _ := slices.BinarySearchFunc(r.batches, f.after, func(b Batch[T], after uint64) int {
		if b.Index <= after {
			return -1
		}
		return 1
	})
	if i == len(r.batches) {
		return Batch[T]{}, r.more, nil
	}
	f.after = r.batches[i].Index
	return r.batches[i], nil, nil
}

package state

import (
	"context"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/nomadish/state/internal/allocwatch"
)

// maxWatched bounds the single things that a WatchSet watches. Beyond it whole
// tables are watched instead: a wake too many is cheaper than thousands of channels.
const maxWatched = 64

// WatchSet gathers what a reader has read, to wake it when any of that changes.
// Pass one to the reads of a snapshot, then Wait, once. It is for one goroutine. A
// nil *WatchSet gathers nothing.
type WatchSet struct {
	channels  memdb.WatchSet
	interests []allocwatch.Interest // allocations
	store     *Store                // of what was read
}

// NewWatchSet makes an empty set.
func NewWatchSet() *WatchSet { return &WatchSet{channels: memdb.NewWatchSet()} }

// Wait blocks until something gathered has changed (true) or ctx is over (false).
// A change may be one that the reader does not see: read again and compare. A set
// that gathered nothing waits for ctx.
func (w *WatchSet) Wait(ctx context.Context) bool {
	if w == nil || len(w.channels) == 0 {
		<-ctx.Done()
		return false
	}
	if len(w.interests) == 0 {
		return w.woken(ctx)
	}
	waiter := w.store.join(w.interests)
	if waiter == nil {
		return true
	}
	defer w.store.leave(waiter)
	w.channels.Add(waiter.Woken)
	defer delete(w.channels, waiter.Woken)
	return w.woken(ctx)
}

// woken waits for the channels, and then until what they report can be read.
func (w *WatchSet) woken(ctx context.Context) bool {
	if w.channels.WatchCtx(ctx) != nil {
		return false
	}
	if w.store != nil {
		w.store.published()
	}
	return true
}

// add watches ch, or, when the set is full, the whole table.
func (w *WatchSet) add(v *view, table string, ch <-chan struct{}) {
	if w == nil {
		return
	}
	w.store = v.store
	w.channels.Add(v.abandoned)
	if len(w.channels)+len(w.interests) < maxWatched {
		w.channels.Add(ch)
		return
	}
	w.addTable(v, table)
}

func (w *WatchSet) addTable(v *view, table string) {
	w.channels.Add(v.marks[tableNumber(table)].changed)
}

// addAllocs watches allocations, or, when the set is full, the whole table.
func (w *WatchSet) addAllocs(v *view, kind allocwatch.Kind, key string) {
	if w == nil {
		return
	}
	w.store = v.store
	w.channels.Add(v.abandoned)
	if kind == allocwatch.Prefix && len(key) > allocwatch.MaxPrefix {
		key = key[:allocwatch.MaxPrefix]
	}
	if len(w.channels)+len(w.interests) < maxWatched {
		w.interests = append(w.interests, allocwatch.Interest{Subject: allocwatch.Subject{Kind: kind, Key: key}, Seen: v.allocs})
		return
	}
	w.addTable(v, TableAllocs)
}

// join and leave are the hub's, for a WatchSet that is being waited on.
func (s *Store) join(interests []allocwatch.Interest) *allocwatch.Waiter {
	s.hub.Lock()
	defer s.hub.Unlock()
	w := s.hub.Join(s.current.Load().allocs, interests)
	clear(interests) // they hold an old state, which may go
	return w
}

func (s *Store) leave(w *allocwatch.Waiter) {
	s.hub.Lock()
	defer s.hub.Unlock()
	s.hub.Leave(w)
}

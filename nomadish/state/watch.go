package state

import (
	"context"

	"github.com/hashicorp/go-memdb"
)

// maxWatched bounds the single things that a WatchSet watches. Beyond it whole
// tables are watched instead: a wake too many is cheaper than thousands of channels.
const maxWatched = 64

// WatchSet gathers what a reader has read, to wake it when any of that changes.
// Pass one to the reads of a snapshot, then Wait. It is for one goroutine. A nil
// *WatchSet gathers nothing.
type WatchSet struct{ channels memdb.WatchSet }

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
	return w.channels.WatchCtx(ctx) == nil
}

// add watches ch, or, when the set is full, the whole table.
func (w *WatchSet) add(v *view, table string, ch <-chan struct{}) {
	if w == nil {
		return
	}
	w.channels.Add(v.abandoned)
	if len(w.channels) < maxWatched {
		w.channels.Add(ch)
		return
	}
	if coarse, _, err := v.txn.FirstWatch(tableIndexes, byID, table); err == nil {
		w.channels.Add(coarse)
	}
}

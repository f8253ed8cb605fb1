package worker

import (
	"maps"
	"time"

	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// hopeless returns which requests need not be tried; nil: all must be. It is known only where nobody reads what trying them would state: a
// request that finds no room writes nothing else, unless it may reserve room. Who owns something may find room where none is free: others leave.
func (p *Pass) hopeless(pass *scheduler.Pass, snap *state.Snapshot) queue.Hopeless {
	if !p.opts.Unread {
		return nil
	}
	config := snap.SchedulerConfig(nil)
	after, ever := config.ReserveAfter()
	p.room.goes(p.store, snap)
	left := p.room.left // the pass ends when it has freed anything
	return func(e *structs.Evaluation, kind *scheduler.RequestKey, nodes []string, due bool) bool {
		now, reserves := p.opts.Clock.Now(), time.Unix(0, e.CreateTime).Add(after)
		switch {
		case kind.Entitlement.Any(), ever && !now.Before(p.opts.ReserveFrom) && !now.Before(reserves):
			return false
		case due && (!ever || !reserves.Before(p.opts.ReserveFrom) || !now.Before(p.opts.ReserveFrom) || kind.Project != ""):
			return false // else it was due as it would have reserved room, if any were reserved
		}
		return !left.Helped(pass.World(), kind, nodes)
	}
}

// room is the room that is left from one pass to the next.
type room struct {
	left *scheduler.Room
	feed *state.Feed // nil: nothing is known of the room
	// changed are the nodes on which something has, since the last pass.
	changed map[string]bool
}

// goes takes in where room may have come free since the last pass.
func (r *room) goes(store *state.Store, snap *state.Snapshot) {
	clear(r.changed)
	for r.feed != nil {
		changes, found, err := r.feed.Poll()
		if err != nil {
			r.forget()
			break
		}
		if !found {
			break
		}
		for i := range changes.Items {
			switch c := &changes.Items[i]; c.Kind { //nolint:exhaustive // what others change is no room of a node
			case state.KindNode:
				r.changed[c.Key] = true
			case state.KindAlloc:
				for _, row := range []any{c.Old, c.New} {
					if a, _ := row.(*state.AllocRow); a != nil {
						r.changed[a.NodeID()] = true
					}
				}
			}
		}
	}
	if r.feed == nil {
		r.left, r.feed, r.changed = scheduler.NewRoom(), store.Feed(snap.Index()), map[string]bool{}
		return
	}
	r.left.Moved(snap.World(), maps.Keys(r.changed))
}

// forget has the room be looked at anew: what a pass had taken of it may not have been taken.
func (r *room) forget() { r.feed = nil }

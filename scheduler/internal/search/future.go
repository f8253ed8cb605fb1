package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Future is a node on which there will be room.
type Future struct {
	Node *world.NodeState
	At   int64
	// Fits is for how many there will be room when all that has a time limit has ended.
	Fits int64
}

// RoomAt is when a node has room for what is searched for, if what runs there ends at its
// time limit, and for how many of it then; false: what has no limit is in the way, or, unless
// free is set, it has room now. What a node would give shows it, not sums: of devices it
// matters which are free.
func (s *Search) RoomAt(n *world.NodeState, now int64, free bool) (Future, bool) {
	uses := slices.DeleteFunc(slices.Clone(n.Usages), func(u *world.Usage) bool { return u.Ends == 0 })
	slices.SortFunc(uses, func(a, b *world.Usage) int { return cmp.Or(cmp.Compare(a.Ends, b.Ends), strings.Compare(a.ID, b.ID)) })
	later := n.Own(&world.Token{})
	room := func() (Grant, bool) {
		g, lacks := s.Request.Grant(later, s.Fit.Matcher, &random.Numbers{})
		return g, lacks == ""
	}
	instance, comes := Future{Node: n, At: now}, false
	if free {
		_, comes = room()
	}
	for _, u := range uses {
		later.Give(u)
		if comes {
			continue
		}
		if _, comes = room(); comes {
			instance.At = max(now, u.Ends)
		}
	}
	for comes && instance.Fits < maxInstanceReservations {
		g, more := room()
		if !more {
			break
		}
		instance.Fits++
		if s.Request.Plain { // the sum is enough
			later.Used = later.Used.Plus(s.Request.Amount)
			continue
		}
		later.Take(g.Usage)
	}
	return instance, comes
}

// maxInstanceReservations bounds how many of a gang are counted on one node.
const maxInstanceReservations = 1024

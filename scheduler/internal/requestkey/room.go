package requestkey

import (
	"iter"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Room is what is left of room on all nodes while mostly none comes free: what a node has no room for once, it has none for until Moved is given it. It is for
// one goroutine.
type Room struct{ first map[need]*place }

// place is before which node, by ID, none has room for a need.
type place struct {
	node string
	end  bool // no node has
}

// NewRoom returns what is left before anything is placed.
func NewRoom() *Room { return &Room{map[need]*place{}} }

// Moved takes in the nodes of which room may have come free, with the World as it is now.
func (r *Room) Moved(w *world.World, nodeIDs iter.Seq[string]) {
	for id := range nodeIDs { // order does not matter: the first counts
		n, known := world.NodeStates(w).Get(id)
		if !known {
			continue
		}
		for x, p := range r.first { // order does not matter: each is by itself
			if (p.end || id < p.node) && x.fits(n) {
				*p = place{node: id}
			}
		}
	}
}

// Helped reports whether room on nodes, as they are now, may be what a request with the key waits for; nil: on any. It is wrong in one direction only, as
// Key.Helped is. The World must have no more room than that of the call before, but on nodes that Moved was given since.
func (r *Room) Helped(w *world.World, s *Key, nodeIDs []string) bool {
	if s.byLittle(w) {
		return true
	}
	if !slices.ContainsFunc(s.needs, func(x need) bool { return r.any(w, x) }) {
		return false
	}
	return nodeIDs == nil || slices.ContainsFunc(nodeIDs, func(id string) bool { return s.Helped(w, id) })
}

// any reports whether any node has room for one instance.
func (r *Room) any(w *world.World, x need) bool {
	p := r.first[x]
	if p == nil {
		p = &place{}
		r.first[x] = p
	}
	if p.end {
		return false
	}
	p.end = true
	world.NodeStates(w).Ascend(p.node, func(id string, n *world.NodeState) bool {
		if x.fits(n) {
			*p = place{node: id}
		}
		return p.end
	})
	return !p.end
}

package requestkey

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Room is what is left of room on all nodes while nothing comes free: what no node has room for once, none has room for later. It is for one goroutine.
type Room struct {
	lack map[need]bool
	last map[need]*world.NodeState // which had room when it was looked at last, and was the first that had
}

// NewRoom returns what is left before anything is placed.
func NewRoom() *Room { return &Room{map[need]bool{}, map[need]*world.NodeState{}} }

// Helped reports whether room on nodes, as they are now, may be what a request with the key waits for; nil: on any. It is wrong in one direction only, as
// Key.Helped is. The World must have no more room than that of the call before.
func (r *Room) Helped(w *world.World, s *Key, nodeIDs []string) bool {
	if s.byLittle(w) {
		return true
	}
	if nodeIDs == nil {
		return slices.ContainsFunc(s.needs, func(x need) bool { return r.any(w, x) })
	}
	if !slices.ContainsFunc(s.needs, func(x need) bool { return !r.lack[x] }) {
		return false
	}
	return slices.ContainsFunc(nodeIDs, func(id string) bool { return s.Helped(w, id) })
}

// any reports whether any node has room for one instance.
func (r *Room) any(w *world.World, x need) bool {
	if r.lack[x] {
		return false
	}
	from := ""
	if was := r.last[x]; was != nil {
		from = was.ID // those before it had no room then
	}
	found := false
	world.NodeStates(w).Ascend(from, func(_ string, n *world.NodeState) bool {
		if found = x.fits(n); found {
			r.last[x] = n
		}
		return !found
	})
	r.lack[x] = !found
	return found
}

package requestkey

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Room is what is left of room on all nodes while nothing comes free: what no node has room for once, none has room for later. It is for one goroutine.
type Room struct {
	lack map[need]bool
	last map[need]*world.NodeState // which had room when it was looked at last, and was the first that had
	// reserved: each node that is ready is.
	reserved, counted bool
}

// NewRoom returns what is left before anything is placed.
func NewRoom() *Room { return &Room{lack: map[need]bool{}, last: map[need]*world.NodeState{}} }

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

// Reservable reports whether a node that is ready may be reserved yet. No reservation may end between the calls.
func (r *Room) Reservable(w *world.World) bool {
	if r.counted {
		return !r.reserved
	}
	ready := 0
	for _, set := range world.Families(w).All { // order does not matter: a sum
		ready += set.Nodes.Len()
	}
	r.counted = true
	if world.Reservations(w).Len() < ready {
		return true
	}
	for id := range world.Reservations(w).All { // nor here
		if n, known := w.State(id); known && n.Node != nil && n.Node.Ready() {
			ready--
		}
	}
	r.reserved = ready == 0
	return !r.reserved
}

package reservable

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Stays reports whether a node that takes no work, as it is ineligible, drains or its disk is full, has a part of a reservation that instances of the workflow
// use: what runs there goes on, and the part stays until it has ended.
func Stays(n *world.NodeState, key string) bool {
	if n.Node == nil || n.Node.Status != structs.NodeStatusReady || n.Node.Ready() {
		return false
	}
	p, has := n.Part(key)
	return has && !p.Pending && p.Used != (world.Resources{})
}

// Lost returns the nodes of the parts of a reservation that are lost: nodes that are not ready any more, unless a part stays, or gone, or not of its pool any
// more, or on which it has no cells any more.
func Lost(w *world.World, c *structs.WorkflowClaim) (nodes []string) {
	for i := range c.Parts {
		n, known := w.State(c.Parts[i].NodeID)
		if c.Parts[i].Lost || !known || n.Node == nil || !n.Node.InPool(c.NodePool) || !n.Node.Ready() && !Stays(n, c.Key()) {
			nodes = append(nodes, c.Parts[i].NodeID)
		}
	}
	return nodes
}

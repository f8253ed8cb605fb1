package lend

import (
	"cmp"
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Stays reports whether a node that takes no work, as it is ineligible, drains or its disk is full, has a part of a reservation that instances of the workflow
// use: what runs there goes on, and the part stays until it has ended. Nothing more may start there, nor be reserved.
func Stays(n *world.NodeState, key string) bool {
	if n.Node == nil || n.Node.Status != structs.NodeStatusReady || n.Node.Ready() {
		return false
	}
	p, has := n.Part(key)
	return has && !p.Pending && p.Used != (world.Resources{})
}

// leavesText states what becomes of the part of a reservation that stays on a node.
func leavesText(n *world.NodeState) string {
	why := "is ineligible"
	switch {
	case n.Node.DrainStrategy != nil:
		why = "drains"
	case n.Node.SchedulingEligibility != structs.NodeIneligible:
		why = "has a full disk"
	}
	return fmt.Sprintf("the part on node %s, which %s, is lost once what runs there has ended", nameOf(n), why)
}

// nameOf names a node.
func nameOf(n *world.NodeState) string {
	if n.Node == nil {
		return structs.ShortID(n.ID)
	}
	return cmp.Or(n.Node.Name, structs.ShortID(n.ID))
}

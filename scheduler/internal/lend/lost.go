package lend

import (
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

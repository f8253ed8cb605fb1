package lend

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Stays reports whether a node that takes no work, as it is ineligible, drains or its disk is full, has a part of a reservation beside which instances of the
// workflow run, with its claim or without one: what runs there goes on, and the part stays until it has ended. Nothing more may start there, nor be reserved.
// A part in cells does not stay: cells of nodes that are not ready are not bound, so that others of the namespace might have as many elsewhere.
func Stays(n *world.NodeState, c *structs.WorkflowClaim) bool {
	if c == nil || n.Node == nil || n.Node.Status != structs.NodeStatusReady || n.Node.Ready() {
		return false
	}
	p, has := n.Part(c.Key())
	if !has || p.Pending || slices.ContainsFunc(c.Parts, func(p structs.WorkflowPart) bool { return p.NodeID == n.ID && p.CellLevel != "" }) {
		return false
	}
	return p.Used != (world.Resources{}) || slices.ContainsFunc(n.Usages, func(u *world.Usage) bool { return RunsUnclaimed(u, c.Key()) })
}

// RunsUnclaimed reports whether a usage is of an instance of a workflow that runs without a claim, and borrows nothing.
func RunsUnclaimed(u *world.Usage, key string) bool {
	t := &u.Owner.Terms
	return t.Claim == "" && t.BorrowsFrom() == "" && !u.IsSuspended && !u.PerNode() && (&world.Taker{RequestName: u.Owner.RequestName}).IsOf(key)
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

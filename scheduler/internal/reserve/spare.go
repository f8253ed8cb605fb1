package reserve

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// cellRequest requests devices under one cell if there is one with as many, else under as few as can be.
func cellRequest(count int, allowed func(int) bool) cell.Request {
	return cell.Request{Count: count, Share: world.WholeDevice, Gather: true, Allowed: allowed}
}

// spareOf finds the devices that may be reserved, node by node: of the cells that are free of bindings the smallest first, so that large ones stay
// complete. nil: nobody owns any.
func (c *chooser) spareOf() map[int]map[*world.DeviceTree]uint64 {
	if !c.w.AnyOwner() {
		return nil
	}
	out := make(map[int]map[*world.DeviceTree]uint64, len(c.nodes))
	stays := map[string]bool{} // where a part stays on a node that takes no work
	for i, n := range c.nodes {
		out[i] = map[*world.DeviceTree]uint64{}
		stays[n.ID] = !n.Node.Ready()
	}
	beside := reservable.NewBeside(c.e, c.key, func(nodeID string) bool { return stays[nodeID] })
	for _, used := range []bool{true, false} { // what the running stage uses itself comes first, so that it may use the reservation where it is
		for i, n := range c.nodes {
			if !n.Node.Ready() {
				continue
			}
			keys, trees := world.NodeChains(n.Node, n.Capacity)
			for k, key := range keys {
				of := ^uint64(0)
				if used {
					of = stageUses(c, n, trees[k])
				}
				for _, mask := range beside.Free(key, n.ID) {
					for mask &= of; mask != 0; mask &= mask - 1 {
						if one := mask & -mask; beside.Take(key, n.ID, one) {
							out[i][trees[k]] |= one
						}
					}
				}
			}
		}
	}
	return out
}

// stageUses returns the devices of a tree that instances of the running stage use.
func stageUses(c *chooser, n *world.NodeState, t *world.DeviceTree) (mask uint64) {
	for _, u := range n.Usages {
		if len(u.Devices) > 0 && u.Owner.Namespace == c.namespace() && slices.ContainsFunc(c.jobs, func(j structs.WorkflowClaimJob) bool { return j.JobID == u.Owner.Job }) {
			mask |= world.DeviceMask(t, u)
		}
	}
	return mask
}

// nameParts names the devices of parts of nodes, those that are named already, by the nodes' places, or among those that are spare; it reports whether there are
// enough.
func (c *chooser) nameParts(list []workflow.Part, parts []structs.WorkflowPart, named map[int][]string) bool {
	for k, p := range list {
		part := &parts[k]
		if part.Devices == 0 {
			continue
		}
		if part.DeviceIDs = named[p.Node]; part.DeviceIDs != nil {
			continue
		}
		used := c.usedOn(p.Node)
		if part.DeviceIDs = used; len(used) < part.Devices {
			more := nameOf(c.nodes[p.Node], c.key, part.Devices-len(used), c.isSpare(p.Node))
			if more == nil {
				return false
			}
			part.DeviceIDs = slices.Concat(used, more)
		}
		slices.Sort(part.DeviceIDs)
		part.DeviceIDs = part.DeviceIDs[:part.Devices]
	}
	return true
}

// isSpare returns which devices of a node may be reserved beside what is owned; nil: all.
func (c *chooser) isSpare(i int) func(*world.DeviceTree, int) bool {
	if c.spare == nil {
		return nil
	}
	trees := chainTrees(c.nodes[i])
	return func(t *world.DeviceTree, device int) bool {
		return !slices.Contains(trees, t) || device < 64 && c.spare[i][t]&(1<<device) != 0
	}
}

// spareOn counts the devices of a node that may be reserved beside what is owned, and those of them that are free.
func (c *chooser) spareOn(i int) (all, free int) { return c.spareWhere(i, c.nodes[i]) }

// spareWhere counts them on a node that is as n is.
func (c *chooser) spareWhere(i int, n *world.NodeState) (all, free int) {
	is := c.isSpare(i)
	for at, t := range n.Capacity.Trees {
		for d := range t.IDs {
			if (is == nil || is(t, d)) && !slices.Contains(t.Sick, d) && !n.Bars(t.IDs[d], &world.Taker{Borrows: c.key}) {
				all++
				if n.Cells[at].FreeShare(d) == world.WholeDevice {
					free++
				}
			}
		}
	}
	return all, free
}

// chainTrees returns the trees of a node of which cells can be owned.
func chainTrees(n *world.NodeState) []*world.DeviceTree {
	_, trees := world.NodeChains(n.Node, n.Capacity)
	return trees
}

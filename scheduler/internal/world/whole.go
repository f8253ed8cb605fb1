package world

import (
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/devicetree"
	"github.com/nomadish/nomadish/scheduler/internal/resources"
	"github.com/nomadish/nomadish/structs"
)

// NeedsOf returns what a job needs of a reservation, or an instance, with so many MHz for a core.
func NeedsOf(n *structs.WorkflowPart, mhz int64) Resources {
	return Resources{Amount: Vector{CPU: n.CPU + int64(n.Cores)*mhz, MemoryMB: n.MemoryMB, DiskMB: n.DiskMB}, Cores: n.Cores, Devices: n.Devices}
}

// holds reports whether a reservation may have room and licenses for as many of groups as have to start together once all borrowers have left, as far as sums
// say, and how many instances of each its parts hold: what has no room is not kept from borrowers. They leave for it when it has.
func (x WorkflowEdit) holds(c *structs.WorkflowClaim, whole []structs.WorkflowClaimGroup) bool {
	if len(whole) == 0 {
		return true
	}
	var rooms []Resources
	mhz := int64(math.MaxInt64) // of a core, where it has fewest
	for i := range c.Parts {
		if n, known := StateOf(x.E, c.Parts[i].NodeID); known && n.Node != nil && n.Node.Ready() && n.Capacity != nil {
			rooms, mhz = append(rooms, n.unused(c.Key())), min(mhz, n.Capacity.MHzPerCore)
		}
	}
	if len(rooms) == 0 || !x.licensed(c, whole) {
		return false
	}
	groups := make([]resources.Group, len(whole))
	for i := range whole {
		groups[i] = resources.Group{Each: NeedsOf(&whole[i].Needs, mhz), Least: whole[i].Min}
	}
	return resources.MayHold(rooms, groups)
}

// licensed reports whether a workflow has, once all borrowers have left, the licenses for as many of groups as have to start together.
func (x WorkflowEdit) licensed(c *structs.WorkflowClaim, whole []structs.WorkflowClaimGroup) bool {
	need := map[string]int64{}
	for _, g := range whole {
		for _, r := range g.Licenses {
			if need[r.Name] += r.Count * int64(g.Min); need[r.Name] > x.E.w.licenses.Obtainable(r.Name, c.Key()) {
				return false
			}
		}
	}
	return true
}

// NoRoom returns of which jobs of the running stage of a workflow nothing is there and what starts together has no room, or too few licenses: see Awaited.
func (x WorkflowEdit) NoRoom(workflow string) func(*structs.WorkflowClaimJob) bool {
	return func(j *structs.WorkflowClaimJob) bool {
		c := x.Claim(workflow)
		_, there := x.there(c, j)
		return !there && !x.holds(c, j.Whole)
	}
}

// unused returns what the instances of a workflow do not use of its part of the node, without devices that are bad or not there any more.
func (n *NodeState) unused(key string) Resources {
	p, _ := n.Part(key)
	return p.Total.Less(p.Used).Less(Resources{Devices: len(n.BadOf(&p, func(u *Usage) bool {
		return u.Owner.Terms.Claim == structs.ClaimWorkflow && u.Owner.Terms.WorkflowKey() == key
	}))})
}

// BadOf returns the devices that a part of the node names and that are bad, or not there any more, without those of some usages.
func (n *NodeState) BadOf(p *Part, but func(*Usage) bool) (ids []string) {
	for _, id := range p.Devices {
		if n.Capacity != nil && !devicetree.IsWell(n.Capacity.Trees, id) && !slices.ContainsFunc(n.Usages, func(u *Usage) bool {
			return slices.ContainsFunc(u.Devices, func(d DeviceUsage) bool { return d.ID == id }) && but(u)
		}) {
			ids = append(ids, id)
		}
	}
	return ids
}

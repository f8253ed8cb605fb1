package world

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/resources"
	"github.com/nomadish/nomadish/structs"
)

// NeedsOf returns what a job needs of a reservation, or an instance, with so many MHz for a core.
func NeedsOf(n *structs.WorkflowPart, mhz int64) Resources {
	return Resources{Amount: Vector{CPU: n.CPU + int64(n.Cores)*mhz, MemoryMB: n.MemoryMB, DiskMB: n.DiskMB}, Cores: n.Cores, Devices: n.Devices}
}

// holds reports whether a reservation may have room for as many of groups as have to start together once all borrowers have left, as far as sums say, and
// how many instances of each its parts hold: what has no room is not kept from borrowers. They leave for it when it has.
func (x WorkflowEdit) holds(c *structs.WorkflowClaim, whole []structs.WorkflowClaimGroup, mhz int64) bool {
	if len(whole) == 0 {
		return true
	}
	var rooms []Resources
	for i := range c.Parts {
		if n, known := StateOf(x.E, c.Parts[i].NodeID); known && n.Node != nil && n.Node.Ready() && n.Capacity != nil {
			rooms = append(rooms, n.unused(c.Key()))
		}
	}
	groups := make([]resources.Group, len(whole))
	for i := range whole {
		groups[i] = resources.Group{Each: NeedsOf(&whole[i].Needs, mhz), Least: whole[i].Min}
	}
	return resources.MayHold(rooms, groups)
}

// unused returns what the instances of a workflow do not use of its part of the node, without devices that are bad or not there any more.
func (n *NodeState) unused(key string) Resources {
	p, _ := n.Part(key)
	room := p.Total.Less(p.Used)
	for _, id := range p.Devices {
		well := slices.ContainsFunc(n.Capacity.Trees, func(t *DeviceTree) bool {
			at, found := t.Find(id)
			return found && !slices.Contains(t.Sick, at)
		})
		if !well && !slices.ContainsFunc(n.Usages, func(u *Usage) bool {
			return u.Owner.Terms.Claim == structs.ClaimWorkflow && u.Owner.Terms.WorkflowKey() == key && slices.ContainsFunc(u.Devices, func(d DeviceUsage) bool { return d.ID == id })
		}) {
			room.Devices = max(0, room.Devices-1)
		}
	}
	return room
}

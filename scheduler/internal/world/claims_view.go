package world

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// AllocLacksClaim returns why an allocation cannot use the claim that it names; "" if it can, or names none.
func (e *Edit) AllocLacksClaim(a *structs.Allocation) string {
	of := NewOwner(RequestName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources)
	return ClaimLacks(e, NewUse(a.ID, a.NodeID, of, a.AllocatedResources, a.CreateTime))
}

// Owners returns who owns cells, in the order of their names.
func (w *World) Owners() (names []string) {
	if w.claims != nil {
		for name := range w.claims.quotas.All {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// States calls yield for what is known of each node, in the order of their IDs, until it returns false.
func (w *World) States(yield func(id string, n *NodeState) bool) { w.nodes.All(yield) }

// SiteLevels returns the levels of cells above nodes.
func (w *World) SiteLevels() []structs.TopologyLevel { return w.sites }

package raise

import (
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Use returns a usage as it is raised to the smallest of its owner's cells that hold its devices; nil: there are none.
func Use(e *world.Edit, u *world.Usage) *world.Usage {
	n, known := world.StateOf(e, u.NodeID)
	if len(u.Devices) == 0 || !known || n.Node == nil || !n.BesideReservations(u) || claim.BeyondShare(e, n, u.Amount, len(u.Devices)) {
		return nil
	}
	for _, t := range n.Capacity.Trees {
		key, ok := world.ChainOf(n.Node, t)
		if !ok || world.Count(world.DeviceMask(t, u)) != len(u.Devices) {
			continue
		}
		ed := world.ChainEdit(e, key)
		if ed == nil {
			continue
		}
		for _, k := range kindsFor(ed.View(), u.Owner.Namespace, len(u.Devices)) {
			raised, owner := *u, *u.Owner
			raised.Owner = &owner
			owner.Terms.Claim, owner.Terms.CellLevel, owner.Terms.CellSize = structs.ClaimCells, ed.View().LevelName(k), k.Size
			owner.Terms.Workflow = nil
			if world.ClaimLacks(e, &raised) == "" {
				return &raised
			}
		}
	}
	return nil
}

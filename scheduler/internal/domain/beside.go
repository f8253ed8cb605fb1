package domain

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// DevicesOf lists what devices an allocation holds.
func DevicesOf(a *structs.Allocation) (ids []string) {
	if a.AllocatedResources == nil {
		return nil
	}
	for _, t := range a.AllocatedResources.Tasks { // into a set: the order cannot show
		for _, d := range t.Devices {
			ids = append(ids, d.DeviceIDs...)
		}
	}
	return ids
}

// LevelsWithin returns the levels within nodes that are tried for the gang, in their order:
// the one that is wanted and, if it is only preferred, those above it.
func LevelsWithin(gw *reconcile.GangWork, want *structs.TopologyConstraint) []string {
	levels := structs.NodeLevels()
	at := slices.Index(levels, want.Level)
	switch {
	case !KeptInCells(gw, want.Level):
		return []string{structs.LevelNode}
	case want.Required:
		return []string{want.Level}
	case at < 0:
		return []string{want.Level, structs.LevelNode}
	}
	return levels[at:]
}

// BesideOn returns the domain on a node that others of a gang are to be under: the cell that
// fits the devices of those which run; need is how many devices the others request. If it is only preferred and no cell does, the
// node. If nobody holds a device yet, the cell that fits the others best.
func BesideOn(e *world.Edit, gw *reconcile.GangWork, m *feasible.Matcher, need int64, n *structs.Node, live []*structs.Allocation) *feasible.Domain {
	want := gw.Spec.Topology
	state, known := world.StateOf(e, n.ID)
	if !known || state.Capacity == nil || !KeptInCells(gw, want.Level) {
		return OfNode(n)
	}
	reserved := map[string]bool{}
	for _, a := range live {
		if a.NodeID == n.ID {
			for _, id := range DevicesOf(a) {
				reserved[id] = true
			}
		}
	}
	var best *feasible.Domain
	most := -1
	for _, c := range RoomsOf(gw, state, want.Level, m) {
		fits := 0
		for id := range reserved { // counted: the order cannot show
			if c.Devices[id] {
				fits++
			}
		}
		if len(reserved) == 0 {
			fits = int(min(c.Free, need))
		}
		if fits > most {
			best, most = c.Domain, fits
		}
	}
	switch {
	case best != nil && (want.Required || most == len(reserved)):
		return best
	case want.Required: // the node has no such cell (any more): no device of it may be taken
		return NewCell(want.Level, "no "+want.Level, n, map[string]bool{})
	}
	return OfNode(n)
}

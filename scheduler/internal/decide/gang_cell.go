package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A topology below the level of nodes (a switch, a socket) keeps all devices of a gang
// under one cell of one node, whatever their kinds: a network card as well as a GPU.
// Members that request no devices are on that node. Source: semantics part 2, "topology".

// devicesOf lists what devices an allocation holds.
func devicesOf(a *structs.Allocation) (ids []string) {
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

// domainsOn returns the domains of a level on a node that was found for all first members: first
// the cell that the search would cut.
func (x *GangPlacer) domainsOn(f *search.Found, level string) (out []*feasible.Domain) {
	if !domain.KeptInCells(x.gw, level) {
		return []*feasible.Domain{domain.OfNode(f.Node.Node)}
	}
	need := int64(0)
	for i, work := range x.gw.Works {
		need += x.requests[i].Devices * int64(work.First)
	}
	for _, c := range domain.RoomsOf(x.gw, f.Node, level, x.s.fits.Matcher) {
		if c.Free >= need {
			out = append(out, c.Domain)
		}
	}
	cut := f.Grant.Usage.Devices
	at := slices.IndexFunc(out, func(d *feasible.Domain) bool { return len(cut) > 0 && d.Devices[cut[0].ID] })
	if at > 0 {
		best := out[at]
		out = slices.Insert(slices.Delete(out, at, at+1), 0, best)
	}
	return out
}

// levelsWithin are the levels within nodes that are tried for the gang, in their order:
// the one that is wanted and, if it is only preferred, those above it.
func (x *GangPlacer) levelsWithin(want *structs.TopologyConstraint) []string {
	levels := structs.NodeLevels()
	at := slices.Index(levels, want.Level)
	switch {
	case !domain.KeptInCells(x.gw, want.Level):
		return []string{structs.LevelNode}
	case want.Required:
		return []string{want.Level}
	case at < 0:
		return []string{want.Level, structs.LevelNode}
	}
	return levels[at:]
}

// besideOn is the domain on a node that others of a gang are to be under: the cell that
// fits the devices of those which run. If it is only preferred and no cell does, the
// node. If nobody holds a device yet, the cell that fits the others best.
func (s *Scheduler) besideOn(gw *reconcile.GangWork, n *structs.Node, live []*structs.Allocation) *feasible.Domain {
	want := gw.Spec.Topology
	state, known := world.StateOf(s.Edit, n.ID)
	if !known || state.Capacity == nil || !domain.KeptInCells(gw, want.Level) {
		return domain.OfNode(n)
	}
	reserved := map[string]bool{}
	for _, a := range live {
		if a.NodeID == n.ID {
			for _, id := range devicesOf(a) {
				reserved[id] = true
			}
		}
	}
	var best *feasible.Domain
	most, need := -1, int64(0)
	for _, work := range gw.Works {
		need += amount.OfRequest(search.NewRequest(s.Input, work.Group)).Devices * int64(len(work.Place))
	}
	for _, c := range domain.RoomsOf(gw, state, want.Level, s.fits.Matcher) {
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
		return domain.NewCell(want.Level, "no "+want.Level, n, map[string]bool{})
	}
	return domain.OfNode(n)
}

// cellRoomsOf is what the cells of a level of all nodes have for a gang, in the order of
// the nodes' names.
func (x *GangPlacer) cellRoomsOf(level string) (out []*Room) {
	requests := domain.DeviceRequests(x.gw)
	for _, on := range x.nodeRooms() {
		n, _ := world.StateOf(x.base, on.NodeID)
		for _, d := range domain.CellsOf(n, level) {
			r := &Room{Domain: d, free: on.free, fits: make([]int64, len(x.requests))}
			r.free.Devices = domain.FreeIn(d, n, requests, x.s.fits.Matcher)
			for i, request := range x.requests {
				if on.fits[i] > 0 {
					r.fits[i] = r.free.Fits(request)
				}
			}
			out = append(out, r)
		}
	}
	return out
}

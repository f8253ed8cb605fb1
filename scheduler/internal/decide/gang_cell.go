package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// A topology below the level of nodes (a switch, a socket) keeps all devices of a gang
// under one cell of one node, whatever their kinds: a network card as well as a GPU.
// Members that request no devices are on that node. Source: semantics part 2, "topology".

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

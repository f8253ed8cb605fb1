package decide

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Who loses least where the World does not keep who holds what by priority: while nobody
// may preempt, and a what-if needs the outcome if one might; and under one cell of a site,
// where the sets of all nodes would show mostly others. The nodes are gone over once.

// usageBy returns what a node would have without those of each priority and below that may be taken
// from, lowest first. It is good until the next call.
func (r *reclaimer) usageBy(n *world.NodeState) []world.UsageAt {
	var list []world.UsageAt
	if place, kept := world.UsageRefs(world.Base(r.e)).Get(n.ID); kept {
		list = place.At
	} else {
		list = r.usage.Without(n)
	}
	for i := range list {
		if !r.mayTake(list[i].Priority) {
			return list[:i]
		}
	}
	return list
}

// walked gathers nodes by the priorities with which they might hold a request.
type walked struct {
	f  *reclaimSearch
	by map[int]*reservedCursor
}

func (f *reclaimSearch) walk() *walked { return &walked{f, map[int]*reservedCursor{}} }

func (w *walked) look(n *world.NodeState) {
	a := w.f.run.search.Request
	if n.Indexed.Family == "" || len(n.Usages) == 0 || !mayReservation(n, []*search.Request{a}) || !w.f.usable(n) {
		return
	}
	for _, reserved := range w.f.r.usageBy(n) {
		if !reserved.At.Fits(&a.Need) {
			continue
		}
		c := w.by[reserved.Priority]
		if c == nil {
			c = &reservedCursor{key: world.UsageKey{Priority: reserved.Priority}}
			w.by[reserved.Priority] = c
		}
		c.list = append(c.list, n)
	}
}

// levels are the priorities that were found, lowest first.
func (w *walked) levels() (out [][]*reservedCursor) {
	for _, priority := range slices.Sorted(maps.Keys(w.by)) {
		out = append(out, []*reservedCursor{w.by[priority]})
	}
	return out
}

// levelsInDomain goes over the nodes under one cell of a site (a rack).
func (f *reclaimSearch) levelsInDomain() {
	s, w := f.run.search, f.walk()
	for _, c := range s.Sets {
		if set, known := s.AllSets().Get(c.Name); known {
			set.All(func(n *world.NodeState) bool {
				w.look(n)
				return true
			})
		}
	}
	for _, c := range w.by { // each for itself: the order cannot show
		slices.SortFunc(c.list, func(a, b *world.NodeState) int { return strings.Compare(a.ID, b.ID) })
	}
	f.levels = w.levels()
}

// levelsByWalk goes over all nodes.
func (f *reclaimSearch) levelsByWalk() {
	w := f.walk()
	for _, n := range world.NodeStates(world.Base(f.r.e)).All {
		w.look(n)
	}
	f.levels = w.levels()
}

// fitsBySums reports whether requests find room beside usages that stay, where sums show it: which
// of the node's devices they get does not matter then.
func fitsBySums(n *world.NodeState, requests []*search.Request, stay []*world.Usage) (fits, known bool) {
	left, devices, want := n.Capacity.Amount, n.Capacity.WellDevices(), int64(0)
	for _, a := range requests {
		switch {
		case len(a.Cores)+len(a.Networks) > 0 || len(a.Devices) > 1:
			return false, false
		case len(a.Devices) == 1 && !devicesAlike(n, &a.Devices[0]):
			return false, false
		}
		left, want = left.Minus(a.Amount), want+a.Need[world.DimGPUs]
	}
	var few [16]string
	reserved := few[:0]
	for _, u := range stay {
		left = left.Minus(u.Amount)
		for _, d := range u.Devices {
			if _, _, there := n.Device(d.ID); there && !slices.Contains(reserved, d.ID) {
				reserved = append(reserved, d.ID)
			}
		}
	}
	enough := want == 0 || want <= devices-int64(len(reserved))
	return left.CPU >= 0 && left.MemoryMB >= 0 && left.DiskMB >= 0 && enough, true
}

// devicesAlike reports whether any devices of a node are as good for a request as any others.
func devicesAlike(n *world.NodeState, d *feasible.DeviceRequest) bool {
	if len(n.Capacity.Trees) != 1 || !n.Capacity.Trees[0].Single || len(n.Capacity.Trees[0].Sick) > 0 || d.Whole() == 0 || d.Within != nil ||
		d.Request.Topology != nil || len(d.Request.Constraints) > 0 {
		return false
	}
	group := n.Capacity.Trees[0].Groups[0]
	return d.Kind == group.Type && (d.Vendor == "" || d.Vendor == group.Vendor) && (d.Name == "" || d.Name == group.Name)
}

// fitsEmptied reports whether requests find room on a node without all that may be taken from: what
// a plan finds in the end, whoever loses least. It is known where that is all that is requested, and
// who goes from one node leaves the others as they are.
func (r *reclaimer) fitsEmptied(n *world.NodeState, requests []*search.Request) (fits, known bool) {
	if !r.s.countsOnly() || r.only != nil {
		return false, false
	}
	mayGo := func(u *world.Usage) bool {
		return (u.Owner.Namespace != r.s.eval.Namespace || u.Owner.Job != r.s.eval.JobID) && !r.s.protected(r.e, u, r.below) && r.s.band(u) < r.below
	}
	var few [16]*world.Usage
	stay := few[:0]
	for _, u := range n.Usages {
		if _, some := u.Owner.Gang(); some {
			return false, false
		}
		if !mayGo(u) {
			stay = append(stay, u)
		}
	}
	if n.Reservation == nil {
		if fits, known := fitsBySums(n, requests, stay); known {
			return fits, true
		}
	}
	c := n.Own(&world.Token{})
	for _, u := range n.Usages {
		if mayGo(u) {
			c.Give(u)
		}
	}
	for _, a := range requests {
		g, what := a.Grant(c, r.s.fits.Matcher, &r.s.Random)
		if what != "" {
			return false, true
		}
		c.Take(g.Usage)
	}
	return true, true
}

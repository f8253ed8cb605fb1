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
// may preempt, and somebody asks what would be if one might; and under one cell of a site,
// where the sets of all nodes would show mostly others. The nodes are gone over once.

// heldBy gives what a node would have without those of each priority and below that may be
// taken from, lowest first. It is good until the next call.
func (r *reclaimer) heldBy(n *world.NodeState) []world.HeldAt {
	var list []world.HeldAt
	if place, kept := world.HeldPlaces(world.Base(r.e)).Get(n.ID); kept {
		list = place.At
	} else {
		list = r.held.Without(n)
	}
	for i := range list {
		if !r.mayTake(list[i].Priority) {
			return list[:i]
		}
	}
	return list
}

// walked gathers nodes by the priorities with which they might hold an ask.
type walked struct {
	f  *reclaimSearch
	by map[int]*heldCursor
}

func (f *reclaimSearch) walk() *walked { return &walked{f, map[int]*heldCursor{}} }

func (w *walked) look(n *world.NodeState) {
	a := w.f.run.search.Ask
	if n.Indexed.Family == "" || len(n.Uses) == 0 || !mayHold(n, []*search.Ask{a}) || !w.f.usable(n) {
		return
	}
	for _, held := range w.f.r.heldBy(n) {
		if !held.At.Fits(&a.Need) {
			continue
		}
		c := w.by[held.Priority]
		if c == nil {
			c = &heldCursor{key: world.HeldKey{Priority: held.Priority}}
			w.by[held.Priority] = c
		}
		c.list = append(c.list, n)
	}
}

// levels are the priorities that were found, lowest first.
func (w *walked) levels() (out [][]*heldCursor) {
	for _, priority := range slices.Sorted(maps.Keys(w.by)) {
		out = append(out, []*heldCursor{w.by[priority]})
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

// fitsBySums tells whether asks find room beside uses that stay, where sums say so: which of
// the node's devices they get does not matter then.
func fitsBySums(n *world.NodeState, asks []*search.Ask, stay []*world.Use) (fits, known bool) {
	left, devices, want := n.Capacity.Amount, n.Capacity.WellDevices(), int64(0)
	for _, a := range asks {
		switch {
		case len(a.Cores)+len(a.Networks) > 0 || len(a.Devices) > 1:
			return false, false
		case len(a.Devices) == 1 && !devicesAlike(n, &a.Devices[0]):
			return false, false
		}
		left, want = left.Minus(a.Amount), want+a.Need[world.DimGPUs]
	}
	var few [16]string
	held := few[:0]
	for _, u := range stay {
		left = left.Minus(u.Amount)
		for _, d := range u.Devices {
			if _, _, there := n.Device(d.ID); there && !slices.Contains(held, d.ID) {
				held = append(held, d.ID)
			}
		}
	}
	enough := want == 0 || want <= devices-int64(len(held))
	return left.CPU >= 0 && left.MemoryMB >= 0 && left.DiskMB >= 0 && enough, true
}

// devicesAlike tells whether any devices of a node are as good for an ask as any others.
func devicesAlike(n *world.NodeState, d *feasible.DeviceAsk) bool {
	if len(n.Capacity.Trees) != 1 || !n.Capacity.Trees[0].Single || len(n.Capacity.Trees[0].Sick) > 0 || d.Whole() == 0 || d.Within != nil ||
		d.Request.Topology != nil || len(d.Request.Constraints) > 0 {
		return false
	}
	group := n.Capacity.Trees[0].Groups[0]
	return d.Kind == group.Type && (d.Vendor == "" || d.Vendor == group.Vendor) && (d.Name == "" || d.Name == group.Name)
}

// fitsEmptied tells whether asks find room on a node without all that may be taken from:
// what a plan finds in the end, whoever loses least. It is known where that is all that is
// asked, and who goes from one node leaves the others as they are.
func (r *reclaimer) fitsEmptied(n *world.NodeState, asks []*search.Ask) (fits, known bool) {
	if !r.s.countsOnly() {
		return false, false
	}
	mayGo := func(u *world.Use) bool {
		return (u.Holder.Namespace != r.s.eval.Namespace || u.Holder.Job != r.s.eval.JobID) && r.s.band(u) < r.below
	}
	var few [16]*world.Use
	stay := few[:0]
	for _, u := range n.Uses {
		if _, some := u.Holder.Gang(); some {
			return false, false
		}
		if !mayGo(u) {
			stay = append(stay, u)
		}
	}
	if n.Hold == nil {
		if fits, known := fitsBySums(n, asks, stay); known {
			return fits, true
		}
	}
	c := n.Own(&world.Token{})
	for _, u := range n.Uses {
		if mayGo(u) {
			c.Give(u)
		}
	}
	for _, a := range asks {
		g, what := a.Grant(c, r.s.fits.Matcher, &r.s.Random)
		if what != "" {
			return false, true
		}
		c.Take(g.Use)
	}
	return true, true
}

package scheduler

import (
	"maps"
	"slices"
	"strings"
)

// Who loses least where the World does not keep who holds what by priority: while nobody
// may preempt, and somebody asks what would be if one might; and under one cell of a site,
// where the sets of all nodes would show mostly others. The nodes are gone over once.

// heldBy gives what a node would have without those of each priority and below that may be
// taken from, lowest first. It is good until the next call.
func (r *reclaimer) heldBy(n *nodeState) []heldAt {
	var list []heldAt
	if place, kept := r.e.base().placesTree().Get(n.id); kept {
		list = place.at
	} else {
		list = r.held.without(n)
	}
	for i := range list {
		if !r.mayTake(list[i].priority) {
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

func (w *walked) look(n *nodeState) {
	a := w.f.run.search.ask
	if n.at.family == "" || len(n.uses) == 0 || !n.mayHold([]*ask{a}) || !w.f.usable(n) {
		return
	}
	for _, held := range w.f.r.heldBy(n) {
		if !held.at.Fits(&a.need) {
			continue
		}
		c := w.by[held.priority]
		if c == nil {
			c = &heldCursor{key: heldKey{priority: held.priority}}
			w.by[held.priority] = c
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
	for _, c := range s.sets {
		if set, known := s.all().Get(c.name); known {
			set.all(func(n *nodeState) bool {
				w.look(n)
				return true
			})
		}
	}
	for _, c := range w.by { // each for itself: the order cannot show
		slices.SortFunc(c.list, func(a, b *nodeState) int { return strings.Compare(a.id, b.id) })
	}
	f.levels = w.levels()
}

// levelsByWalk goes over all nodes.
func (f *reclaimSearch) levelsByWalk() {
	w := f.walk()
	for _, n := range f.r.e.base().nodesTree().All {
		w.look(n)
	}
	f.levels = w.levels()
}

// heldPriorities are those by which something is held on ready nodes, lowest first.
func (w *World) heldPriorities() (list []int) {
	if w.heldKept {
		for key := range w.held.All {
			if len(list) == 0 || list[len(list)-1] != key.priority {
				list = append(list, key.priority)
			}
		}
		return list
	}
	seen := map[int]bool{}
	for _, n := range w.nodes.All {
		last := -1
		for _, u := range n.uses {
			if p := u.of.terms.Priority; n.at.family != "" && p != last {
				seen[p], last = true, p
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// fitsBySums tells whether asks find room beside uses that stay, where sums say so: which of
// the node's devices they get does not matter then.
func (n *nodeState) fitsBySums(asks []*ask, stay []*use) (fits, known bool) {
	left, devices, want := n.has.amount, n.has.wellDevices(), int64(0)
	for _, a := range asks {
		switch {
		case len(a.cores)+len(a.networks) > 0 || len(a.devices) > 1:
			return false, false
		case len(a.devices) == 1 && !n.devicesAlike(&a.devices[0]):
			return false, false
		}
		left, want = left.minus(a.amount), want+a.need[dimGPUs]
	}
	var few [16]string
	held := few[:0]
	for _, u := range stay {
		left = left.minus(u.amount)
		for _, d := range u.devices {
			if _, _, there := n.device(d.id); there && !slices.Contains(held, d.id) {
				held = append(held, d.id)
			}
		}
	}
	enough := want == 0 || want <= devices-int64(len(held))
	return left.CPU >= 0 && left.MemoryMB >= 0 && left.DiskMB >= 0 && enough, true
}

// devicesAlike tells whether any devices of a node are as good for an ask as any others.
func (n *nodeState) devicesAlike(d *deviceAsk) bool {
	if len(n.has.trees) != 1 || !n.has.trees[0].single || len(n.has.trees[0].sick) > 0 || d.whole() == 0 || d.within != nil ||
		d.req.Topology != nil || len(d.req.Constraints) > 0 {
		return false
	}
	group := n.has.trees[0].groups[0]
	return d.kind == group.Type && (d.vendor == "" || d.vendor == group.Vendor) && (d.name == "" || d.name == group.Name)
}

// fitsEmptied tells whether asks find room on a node without all that may be taken from:
// what a plan finds in the end, whoever loses least. It is known where that is all that is
// asked, and who goes from one node leaves the others as they are.
func (r *reclaimer) fitsEmptied(n *nodeState, asks []*ask) (fits, known bool) {
	if !r.s.countsOnly() {
		return false, false
	}
	mayGo := func(u *use) bool {
		return (u.of.namespace != r.s.eval.Namespace || u.of.job != r.s.eval.JobID) && r.s.band(u) < r.below
	}
	var few [16]*use
	stay := few[:0]
	for _, u := range n.uses {
		if _, some := u.of.gang(); some {
			return false, false
		}
		if !mayGo(u) {
			stay = append(stay, u)
		}
	}
	if n.hold == nil {
		if fits, known := n.fitsBySums(asks, stay); known {
			return fits, true
		}
	}
	c := n.own(&token{})
	for _, u := range n.uses {
		if mayGo(u) {
			c.give(u)
		}
	}
	for _, a := range asks {
		g, what := a.grant(c, r.s.fits.m, r.s.rng)
		if what != "" {
			return false, true
		}
		c.take(g.use)
	}
	return true, true
}

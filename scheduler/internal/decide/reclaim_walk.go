package decide

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/room"
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
	if n.Indexed.Family == "" || len(n.Usages) == 0 || !room.MayHold(n, []*search.Request{a}) || !w.f.usable(n) {
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
		if fits, known := room.FitsBySums(n, requests, stay); known {
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

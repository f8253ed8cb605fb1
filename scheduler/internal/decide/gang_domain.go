package decide

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Room is what a domain has for a gang: an upper bound, as names (ports, cores, the
// places of devices) are not looked at.
type Room struct {
	*feasible.Domain
	sets []usableSet
	free amount.Amount
	// fits counts, by group, the instances that fit if no others came.
	fits []int64
}

// enough reports whether a domain may hold the first of a gang.
func (r *Room) enough(x *GangPlacer) bool {
	total := amount.Amount{}
	for i, work := range x.gw.Works {
		if r.fits[i] < int64(work.First) {
			return false
		}
		total = total.Add(x.requests[i].Times(work.First))
	}
	return r.free.Fits(total) >= 1
}

// Count is how many of a gang's first instances a domain holds at most.
func (r *Room) Count(x *GangPlacer) (n int64) {
	for i, work := range x.gw.Works {
		n += min(r.fits[i], int64(work.First))
	}
	return n
}

// rooms adds up what is free in each domain of a level, in the order of their names:
// bounds, but where single nodes must be looked at anyway.
func (x *GangPlacer) rooms(level structs.TopologyLevel) []*Room {
	if strings.HasPrefix(level.Meta, "unique.") {
		return nil // no two nodes share it
	}
	x.reserved = amount.ReservedByClass(x.base)
	byValue := map[string]*Room{}
	var out []*Room
	for n, set := range x.sets() {
		v := n.Meta[level.Meta]
		if v == "" {
			continue
		}
		r := byValue[v]
		if r == nil {
			r = &Room{Domain: domain.OfSite(n, level), fits: make([]int64, len(x.requests))}
			byValue[v] = r
			out = append(out, r)
		}
		r.sets = append(r.sets, set)
		if x.taking {
			x.count(r, set)
		} else {
			x.bound(r, n.ComputedClass, set)
		}
	}
	slices.SortFunc(out, func(a, b *Room) int { return strings.Compare(a.Value, b.Value) })
	return out
}

// usableSet is nodes of one class with which groups of the gang may use them.
type usableSet struct {
	*world.NodeSet
	by []bool
}

// sets returns the classes that any group may use, each with one of its nodes.
func (x *GangPlacer) sets() iter.Seq2[*structs.Node, usableSet] {
	return func(yield func(*structs.Node, usableSet) bool) {
		world.Flush(x.base)
		verdicts := map[string][]bool{} // by family, where that decides
		for _, c := range world.Classes(world.Base(x.base)).All {
			n := c.Any()
			by, known := verdicts[n.Capacity.Family]
			if !known {
				by = make([]bool, len(x.requests))
				alike := true
				for i, work := range x.gw.Works {
					f := x.s.Fit(work.Group)
					by[i] = f.Class(n.Node).OK()
					alike = alike && !x.meta[i]
				}
				if alike {
					verdicts[n.Capacity.Family] = by
				}
			}
			if slices.Contains(by, true) && !yield(n.Node, usableSet{c, by}) {
				return
			}
		}
	}
}

// bound adds to a room what a class has free in all. Reservations are taken off there,
// which may be the gang's own, and are added again.
func (x *GangPlacer) bound(r *Room, class string, set usableSet) {
	sum, most := amount.OfVector(set.Sum), amount.OfVector(set.Nodes.Max())
	reserved, some := x.reserved[class]
	sum = sum.Add(reserved)
	r.free = r.free.Add(sum)
	for i, request := range x.requests {
		if set.by[i] && (some || most.Fits(request) > 0) {
			r.fits[i] += sum.Fits(request)
		}
	}
}

// count adds to a room what the nodes of a class have free, one by one.
func (x *GangPlacer) count(r *Room, set usableSet) {
	for n := range set.All {
		free := x.amountOf(n, amount.Indexed(n))
		r.free = r.free.Add(free)
		for i, request := range x.requests {
			if set.by[i] {
				r.fits[i] += free.Fits(request)
			}
		}
	}
}

// recount looks at a room's nodes.
func (x *GangPlacer) recount(r *Room) {
	r.free, r.fits = amount.Amount{}, make([]int64, len(x.requests))
	for _, set := range r.sets {
		x.count(r, set)
	}
}

// candidates are the domains that may hold the gang: least free room first, so that
// large ones survive, then by name.
func (x *GangPlacer) candidates(level structs.TopologyLevel) []*Room {
	if x.claiming {
		return x.claimDomains(level)
	}
	x.looked = x.rooms(level)
	if x.leaving { // what is free shows nothing
		return x.looked[:min(len(x.looked), claimDomainTries)]
	}
	fit := slices.DeleteFunc(slices.Clone(x.looked), func(r *Room) bool { return !r.enough(x) })
	slices.SortStableFunc(fit, func(a, b *Room) int { return amount.Compare(a.free, b.free) })
	return fit
}

// nodeRooms is what each single node has for a gang, in the order of their names.
func (x *GangPlacer) nodeRooms() []*Room {
	var out []*Room
	for _, set := range x.sets() {
		for n := range set.All {
			r := &Room{Domain: domain.OfNode(n.Node), free: amount.Free(n), fits: make([]int64, len(x.requests))}
			for i, request := range x.requests {
				if set.by[i] {
					r.fits[i] = r.free.Fits(request)
				}
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Room) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.NodeID, b.NodeID))
	})
	return out
}

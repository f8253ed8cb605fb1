package claim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Devices that need not lie under one cell may come from several cells of one kind and node (semantics part 2, "Choice"): from several free
// ones in what is bound, and from several that are bound for them. This comes last, and nobody can rely on it.

const (
	// maxRooms is how many free cells in what is bound are looked at, the smallest first.
	maxRooms = 1024
	// maxNodes is how many nodes are looked at for each kind on which cells may be bound, and how many of all are returned.
	maxNodes = 16
)

// several is what an owner has, or may have, of one kind on one node.
type several struct {
	Cell
	bound int // cells that would have to be bound
}

// Several returns where cells of one kind and node together hold the devices: where what is bound suffices first, then where others lose
// least, then where fewest cells are bound. Devices that must lie under one cell come from one alone.
func (f *Finder) Several(e *world.Edit) (list []Cell) {
	if f.Want.Count < 2 || f.Want.Find.Required {
		return nil
	}
	found := f.inBound(e)
	for _, a := range f.accounts() {
		if a.Unbound() > 0 && f.Chain().Devices(a.Kind) < f.Want.Count {
			found = f.alsoUnbound(found, &a)
		}
	}
	found = slices.DeleteFunc(found, func(s several) bool { return world.Count(s.Devices) < f.Want.Count })
	slices.SortStableFunc(found, func(a, b several) int {
		return cmp.Or(cmp.Compare(min(a.bound, 1), min(b.bound, 1)), cmp.Compare(a.Loss, b.Loss), cmp.Compare(a.bound, b.bound),
			strings.Compare(a.Node, b.Node))
	})
	for _, s := range found[:min(len(found), maxNodes)] {
		list = append(list, s.Cell)
	}
	return list
}

// inBound returns what is free in bound cells, by node and kind.
func (f *Finder) inBound(e *world.Edit) (found []several) {
	type place struct {
		node string
		kind cells.Kind
	}
	at, looked := map[place]int{}, 0
	f.rooms(e, 0, func(r world.Room) bool {
		looked++
		if !f.under(r.NodeID) {
			return looked < maxRooms
		}
		i, known := at[place{r.NodeID, r.Bound}]
		if !known {
			i = len(found)
			at[place{r.NodeID, r.Bound}] = i
			found = append(found, several{Cell: Cell{Node: r.NodeID, Kind: r.Bound}})
		}
		found[i].Devices |= f.Chain().Mask(r.Level, r.Index)
		return looked < maxRooms
	})
	return found
}

// alsoUnbound adds the cells of a kind that may be bound, on nodes that have some of it bound and on those where others lose least, as many
// as are needed.
func (f *Finder) alsoUnbound(found []several, a *cells.Account) []several {
	seen := map[string]bool{}
	for i := range found {
		if s := &found[i]; s.Kind == a.Kind && len(seen) < maxNodes {
			seen[s.Node] = true
			if world.Count(s.Devices) < f.Want.Count {
				found = append(found, f.bindMore(*s, a))
			}
		}
	}
	tried := 0
	for cand := range f.candidates(a.Kind) {
		if tried++; tried > maxNodes {
			break
		}
		if !seen[cand.Cell.Node] {
			seen[cand.Cell.Node] = true
			found = append(found, f.bindMore(several{Cell: Cell{Node: cand.Cell.Node, Kind: a.Kind}}, a))
		}
	}
	return found
}

// bindMore adds cells of a node that may be bound one after the other, until they suffice or there are no more.
func (f *Finder) bindMore(s several, a *cells.Account) several {
	trial := f.Chain().Edit()
	for s.bound < a.Unbound() && world.Count(s.Devices) < f.Want.Count {
		free := trial.CandidatesOn(s.Node, s.Kind)
		if len(free) == 0 || trial.Bind(free[0].Cell, s.Kind, f.owner, false) != nil {
			break
		}
		s.Devices |= f.Chain().Mask(s.Kind.Level, free[0].Cell.Index)
		s.Loss, s.bound = s.Loss.Plus(free[0].Loss), s.bound+1
	}
	return s
}

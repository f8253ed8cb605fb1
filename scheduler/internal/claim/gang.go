package claim

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// NodesToTry returns up to so many nodes of the chain on which the owner has bound a free cell with a number of devices, then as many of
// each kind on which it may bind one, those of least loss first.
func (f *Finder) NodesToTry(e *world.Edit, devices, most int) (nodes []string) {
	least, fits := f.Chain().LevelFor(devices)
	if !fits {
		return nil
	}
	f.rooms(e, least, func(r world.Room) bool {
		if !slices.Contains(nodes, r.NodeID) {
			nodes = append(nodes, r.NodeID)
		}
		return len(nodes) < most
	})
	var unbound []Cell
	for _, a := range f.accounts() {
		if a.Unbound() < 1 || a.Kind.Level < least {
			continue
		}
		n := len(unbound)
		for cand := range f.edit.Candidates(a.Kind) {
			if unbound = append(unbound, f.on(cand, a.Kind)...); len(unbound)-n >= most {
				break
			}
		}
	}
	slices.SortStableFunc(unbound, func(a, b Cell) int { return cmp.Compare(a.Loss, b.Loss) })
	for _, at := range unbound {
		if !slices.Contains(nodes, at.Node) {
			nodes = append(nodes, at.Node)
		}
	}
	return nodes
}

// Room adds to each domain, as a node's ID names it, how many devices the owner has free in bound cells of the chain there, and how many it
// may have in cells that are yet to be bound, at most.
func (f *Finder) Room(e *world.Edit, domain func(id string) string, bound, unbound map[string]int) {
	f.rooms(e, 0, func(r world.Room) bool {
		bound[domain(r.NodeID)] += f.Chain().Levels()[r.Level].Devices
		return true
	})
	for _, a := range f.accounts() {
		if a.Unbound() > 0 {
			f.mayBind(&a, domain, unbound)
		}
	}
}

func (f *Finder) mayBind(a *cells.Account, domain func(string) string, unbound map[string]int) {
	chain, most := f.Chain(), map[string]int{}
	whole := chain.Levels()[len(chain.Levels())-1].Devices
	for cand := range f.edit.Candidates(a.Kind) {
		for _, at := range f.on(cand, a.Kind) {
			most[domain(at.Node)] += whole
		}
	}
	for d, n := range most { // each has its own place: the order does not matter
		unbound[d] += min(n, a.Unbound()*chain.Devices(a.Kind))
	}
}

package reserve

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// A stage is placed by amounts when it starts, too. Where its instances and gangs require levels within their node, it is looked afterwards whether those that are
// assigned to a part have such cells once borrowers have left; if they do not, others leave.

// cellsFor has those leave, in place of the borrowers who leave a part by amounts, without whom the instances that are assigned there find their cells.
func (t *taking) cellsFor(s Stage, parts []workflow.PartState, r *workflow.Reclaim) {
	on := map[int][]within{}
	for _, w := range withinOf(t.w, s) {
		p := r.Assigned[w.members[0]]
		if p >= 0 && !slices.ContainsFunc(w.members, func(m int) bool { return r.Assigned[m] != p }) {
			on[p] = append(on[p], w)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(on)) {
		x := partCells{taking: t, at: p, part: &parts[p], within: on[p]}
		leave, instead := x.instead(r.Victims)
		if !instead {
			continue
		}
		r.Victims = slices.DeleteFunc(r.Victims, func(id string) bool { return t.byID[id].NodeID == t.nodes[p].ID })
		r.Victims = append(r.Victims, leave...)
	}
}

// partCells is the work of finding the cells for what is assigned to a part.
type partCells struct {
	*taking
	at     int
	part   *workflow.PartState
	within []within
}

// instead returns the borrowers that leave the part so that there are the cells, if others have to than those who leave by amounts: for any order in which they could
// leave, once by each cell, who could stay beside the rest stays, and the fewest are taken. false: the same leave, or there are no such cells anyway.
func (x *partCells) instead(victims []string) (fewest []string, instead bool) {
	leaves := func(b workflow.Borrower) bool { return slices.Contains(victims, b.ID) }
	if x.hold(slices.DeleteFunc(slices.Clone(x.part.Borrowers), func(b workflow.Borrower) bool { return !leaves(b) })) || !x.hold(x.part.Borrowers) {
		return nil, false
	}
	cells := []map[string]bool{nil} // none in particular
	seen := map[string]bool{}       // looked up only
	for _, w := range x.within {
		if seen[w.level] {
			continue
		}
		seen[w.level] = true
		for _, d := range domain.CellsOf(x.nodes[x.at], w.level) {
			cells = append(cells, d.Devices)
		}
	}
	for _, cell := range cells {
		later := func(b workflow.Borrower) (n int) { // 0 for those who leave first
			if cell != nil && !slices.ContainsFunc(x.byID[b.ID].Devices, func(d world.DeviceUsage) bool { return cell[d.ID] }) {
				n = 2
			}
			if !leaves(b) {
				n++
			}
			return n
		}
		order := slices.Clone(x.part.Borrowers)
		slices.SortStableFunc(order, func(a, b workflow.Borrower) int {
			return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(b.Since, a.Since))
		})
		if leave := x.few(order); fewest == nil || len(leave) < len(fewest) {
			fewest = leave
		}
	}
	return fewest, true
}

// few returns those of some borrowers, all of whom together suffice, that leave in their order until there are the cells, without whoever could stay beside the rest.
func (x *partCells) few(order []workflow.Borrower) (ids []string) {
	n := 0
	for !x.hold(order[:n]) {
		n++
	}
	gone := slices.Clone(order[:n])
	for i := n - 1; i >= 0; i-- {
		if without := slices.Delete(slices.Clone(gone), i, i+1); x.hold(without) {
			gone = without
		}
	}
	for _, b := range gone {
		ids = append(ids, b.ID)
	}
	return ids
}

// hold reports whether what is assigned to the part has room there, and its cells, once some borrowers have left.
func (x *partCells) hold(gone []workflow.Borrower) bool {
	trial, left := world.TrialOf(x.nodes[x.at]), x.part.Idle
	for _, b := range gone {
		trial.Give(x.byID[b.ID])
		left = left.Plus(b.Uses)
	}
	if !x.needs[x.at].Fits(left) {
		return false
	}
	by := &world.Taker{Workflow: x.key}
	find := cellsOf{chooser: &x.chooser, as: nodesAs{
		state: func(int) *world.NodeState { return trial },
		allowed: func(int) func(*world.DeviceTree, int) bool {
			return func(t *world.DeviceTree, d int) bool { return !trial.Bars(t.IDs[d], by) }
		},
	}}
	free := find.free(x.at)
	for i := range x.within {
		if find.find(x.at, &x.within[i], free, nil) == nil {
			return false
		}
	}
	return true
}

package decide

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// maxRaiseLooks bounds the allocations of an owner that are looked at at once, the oldest first.
const maxRaiseLooks = 4096

// Raise is allocations of a job that may be raised.
type Raise struct {
	Job    structs.NamespacedID
	Allocs []string
}

// DueRaises returns what of an owner may be raised now, the oldest first, and allowed (semantics part 2, "Raise"). It costs nothing while
// the owner has no cell free.
func DueRaises(w *world.World, owner string, allowed func(job structs.NamespacedID, allocID string) bool) (list []Raise) {
	if !w.MayRaise(owner) {
		return nil
	}
	edit, at, looks := w.Edit(), map[structs.NamespacedID]int{}, 0
	world.Raisable(w, owner, func(u *world.Usage) bool {
		looks++
		if _, gang := u.Owner.Gang(); gang {
			return looks < maxRaiseLooks
		}
		raised := raisedUse(edit, u)
		job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
		if raised == nil || !allowed(job, u.ID) {
			return looks < maxRaiseLooks
		}
		world.Take(edit, raised)
		i, known := at[job]
		if !known {
			i = len(list)
			at[job], list = i, append(list, Raise{Job: job})
		}
		list[i].Allocs = append(list[i].Allocs, u.ID)
		return looks < maxRaiseLooks
	})
	return list
}

// raisedUse returns a usage as it is raised to the smallest of its owner's cells that hold its devices; nil: there are none.
func raisedUse(e *world.Edit, u *world.Usage) *world.Usage {
	n, known := world.StateOf(e, u.NodeID)
	if !known || n.Node == nil || beyondShare(n, u.Amount, len(u.Devices)) {
		return nil
	}
	for _, t := range n.Capacity.Trees {
		key, ok := world.ChainOf(n.Node, t)
		if !ok || world.Count(world.DeviceMask(t, u)) != len(u.Devices) {
			continue
		}
		ed := world.ChainEdit(e, key)
		if ed == nil {
			continue
		}
		for _, k := range kindsFor(ed.View(), u.Owner.Namespace, len(u.Devices)) {
			raised, owner := *u, *u.Owner
			raised.Owner = &owner
			owner.Terms.Claim, owner.Terms.CellLevel, owner.Terms.CellSize = structs.ClaimCells, ed.View().LevelName(k), k.Size
			if world.ClaimLacks(e, &raised) == "" {
				return &raised
			}
		}
	}
	return nil
}

// PlanRaise decides an evaluation that is to raise allocations of its job, and to do nothing else.
func PlanRaise(w *world.World, eval *structs.Evaluation, in search.Input, allocs []string) (*structs.Plan, error) {
	if eval == nil || in.NewID == nil {
		return nil, fmt.Errorf("raise: the evaluation or NewID is missing")
	}
	s := NewScheduler(w, eval, &in)
	for _, a := range in.Allocs {
		if !a.Terminal() && slices.Contains(allocs, a.ID) {
			s.Live = append(s.Live, a)
		}
	}
	s.raise()
	done := eval.Copy()
	done.Status, done.ModifyTime, done.SnapshotIndex = structs.EvalStatusComplete, in.Now.UnixNano(), in.SnapshotIndex
	s.plan.Evals = []*structs.Evaluation{done}
	return s.plan, nil
}

// DecideRaise decides as PlanRaise does, and goes on with what its plan does as done.
func (p *Pass) DecideRaise(eval *structs.Evaluation, in search.Input, allocs []string) (*structs.Plan, error) {
	plan, err := PlanRaise(p.w, eval, in, allocs)
	if err != nil {
		return nil, err
	}
	return plan, p.Follow(plan)
}

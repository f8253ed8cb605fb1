package decide

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/raise"
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
		raised := raise.Use(edit, u)
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
	raise.Raise(s.Edit, in.Job, s.Live, s.plan)
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

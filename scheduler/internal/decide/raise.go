package decide

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

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

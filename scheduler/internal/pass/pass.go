// Package pass decides requests that wait, one after the other, on one World that moves on with each (semantics part 7, "queue pass"). It decides
// nothing itself.
package pass

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/judge"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Pass decides requests that wait, one after the other in the order of their ranks, on one World
// that moves on with each of them (semantics part 7, "queue pass"). It is for one goroutine.
type Pass struct{ w *world.World }

// New begins a pass on a World, which stays as it is.
func New(w *world.World) *Pass { return &Pass{w: w} }

// World is how the World stands after what was decided so far.
func (p *Pass) World() *world.World { return p.w }

// Decide decides an evaluation as Schedule does, and goes on with what its plan does as
// done. Whoever carries the plans out finds that they hold, if nobody else was faster.
func (p *Pass) Decide(eval *structs.Evaluation, in search.Input) (*structs.Plan, error) {
	plan, err := p.Plan(eval, in)
	if err != nil {
		return nil, err
	}
	return plan, p.Follow(plan)
}

// Plan decides and leaves the World as it is.
func (p *Pass) Plan(eval *structs.Evaluation, in search.Input) (*structs.Plan, error) {
	return decide.Schedule(p.w, eval, in)
}

// DecideRaise decides as decide.PlanRaise does, and goes on with what its plan does as done.
func (p *Pass) DecideRaise(eval *structs.Evaluation, in search.Input, allocs []string) (*structs.Plan, error) {
	plan, err := decide.PlanRaise(p.w, eval, in, allocs)
	if err != nil {
		return nil, err
	}
	return plan, p.Follow(plan)
}

// Follow goes on with what a plan does as done.
func (p *Pass) Follow(plan *structs.Plan) error {
	if len(plan.Place)+len(plan.Stop)+len(plan.Update)+len(plan.Reserve)+len(plan.Unreserve) == 0 {
		return nil
	}
	edit := p.w.Edit()
	if _, refused, why := judge.Judge(edit, plan); len(refused) > 0 {
		return fmt.Errorf("the plan of evaluation %s is invalid on the world that it was made for: %s", plan.EvalID, why)
	}
	p.w = edit.World()
	return nil
}

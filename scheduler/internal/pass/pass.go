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
type Pass struct {
	begin *world.World
	w     *world.World
	place bool            // w changes in place
	edit  *world.Edit     // moves w on; nil: nothing was followed yet
	done  []*structs.Plan // that were followed
	half  bool            // a plan was followed in part, of which w must show nothing
}

// New begins a pass on a World, which stays as it is.
func New(w *world.World) *Pass { return &Pass{begin: w, w: w} }

// InPlace begins a pass whose World changes in place with each decision: who has it must let go of it before the next.
func InPlace(w *world.World) *Pass { return &Pass{begin: w, w: w, place: true} }

// World is how the World stands after what was decided so far.
func (p *Pass) World() *world.World {
	if p.half {
		p.again()
	}
	return p.w
}

// again follows anew what was followed.
func (p *Pass) again() {
	p.edit, p.w, p.half = p.begin.Edit(), p.begin, false
	if p.place {
		p.edit = world.InPlace(p.begin)
	}
	for _, plan := range p.done {
		judge.Judge(p.edit, plan)
		p.w = p.edit.World()
	}
}

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
	return decide.Schedule(p.World(), eval, in)
}

// DecideRaise decides as decide.PlanRaise does, and goes on with what its plan does as done.
func (p *Pass) DecideRaise(eval *structs.Evaluation, in search.Input, allocs []string) (*structs.Plan, error) {
	plan, err := decide.PlanRaise(p.World(), eval, in, allocs)
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
	if p.half || p.edit == nil {
		p.again()
	}
	p.half = true
	if _, refused, why := judge.Judge(p.edit, plan); len(refused) > 0 {
		return fmt.Errorf("the plan of evaluation %s is invalid on the world that it was made for: %s", plan.EvalID, why)
	}
	p.w = p.edit.World()
	p.done, p.half = append(p.done, plan), false
	return nil
}

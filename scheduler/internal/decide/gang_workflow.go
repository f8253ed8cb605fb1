package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/structs"
)

// ofWorkflow places all members of a gang in the reservation of its workflow; nil: there is none, or it has no room for all of them, under one domain
// if that is required.
func (x *GangPlacer) ofWorkflow() (t *Trial, without claim.Without) {
	if own := feasible.OwnWorkflow(x.s.World, x.s.Input.Job); own != nil {
		for d := range domain.OfParts(x.base, x.s.Input, x.gw, own) {
			if t = x.tryOwn(own, d); t != nil {
				break
			}
		}
	}
	return t, without
}

// tryOwn places all members under a domain (nil: anywhere) in the reservation of their workflow, or nothing.
func (x *GangPlacer) tryOwn(own *structs.WorkflowClaim, d *feasible.Domain) *Trial {
	t, before := x.newTrial(d), x.s.mark()
	t.before = &before
	for _, i := range amount.LargestFirst(x.requests) {
		run := t.runs[i].in(own)
		for _, p := range run.work.Place {
			if !run.place(p) {
				x.Undo(t)
				return nil
			}
		}
	}
	for _, run := range t.runs {
		run.work.First = len(run.work.Place) // all of them are placed
	}
	t.left(x)
	return t
}

// in has a run place in the reservation of its workflow.
func (g *groupRun) in(own *structs.WorkflowClaim) *workflowRun {
	g.search = g.search.ForNamed(g.search.Request.OfWorkflow(own.Key()))
	return &workflowRun{groupRun: g, claim: own}
}

// placeOwn places members of a gang that is up in the reservation of their workflow. It reports whether there is one: who finds no room there waits.
func (g *groupRun) placeOwn(list []reconcile.Placement) bool {
	own := feasible.OwnWorkflow(g.s.World, g.s.Input.Job)
	if own == nil {
		return false
	}
	run := g.in(own)
	for _, p := range list {
		if !run.place(p) {
			g.fail(p)
		}
	}
	return true
}

package worker

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Work is an evaluation that a worker has leased, moved on by its caller, one step after the
// other, on its goroutine, as [Worker.Run] moves it on: for simulations.
type Work struct {
	k    *work
	plan *inFlightPlan
}

// Begin takes an evaluation on that was dequeued for the worker.
func (w *Worker) Begin(got *structs.EvalDequeueReply) *Work { return &Work{k: w.begin(got)} }

// Index is what the state must have reached before Decide is called: it does not wait.
func (w *Work) Index() uint64 { return w.k.index }

// Decide makes the next plan, which is to be submitted; nil: there is nothing to do.
func (w *Work) Decide(ctx context.Context) (*structs.Plan, error) {
	var err error
	if w.plan, err = w.k.decide(ctx); err != nil || w.plan == nil {
		return nil, err
	}
	return w.plan.Plan, nil
}

// Learn takes in what became of the plan that Decide made; again: another is to be decided.
func (w *Work) Learn(ctx context.Context, result *structs.PlanResult, failed error) (again bool, err error) {
	w.plan.committed(fullyCommitted(result, failed))
	return w.k.learn(ctx, result, failed)
}

// End reports to the broker how it went, by the error that Decide or Learn returned last.
func (w *Work) End(ctx context.Context, err error) { w.k.end(ctx, err) }

// Decision is a request that a pass has decided: a plan to be submitted.
type Decision struct{ s sent }

// Plan is what was decided.
func (t Decision) Plan() *structs.Plan { return t.s.plan }

// Walk makes one pass. What it decides is to be submitted, and Learn to be called for all of
// it before the next pass. again reports whether that is needed at once.
func (p *Pass) Walk(ctx context.Context) (decided []Decision, again bool) {
	out, again := p.walk(ctx)
	for _, s := range out {
		decided = append(decided, Decision{s})
	}
	return decided, again
}

// Learn records the result of a plan.
func (p *Pass) Learn(ctx context.Context, t Decision, result *structs.PlanResult, err error) {
	p.learn(ctx, t.s, result, err)
}

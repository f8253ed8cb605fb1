package plan

import (
	"context"
	"errors"
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var applyTime = telemetry.NewTimer("nomad.plan.apply")

// inFlightRound is a round that is being committed.
type inFlightRound struct {
	round     *round
	committed chan struct{} // closed at the end; what follows may be read then
	index     uint64        // of the last entry that was committed, by it or before it
	err       error         // of the first that was not
}

// commit commits the round's entries in order and answers each plan when all of it has
// been committed, or could not be.
func (f *inFlightRound) commit(ctx context.Context, a *Applier) {
	defer close(f.committed)
	defer applyTime.If(clock.IsMachine(a.opts.Clock)).Since(time.Now())
	for _, parts := range pack(f.round.plans, a.opts.EntryBytes, known{a.store.Snapshot()}) {
		f.commitEntry(ctx, a, parts)
		for _, p := range parts {
			if p.last && p.err != nil {
				p.answer(nil, p.err)
			} else if p.last {
				p.answer(p.result(f.index), nil)
			}
		}
	}
}

// commitEntry commits one entry. When the state refuses it, its plans go one by one, so
// that a bad one does not take the others with it. What cannot be committed leaves
// its error with its plan, of which nothing more is committed.
func (f *inFlightRound) commitEntry(ctx context.Context, a *Applier, parts []part) {
	entry, of := &structs.PlanCommit{}, structs.LogPlanApply
	for _, p := range parts {
		if f.err != nil && uncertain(f.err) && p.err == nil {
			p.err = f.err // nothing can be committed any more
		}
		if p.err == nil && !empty(p.accepted) {
			entry.Plans = append(entry.Plans, p.accepted)
			switch {
			case p.accepted.Renews():
				of = structs.LogWorkflowRenew
			case p.accepted.Advance != nil && of != structs.LogWorkflowRenew: // who knows that knows this, too
				of = structs.LogWorkflowStart
			}
		}
	}
	if len(entry.Plans) == 0 {
		return
	}
	index, err := a.commit.Apply(ctx, of, entry)
	switch {
	case err == nil:
		f.index = max(f.index, index)
		return
	case errors.Is(err, structs.ErrBadRequest) && len(parts) > 1:
		for i := range parts {
			f.commitEntry(ctx, a, parts[i:i+1])
		}
		return
	}
	a.opts.Logger.Error("commit plans", "plans", len(parts), "error", err)
	if f.err == nil || uncertain(err) {
		f.err = err
	}
	for _, p := range parts {
		if p.err == nil {
			p.err = err
		}
	}
}

// known reads its facts from a snapshot.
type known struct{ snap *state.Snapshot }

func (k known) Of(allocID string) (job structs.NamespacedID, node string, found bool) {
	a := k.snap.Alloc(nil, allocID)
	if a == nil {
		return job, "", false
	}
	return structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}, a.NodeID, true
}

func (k known) RequestOf(ns, job, group string) *structs.PendingRequest {
	return k.snap.Requests().Get(nil, ns, job, group)
}

// result returns what became of a plan whose last part was committed at index, or that
// had nothing to commit.
func (j *judged) result(index uint64) *structs.PlanResult {
	r := &structs.PlanResult{RefusedNodes: j.refused, RefusedReason: j.reason, Placed: instances(j.accepted.Place)}
	r.Refused = instances(j.plan.Place) - r.Placed
	if !empty(j.accepted) {
		r.AllocIndex = index
	}
	if len(j.refused) > 0 {
		r.RefreshIndex = index
	}
	return r
}

func instances(batches []*structs.PlacementBatch) (n int) {
	for _, b := range batches {
		n += len(b.Instances)
	}
	return n
}

func empty(p *structs.JudgedPlan) bool {
	return len(p.Place)+len(p.Stop)+len(p.Update)+len(p.Reserve)+len(p.Unreserve)+len(p.Requests)+len(p.Evals) == 0 && p.Workflow == nil && p.Advance == nil
}

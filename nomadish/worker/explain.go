package worker

import (
	"maps"
	"math"
	"time"

	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// brief reports whether why an evaluation waits need not be counted now.
func (p *Pass) brief(e *structs.Evaluation) bool {
	now := p.opts.Clock.Now()
	if p.opts.Unread || e.SnapshotIndex > 0 && now.Sub(time.Unix(0, e.ModifyTime)) < p.opts.Explain || // else only what is entitled of it was looked at
		now.Sub(p.explained) < p.opts.ExplainEach {
		return true
	}
	p.explained = now
	return false
}

// explainAt returns when it is to be counted anew why a request waits that was tried; zero: it was counted now.
func (p *Pass) explainAt(lease *queue.Lease, brief bool) time.Time {
	now := p.opts.Clock.Now()
	switch {
	case !brief || p.opts.Unread || lease.EntitledOnly:
		return time.Time{}
	case lease.ExplainAt.After(now):
		return lease.ExplainAt
	}
	wait, last := p.opts.Explain, &p.explains
	if lease.Eval.SnapshotIndex == 0 { // only what is entitled of it was looked at: it states nothing yet, and is shown as not tried
		wait, last = p.opts.ExplainEach, &p.begins
	}
	at := now.Add(wait)
	if next := last.Add(p.opts.ExplainEach); next.After(at) {
		at = next
	}
	*last = at
	return at
}

// explain counts why a request waits, and changes nothing else: not when it is to be decided, nor what is reserved for it. nil: it is as is stated, or it
// is to be counted later.
func (p *Pass) explain(pass *scheduler.Pass, snap *state.Snapshot, lease *queue.Lease) *structs.Plan {
	now, was := p.opts.Clock.Now(), lease.Eval
	job := snap.Job(nil, was.Namespace, was.JobID)
	left := p.counted.of(lease, now.Add(-p.opts.ExplainEach))
	lease.ExplainAt = time.Time{}
	switch {
	case left != nil:
		left.ModifyTime = now.UnixNano()
	case now.Sub(p.explained) < p.opts.ExplainEach:
		lease.ExplainAt = p.explainAt(lease, true)
	default:
		left = p.count(pass, snap, lease)
	}
	// What is stated of a request of which only what is entitled was looked at since is not shown before it is stated anew.
	if left == nil || job == nil || was.SnapshotIndex > 0 && alike(left.FailedTGAllocs, was.FailedTGAllocs) {
		p.queue.Tried(lease, snap.Index(), was)
		return nil
	}
	left.WaitUntil, left.StatusDescription = was.WaitUntil, was.StatusDescription
	p.queue.Planned(lease, snap.Index(), left, pass.World())
	return &structs.Plan{
		EvalID: was.ID, EvalToken: lease.Token, Namespace: was.Namespace, JobID: was.JobID, JobVersion: job.Version, Priority: was.Priority,
		SnapshotIndex: snap.Index(), FailedTGAllocs: left.FailedTGAllocs, Evals: []*structs.Evaluation{left},
	}
}

// count counts why a request waits; nil: that could not be counted, or something of it would find room.
func (p *Pass) count(pass *scheduler.Pass, snap *state.Snapshot, lease *queue.Lease) *structs.Evaluation {
	was := lease.Eval
	p.explained = p.opts.Clock.Now()
	plan, err := p.guarded(func() (*structs.Plan, error) {
		in := p.input(snap, lease, false)
		in.Config.ReservationAfter = math.MaxInt64
		return pass.Plan(was, in)
	})
	if err != nil {
		p.opts.Logger.Error("why a request waits could not be counted", "eval", was.ID, "job", was.JobID, "error", err)
		return nil
	}
	left := leftOf(plan)
	if left == nil || !maps.Equal(left.QueuedAllocations, was.QueuedAllocations) {
		return nil
	}
	p.counted = explanation{alike: lease.Alike, at: p.explained, left: left}
	return left
}

// explanation is why a request waits, and when that was counted.
type explanation struct {
	alike string // as of its lease
	at    time.Time
	left  *structs.Evaluation // how it waits on
}

// of returns how the request of a lease waits on, where it is like the one of the explanation and that was counted after a time: it is short of the same, but
// for another number of instances. nil: it must be counted.
func (x *explanation) of(lease *queue.Lease, after time.Time) *structs.Evaluation {
	if lease.Alike == "" || lease.Alike != x.alike || !x.at.After(after) {
		return nil
	}
	left := new(*lease.Eval)
	left.FailedTGAllocs = make(map[string]*structs.AllocMetric, len(lease.Eval.FailedTGAllocs))
	for name := range lease.Eval.FailedTGAllocs { // order does not matter: each by itself
		m := x.left.FailedTGAllocs[name]
		if m == nil || m.CoalescedFailures+1 != x.left.QueuedAllocations[name] {
			return nil
		}
		why := new(*m)
		why.CoalescedFailures = left.QueuedAllocations[name] - 1
		left.FailedTGAllocs[name] = why
	}
	left.ClassEligibility, left.EscapedComputedClass, left.SnapshotIndex = x.left.ClassEligibility, x.left.EscapedComputedClass, x.left.SnapshotIndex
	return left
}

// alike reports whether two have the same explanation of why groups wait.
func alike(a, b map[string]*structs.AllocMetric) bool {
	return maps.EqualFunc(a, b, func(x, y *structs.AllocMetric) bool {
		return x.NodesEvaluated == y.NodesEvaluated && x.NodesFiltered == y.NodesFiltered && x.NodesExhausted == y.NodesExhausted &&
			maps.Equal(x.ConstraintFiltered, y.ConstraintFiltered) && maps.Equal(x.DimensionExhausted, y.DimensionExhausted)
	})
}

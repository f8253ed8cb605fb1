package plan

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/structs"
)

var overtookCount = telemetry.NewCount("nomad.plan.overtook")

// busyLimit bounds the wait for a request that no worker has taken yet: those who wait
// might be what keeps the workers from it.
const busyLimit = 10 * time.Millisecond

// taking reports whether a plan takes room.
func taking(p *structs.Plan) bool {
	if instances(p.Place) > 0 {
		return true
	}
	return slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u.Resources != nil })
}

// freeing reports whether what is accepted of a plan frees room.
func freeing(p *structs.JudgedPlan) bool {
	return len(p.Unreserve) > 0 || slices.ContainsFunc(p.Stop, func(s *structs.AllocStop) bool { return !s.KeepRunning }) ||
		slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u.Resources != nil })
}

// left is the blocked evaluation that a plan leaves; nil: all has room.
func left(p *structs.JudgedPlan) *structs.Evaluation {
	for _, e := range p.Evals {
		if e.Status == structs.EvalStatusBlocked {
			return e
		}
	}
	return nil
}

// admit judges the plans that wait as far as their gates let them, best rank first. It
// reports whether any was judged.
func (p *pipeline) admit() (any bool) {
	slices.SortStableFunc(p.parked, func(a, b *judged) int { return a.rank.Compare(&b.rank) })
	now := p.opts.Clock.Now()
	var stay []*judged
	for _, j := range p.parked {
		if p.open.full {
			stay = append(stay, j)
			continue
		}
		a := queue.Admission{}
		if p.opts.Gate != nil && j.plan.EvalID != "" {
			a = p.opts.Gate.Admit(j.plan.EvalID, p.open.base, p.freed)
			if !taking(j.plan) {
				a.Verdict = queue.GateOpen
			}
		}
		j.rank, j.verdict = a.Rank, a.Verdict
		switch {
		case a.Verdict == queue.GateOpen:
			p.judge(j)
			any = true
		case a.Verdict == queue.GateRefresh:
			p.stale = true
			stay = append(stay, j)
		case now.Sub(j.since) < p.patience(a.Verdict):
			stay = append(stay, j)
		default:
			p.sendBack(j)
		}
	}
	p.parked = stay
	return any
}

// patience is how long a plan is kept that may not be judged yet.
func (p *pipeline) patience(verdict queue.Verdict) time.Duration {
	switch verdict {
	case queue.GateWait:
		return p.opts.ParkLimit
	case queue.GateBusy:
		return busyLimit
	case queue.GateOpen, queue.GateRefresh, queue.GateShut: // the first two are not kept by time
	}
	return 0
}

// sendBack answers a plan that would have overtaken others.
func (p *pipeline) sendBack(j *judged) {
	overtookCount.If(clock.IsMachine(p.opts.Clock)).Add(1)
	j.unretain()
	p.opts.Gate.SendBack(j.plan.EvalID, j.plan.EvalToken)
	j.done <- answer{result: &structs.PlanResult{
		Overtook: true, Refused: instances(j.plan.Place), RefreshIndex: max(p.open.base, p.last),
		RefusedReason: "a higher-ranked request in the node pool must be tried first",
	}}
}

// parkedUntil returns what may let plans on that wait for their gates, and when the first of
// them has waited for long enough; nil: none waits.
func (p *pipeline) parkedUntil() (<-chan struct{}, <-chan time.Time) {
	soonest, some := p.patienceEnds()
	if !some {
		return nil, nil
	}
	return p.opts.Gate.Gates(), time.After(soonest)
}

// patienceEnds is when the first of the plans that wait for their gates has waited for long
// enough; false: there is none, or the in-flight commit must end first.
func (p *pipeline) patienceEnds() (time.Duration, bool) {
	if len(p.parked) == 0 || p.opts.Gate == nil || !p.mayJudge() {
		return 0, false
	}
	now, soonest := p.opts.Clock.Now(), p.opts.ParkLimit
	for _, j := range p.parked {
		if j.verdict == queue.GateWait || j.verdict == queue.GateBusy {
			soonest = min(soonest, p.patience(j.verdict)-now.Sub(j.since))
		}
	}
	return max(soonest, 0), true
}

// Package claimcheck checks plans that were judged against what is owned when they are committed: it may have changed in between, and so
// may have which nodes are ready (docs/design/semantics.md, part 7).
package claimcheck

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Check is the state to which a plan is committed, as far as its claims are concerned.
type Check struct {
	// World is the scheduler's view of the state, with what was committed before the plan. The plan is tried on a copy.
	World *scheduler.Edit
	// Alloc, Job and VirtualCluster return rows; nil: there is none.
	Alloc          func(id string) *structs.Allocation
	Job            func(namespace, id string) *structs.Job
	VirtualCluster func(namespace string) *structs.VirtualCluster
}

// Plan returns the part of a judged plan whose claims still hold (semantics part 7): what is owned, or which nodes are ready, may
// have changed since the plan was judged. What has lost its claim is stored opportunistic if it takes from nobody and may run so: a
// running instance that was to be raised always may. Else, and if a system or sysbatch instance would take what somebody owns by now,
// nothing of the plan but its evaluations is done, and its job is evaluated again. It returns the IDs of what was placed without its claim.
func (c Check) Plan(p *structs.JudgedPlan) (judged *structs.JudgedPlan, placed []string) {
	if p.Workflow != nil && c.reservationLacks(p) {
		return &structs.JudgedPlan{EvalID: p.EvalID, Evals: p.Evals, Time: p.Time, JudgedAt: p.JudgedAt}, nil
	}
	if !c.claims(p) {
		return p, nil
	}
	lost := c.lostClaims(p)
	if len(lost.batches)+len(lost.raises) == 0 {
		return p, nil
	}
	if takesFromOthers(p) || lost.takesOver(p) || slices.ContainsFunc(p.Place, func(b *structs.PlacementBatch) bool { return lost.batches[b] && !c.mayRunOpportunistically(b) }) {
		return &structs.JudgedPlan{EvalID: p.EvalID, Evals: append(slices.Clone(p.Evals), c.again(p)...), Time: p.Time, JudgedAt: p.JudgedAt}, nil
	}
	now := *p
	now.Place, now.Update = slices.Clone(p.Place), slices.Clone(p.Update)
	for i, b := range now.Place {
		if lost.batches[b] {
			own := *b
			own.Resources = opportunistic(b.Resources)
			now.Place[i] = &own
			for n := range own.Instances {
				placed = append(placed, own.Allocation(n).ID)
			}
		}
	}
	for i, u := range now.Update {
		if lost.raises[u] {
			own := *u
			own.Resources = opportunistic(u.Resources)
			now.Update[i] = &own
		}
	}
	return &now, placed
}

// reservationLacks reports whether what a plan reserves for a workflow does not hold any more, so that nobody leaves for it.
func (c Check) reservationLacks(p *structs.JudgedPlan) bool {
	trial := c.World.World().Edit()
	for _, s := range p.Stop {
		if s != nil && !s.KeepRunning {
			trial.DeleteAlloc(s.AllocID, "")
		}
	}
	raises := false
	for _, u := range p.Update {
		if c.raises(u) {
			raises = true
			raised := *c.Alloc(u.AllocID)
			raised.AllocatedResources = u.Resources
			trial.UpsertAlloc(&raised)
		}
	}
	return scheduler.ReservationLacks(trial, p.Workflow, raises) != ""
}

// opportunistic returns resources without a claim.
func opportunistic(r *structs.AllocatedResources) *structs.AllocatedResources {
	now := r.Copy()
	terms := r.Shared.Terms.Opportunistic()
	now.Shared.Terms = &terms
	return now
}

// claims reports whether a plan places or raises anything by a claim, or places anything beside what is owned.
func (c Check) claims(p *structs.JudgedPlan) bool {
	return slices.ContainsFunc(p.Place, batchClaims) || slices.ContainsFunc(p.Update, c.raises)
}

func batchClaims(b *structs.PlacementBatch) bool {
	return b != nil && b.Resources != nil && b.Resources.Shared.Terms != nil && (b.Resources.Shared.Terms.Claim != "" || b.Resources.Shared.Terms.PerNode)
}

// raises reports whether a change in place lets an allocation use a claim which has none.
func (c Check) raises(u *structs.AllocInPlace) bool {
	if u == nil || !HasClaim(u.Resources) {
		return false
	}
	was := c.Alloc(u.AllocID)
	return was != nil && !was.Terminal() && !HasClaim(was.AllocatedResources)
}

// HasClaim reports whether resources use a claim.
func HasClaim(r *structs.AllocatedResources) bool {
	return r != nil && r.Shared.Terms != nil && r.Shared.Terms.Claim != ""
}

func takesFromOthers(p *structs.JudgedPlan) bool {
	return slices.ContainsFunc(p.Stop, func(s *structs.AllocStop) bool { return s != nil && s.PreemptedBy != "" })
}

// keepCells keeps the cells bound, until what it returns is called, that a plan's placements are to use and others of their namespace
// leave for them: as when the plan was judged.
func keepCells(e *scheduler.Edit, p *structs.JudgedPlan) (end func()) {
	if !slices.ContainsFunc(p.Place, batchClaims) || !takesFromOthers(p) && !slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u != nil && u.ClassTo != "" }) {
		return func() {}
	}
	return scheduler.KeepCells(e, p.Place)
}

// claimLosses are the parts of a plan that cannot use their claims any more: batches of which an instance cannot, and raises.
type claimLosses struct {
	batches map[*structs.PlacementBatch]bool
	raises  map[*structs.AllocInPlace]bool
}

// takesOver reports whether something in a plan gives up its class for what has lost its claim.
func (l *claimLosses) takesOver(p *structs.JudgedPlan) bool {
	lost := map[string]bool{}
	for b := range l.batches { // order does not matter: a set
		for i := range b.Instances {
			lost[b.Allocation(i).ID] = true
		}
	}
	for u := range l.raises { // order does not matter: a set
		lost[u.AllocID] = true
	}
	return slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u != nil && lost[u.ClassTo] })
}

// lostClaims tries what a plan does, in the order in which it is done.
func (c Check) lostClaims(p *structs.JudgedPlan) claimLosses {
	lost := claimLosses{map[*structs.PlacementBatch]bool{}, map[*structs.AllocInPlace]bool{}}
	trial := c.World.World().Edit()
	defer keepCells(trial, p)()
	for _, s := range p.Stop {
		if s != nil && !s.KeepRunning {
			trial.DeleteAlloc(s.AllocID, "")
		}
	}
	for _, u := range p.Update {
		switch {
		case c.raises(u):
			raised := *c.Alloc(u.AllocID)
			if raised.AllocatedResources = u.Resources; trial.AllocLacksClaim(&raised) != "" {
				lost.raises[u] = true
				continue
			}
			trial.UpsertAlloc(&raised)
		case u != nil && u.ClassTo != "" && c.Alloc(u.AllocID) != nil && HasClaim(c.Alloc(u.AllocID).AllocatedResources):
			lowered := *c.Alloc(u.AllocID)
			lowered.AllocatedResources = opportunistic(lowered.AllocatedResources)
			trial.UpsertAlloc(&lowered)
		}
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			if batchClaims(b) && (trial.AllocLacksClaim(a) != "" || scheduler.LacksPart(trial, a)) {
				lost.batches[b] = true
				break
			}
			trial.UpsertAlloc(a)
		}
	}
	lost.gangs(p)
	return lost
}

// gangs has all new members of a gang lose their claims of which some do: those that must run together all use one, or none does.
func (l *claimLosses) gangs(p *structs.JudgedPlan) {
	type gang struct{ namespace, job, gang string }
	of := func(b *structs.PlacementBatch) gang { return gang{b.Namespace, b.JobID, b.Resources.Shared.Terms.Gang} }
	lost := map[gang]bool{}
	for b := range l.batches { // order does not matter: a set
		if g := of(b); g.gang != "" {
			lost[g] = true
		}
	}
	for _, b := range p.Place {
		if batchClaims(b) && lost[of(b)] {
			l.batches[b] = true
		}
	}
}

// mayRunOpportunistically reports whether the job of a batch lets its instances run without a claim.
func (c Check) mayRunOpportunistically(b *structs.PlacementBatch) bool {
	job := c.Job(b.Namespace, b.JobID)
	if job == nil || job.Class == structs.ClassGuaranteed || job.PerNode() {
		return false
	}
	v := c.VirtualCluster(b.Namespace)
	return v == nil || v.OverLimit == structs.OverLimitOpportunistic
}

// again returns an evaluation of the job that a plan is of.
func (c Check) again(p *structs.JudgedPlan) []*structs.Evaluation {
	of := func(namespace, id, seed string) []*structs.Evaluation {
		job := c.Job(namespace, id)
		if job == nil {
			return nil
		}
		return []*structs.Evaluation{{
			ID: structs.DeriveID(p.EvalID+"@"+seed, 0), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
			TriggeredBy: structs.EvalTriggerVirtualCluster, Status: structs.EvalStatusPending, JobModifyIndex: job.JobModifyIndex,
			CreateTime: p.Time, ModifyTime: p.Time,
		}}
	}
	for _, b := range p.Place {
		if evals := of(b.Namespace, b.JobID, b.Seed); evals != nil {
			return evals
		}
	}
	for _, u := range p.Update {
		if u == nil {
			continue
		}
		if a := c.Alloc(u.AllocID); a != nil {
			return of(a.Namespace, a.JobID, u.AllocID)
		}
	}
	return nil
}

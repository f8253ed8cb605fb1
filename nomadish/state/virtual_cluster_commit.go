package state

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// checked returns the part of a judged plan whose claims still hold (semantics part 7): what is owned, or which nodes are ready, may
// have changed since the plan was judged. What has lost its claim is stored opportunistic if it takes from nobody and may run so: a
// running instance that was to be raised always may. Else, and if a system or sysbatch instance would take what somebody owns by now,
// nothing of the plan but its evaluations is done, and its job is evaluated again. It returns the IDs of what was placed without its claim.
func (t claimTable) checked(p *structs.JudgedPlan) (judged *structs.JudgedPlan, placed []string) {
	if !t.claims(p) || t.indexOf(TableVirtualClusters) <= p.JudgedAt && t.indexOf(TableNodes) <= p.JudgedAt {
		return p, nil
	}
	lost := t.lostClaims(p)
	if len(lost.batches)+len(lost.raises) == 0 {
		return p, nil
	}
	if takesFromOthers(p) || lost.takesOver(p) || slices.ContainsFunc(p.Place, func(b *structs.PlacementBatch) bool { return lost.batches[b] && !t.mayRunOpportunistically(b) }) {
		return &structs.JudgedPlan{EvalID: p.EvalID, Evals: append(slices.Clone(p.Evals), t.again(p)...), Time: p.Time, JudgedAt: p.JudgedAt}, nil
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

// describeLoss states of an allocation that it was placed without the claim by which it was decided.
func (t claimTable) describeLoss(id string) {
	if was := t.x.alloc(id); was != nil && was.DesiredStatus == structs.AllocDesiredRun && !hasClaim(was.AllocatedResources) {
		now := *was
		now.DesiredDescription = structs.DescLostClaim
		t.x.putAlloc(was, &now, false)
	}
}

// opportunistic returns resources without a claim.
func opportunistic(r *structs.AllocatedResources) *structs.AllocatedResources {
	now := r.Copy()
	terms := r.Shared.Terms.Opportunistic()
	now.Shared.Terms = &terms
	return now
}

// indexOf returns the index that last changed a table, as far as entries have been applied.
func (t claimTable) indexOf(table string) uint64 { return t.x.marks[tableNumber(table)].index }

// claims reports whether a plan places or raises anything by a claim, or places anything beside what is owned.
func (t claimTable) claims(p *structs.JudgedPlan) bool {
	return slices.ContainsFunc(p.Place, batchClaims) || slices.ContainsFunc(p.Update, t.raises)
}

func batchClaims(b *structs.PlacementBatch) bool {
	return b != nil && b.Resources != nil && b.Resources.Shared.Terms != nil && (b.Resources.Shared.Terms.Claim != "" || b.Resources.Shared.Terms.PerNode)
}

// raises reports whether a change in place lets an allocation use a claim which has none.
func (t claimTable) raises(u *structs.AllocInPlace) bool {
	if u == nil || !hasClaim(u.Resources) {
		return false
	}
	was := t.x.alloc(u.AllocID)
	return was != nil && !was.Terminal() && !hasClaim(was.AllocatedResources)
}

func hasClaim(r *structs.AllocatedResources) bool {
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
	return e.KeepCells(p.Place)
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
func (t claimTable) lostClaims(p *structs.JudgedPlan) claimLosses {
	lost := claimLosses{map[*structs.PlacementBatch]bool{}, map[*structs.AllocInPlace]bool{}}
	trial := t.x.edit.World().Edit()
	defer keepCells(trial, p)()
	for _, s := range p.Stop {
		if s != nil && !s.KeepRunning {
			trial.DeleteAlloc(s.AllocID, "")
		}
	}
	for _, u := range p.Update {
		switch {
		case t.raises(u):
			raised := *t.x.alloc(u.AllocID)
			if raised.AllocatedResources = u.Resources; trial.AllocLacksClaim(&raised) != "" {
				lost.raises[u] = true
				continue
			}
			trial.UpsertAlloc(&raised)
		case u != nil && u.ClassTo != "" && t.x.alloc(u.AllocID) != nil && hasClaim(t.x.alloc(u.AllocID).AllocatedResources):
			lowered := *t.x.alloc(u.AllocID)
			lowered.AllocatedResources = opportunistic(lowered.AllocatedResources)
			trial.UpsertAlloc(&lowered)
		}
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			if batchClaims(b) && trial.AllocLacksClaim(a) != "" {
				lost.batches[b] = true
				break
			}
			trial.UpsertAlloc(a)
		}
	}
	return lost
}

// mayRunOpportunistically reports whether the job of a batch lets its instances run without a claim.
func (t claimTable) mayRunOpportunistically(b *structs.PlacementBatch) bool {
	job := t.x.job(b.Namespace, b.JobID)
	if job == nil || job.Class == structs.ClassGuaranteed || job.PerNode() {
		return false
	}
	v := get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, b.Namespace)
	return v == nil || v.OverLimit == structs.OverLimitOpportunistic
}

// again returns an evaluation of the job that a plan is of.
func (t claimTable) again(p *structs.JudgedPlan) []*structs.Evaluation {
	of := func(namespace, id, seed string) []*structs.Evaluation {
		job := t.x.job(namespace, id)
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
		if a := t.x.alloc(u.AllocID); a != nil {
			return of(a.Namespace, a.JobID, u.AllocID)
		}
	}
	return nil
}

// Status returns a virtual cluster as it is shown, with what views of the World report about it.
func (v VirtualClusters) Status(of *structs.VirtualCluster, views map[string]*scheduler.ClaimView) *structs.VirtualClusterStatus {
	s := &structs.VirtualClusterStatus{
		Name: of.Name, OverLimit: of.OverLimit, Points: of.Points, Pending: of.Pending, Windows: of.Windows, Changes: of.Changes, Cells: []*structs.CellStatus{},
		CreateIndex: of.CreateIndex, ModifyIndex: of.ModifyIndex,
	}
	view := views[of.Name]
	if view == nil {
		return s
	}
	s.Cells, s.Bound, s.GuaranteedGPUs, s.OpportunisticGPUs = view.Cells, view.Bound, view.GuaranteedGPUs, view.OpportunisticGPUs
	line := func(of *structs.CellQuota) *structs.CellStatus {
		c := of.Claim()
		for _, l := range s.Cells {
			if l.Kind == c.Kind() && l.NodePool == c.NodePool && l.Level == c.Level && l.Size == c.Size {
				return l
			}
		}
		return &structs.CellStatus{}
	}
	now := int64(0)
	if row := one[structs.ClaimsTime](v.snap.v, nil, TableClaimsTime, byID); row != nil {
		now = row.Now
	}
	for i := range of.Changes {
		if c := &of.Changes[i]; c.Why == structs.CellChangeWon && c.From <= now && now < c.Until {
			l := line(&c.Cells)
			l.Won += c.Cells.Count
			l.Given -= c.Cells.Count
		}
	}
	for x := range v.Exchanges(nil) {
		if !x.Bid && x.Owner == of.Name {
			line(&x.Cells).Offered += x.Cells.Count
		}
	}
	if of.CellsWait() {
		why := "it waits in order"
		if err := scheduler.AdmitClaims(v.snap.World(), of.Name, of.AllGiven()); err != nil {
			why = reasonOf(err)
		}
		s.AddWaiting(of, why)
	}
	return s
}

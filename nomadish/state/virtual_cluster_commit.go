package state

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// checked returns the part of a judged plan whose claims still hold (semantics part 7): what is owned, or which nodes are ready, may
// have changed since the plan was judged. A placement that has lost its claim is stored opportunistic if it takes from nobody
// and may run so. Else, and if a system or sysbatch instance would take what somebody owns by now, nothing of the plan but its evaluations is done, and its job is evaluated again.
func (t claimTable) checked(p *structs.JudgedPlan) *structs.JudgedPlan {
	if !claims(p) || t.indexOf(TableVirtualClusters) <= p.JudgedAt && t.indexOf(TableNodes) <= p.JudgedAt {
		return p
	}
	lost := t.lostClaims(p)
	if len(lost) == 0 {
		return p
	}
	if takesFromOthers(p) || slices.ContainsFunc(p.Place, func(b *structs.PlacementBatch) bool { return lost[b] && !t.mayRunOpportunistically(b) }) {
		return &structs.JudgedPlan{EvalID: p.EvalID, Evals: append(slices.Clone(p.Evals), t.again(p)...), Time: p.Time, JudgedAt: p.JudgedAt}
	}
	now := *p
	now.Place = slices.Clone(p.Place)
	for i, b := range now.Place {
		if lost[b] {
			own := *b
			own.Resources = b.Resources.Copy()
			terms := b.Resources.Shared.Terms.Opportunistic()
			own.Resources.Shared.Terms = &terms
			now.Place[i] = &own
		}
	}
	return &now
}

// indexOf returns the index that last changed a table, as far as entries have been applied.
func (t claimTable) indexOf(table string) uint64 { return t.x.marks[tableNumber(table)].index }

// claims reports whether a plan places anything by a claim, or beside what is owned.
func claims(p *structs.JudgedPlan) bool { return slices.ContainsFunc(p.Place, batchClaims) }

func batchClaims(b *structs.PlacementBatch) bool {
	return b != nil && b.Resources != nil && b.Resources.Shared.Terms != nil && (b.Resources.Shared.Terms.Claim != "" || b.Resources.Shared.Terms.PerNode)
}

func takesFromOthers(p *structs.JudgedPlan) bool {
	return slices.ContainsFunc(p.Stop, func(s *structs.AllocStop) bool { return s != nil && s.PreemptedBy != "" })
}

// keepCells keeps the cells bound, until what it returns is called, that a plan's placements are to use and others of their namespace
// leave for them: as when the plan was judged.
func keepCells(e *scheduler.Edit, p *structs.JudgedPlan) (end func()) {
	if !claims(p) || !takesFromOthers(p) && !slices.ContainsFunc(p.Update, func(u *structs.AllocInPlace) bool { return u != nil && u.ClassTo != "" }) {
		return func() {}
	}
	return e.KeepCells(p.Place)
}

// lostClaims returns the batches of which an instance cannot use its claim any more.
func (t claimTable) lostClaims(p *structs.JudgedPlan) map[*structs.PlacementBatch]bool {
	lost := map[*structs.PlacementBatch]bool{}
	trial := t.x.edit.World().Edit()
	defer keepCells(trial, p)()
	for _, s := range p.Stop {
		if s != nil && !s.KeepRunning {
			trial.DeleteAlloc(s.AllocID, "")
		}
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			if batchClaims(b) && trial.AllocLacksClaim(a) != "" {
				lost[b] = true
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
	for _, b := range p.Place {
		job := t.x.job(b.Namespace, b.JobID)
		if job == nil {
			continue
		}
		return []*structs.Evaluation{{
			ID: structs.DeriveID(p.EvalID+"@"+b.Seed, 0), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
			TriggeredBy: structs.EvalTriggerVirtualCluster, Status: structs.EvalStatusPending, JobModifyIndex: job.JobModifyIndex,
			CreateTime: p.Time, ModifyTime: p.Time,
		}}
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

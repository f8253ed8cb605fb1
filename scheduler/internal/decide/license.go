package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// lacksLicense returns which license one instance more of the group finds too few of; "": none.
func (g *groupRun) lacksLicense() string {
	return world.LicenseEdit{E: g.search.Edit}.LacksFor(g.search.Request.Resources.Shared.Terms, 1, g.search.Request.By.Recognised)
}

// unlicensed reports whether there are too few licenses for one instance more of the group, which is explained then.
func (g *groupRun) unlicensed(p reconcile.Placement) bool {
	why := g.lacksLicense()
	if why == "" {
		return false
	}
	g.failFor(p, why)
	return true
}

// failFor counts an instance as not placed, for a reason that no node has.
func (g *groupRun) failFor(p reconcile.Placement, why string) {
	g.reasons = []string{why}
	g.fail(p)
	m := g.s.failed[g.work.Group.Name]
	if n, known := g.s.World.Node(p.NodeID); known && m.DimensionExhausted[why] == 0 { // the metric is this evaluation's own: its nodes are named
		metric.Explanation{AllocMetric: m}.Exhausted(n, why, 1)
	}
}

// keepLicensed leaves of the instances that found no free room only those for which there are licenses.
func (g *groupRun) keepLicensed() {
	request, edit := g.search.Request, world.LicenseEdit{E: g.search.Edit}
	for n := len(g.short); n > 0; n-- {
		why := edit.LacksFor(request.Resources.Shared.Terms, n, request.By.Recognised)
		if why == "" {
			return
		}
		g.failFor(g.short[n-1], why)
		g.short = g.short[:n-1]
	}
}

// placeUnlicensed places one instance for which too few licenses are free: by a claim, which no pending reservation binds, with licenses that are lent
// to it, or with those that others return for it. One that is not placed is explained.
func (g *groupRun) placeUnlicensed(p reconcile.Placement, own *workflowRun, claims *claimRun, slots *slotRun) bool {
	terms, s, why, waits := g.search.Request.Resources.Shared.Terms, g.s, g.lacksLicense(), g.s.queued[g.work.Group.Name]
	byClaim := func() bool { return own.place(p) || claims.placeOrLower(p) || slots.placeOrTake(p) }
	if (world.LicenseEdit{E: g.search.Edit}).LacksFor(terms, 1, true) == "" && byClaim() {
		return true
	}
	without := !s.Input.EntitledOnly && claims.mayDoWithout(p) // else it is explained
	if without && g.borrow(p) {
		return true
	}
	var leave []*world.Usage
	r, enough := s.reclaimer(g.search.Edit), false
	if own != nil {
		if leave, enough = licensetake.FromBorrowers(world.Base(g.search.Edit), own.claim, terms.Licenses.List(), nil); enough {
			r.only, r.why = map[string]bool{}, "reclaimed for workflow "+own.claim.ID
		}
	}
	if !enough && s.mayReclaim() {
		leave = r.licenses(terms.Licenses.List(), func() bool { return g.lacksLicense() != "" })
	}
	if (enough || len(leave) > 0) && r.instead(g, leave, func() bool {
		if byClaim() {
			return true
		}
		if !without {
			return false
		}
		g.search.Rewind()
		if f := g.seek(p); f != nil {
			g.accept(p, f)
			return true
		}
		return s.mayReclaim() && g.reclaimOne(p)
	}) {
		return true
	}
	if s.queued[g.work.Group.Name] == waits {
		g.failFor(p, why)
	}
	return false
}

// licenses returns who of lower bands leaves for some licenses, if they lack any; nil: all of them are too few.
func (r *reclaimer) licenses(of []structs.RequestedLicense, lacks func() bool) []*world.Usage {
	return licensetake.FromBands(r.e, of, lacks, func(u *world.Usage) bool {
		own := u.Owner.Namespace == r.s.eval.Namespace && u.Owner.Job == r.s.eval.JobID
		return r.s.band(u) < r.below && !u.PerNode() && !r.s.protected(r.e, u, r.below) && !own
	})
}

// instead has some leave for the licenses that they return, if an instance of a group is placed then. It reports whether it was. What was taken for
// others of the group before goes back as far as it can stay beside all of them.
func (r *reclaimer) instead(g *groupRun, leave []*world.Usage, place func() bool) bool {
	s := r.s
	stops := together.Stop(r.e, leave, s.Input.Now.UnixNano())
	if !place() {
		together.Stay(r.e, leave)
		return false
	}
	r.returned(s.newest, leave, stops)
	g.relicensed++
	edit, t := world.LicenseEdit{E: r.e}, g.search.Request.Resources.Shared.Terms
	for _, d := range slices.Backward(s.reclaimed) {
		if !d.licenses || d.gang || d.run.work != g.work {
			continue
		}
		edit.Reserve("", d.use.Owner.Job, &d.use.Owner.Terms, 1)
		edit.Reserve("", s.eval.JobID, t, int64(-g.relicensed))
		lacks := edit.LacksFor(t, g.relicensed, true) != ""
		edit.Reserve("", s.eval.JobID, t, int64(g.relicensed))
		edit.Reserve("", d.use.Owner.Job, &d.use.Owner.Terms, -1)
		if !lacks {
			r.back(d)
		}
	}
	return true
}

// returned notes who leaves for the licenses that they return to the last instance of a run. Of a gang that leaves whole nobody stays after all.
func (r *reclaimer) returned(run *groupRun, leave []*world.Usage, stops []*structs.AllocStop) {
	s, by := r.s, structs.DeriveID(run.batch.Seed, uint64(run.batch.Instances[len(run.batch.Instances)-1].Ordinal))
	for i, st := range stops {
		if st.PreemptedBy, st.DesiredDescription = by, "preempted by allocation "+by+", which needs its license"; st.SuspendedAt == 0 {
			st.RequeueReason = (&outcome{r: r}).reason(leave[i])
		}
		s.plan.Stop = append(s.plan.Stop, st)
		s.reclaimed = append(s.reclaimed, &reclaimed{use: leave[i], stop: st, run: run, licenses: true, gang: together.Gone(r.e, leave[i])})
		run.work.Counts.Preemptions++
	}
}

package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A gang borrows from workflows, and others return licenses for it, as for single instances, but for all of its first members in one plan.

// lacksLicense returns which license the first members find too few of, all together; "": none.
func (x *GangPlacer) lacksLicense(recognised bool) string {
	return x.gw.LacksLicense(x.base, x.s.Input.Job, recognised)
}

// first places the first members by a claim, or without one where they may; nil: there is no room, or too few licenses, for all of them, and why.
func (x *GangPlacer) first() (t *Trial, without claim.Without) {
	s, lacks := x.s, x.lacksLicense(standing.Of(x.s.World, x.s.Input.Job) == structs.StandingRecognised)
	if lacks == "" || x.lacksLicense(true) == "" { // no pending reservation binds a claim
		if t, without = x.byClaim(); t != nil {
			return t, without
		}
	} else {
		without = x.withoutClaim()
	}
	if !s.Input.EntitledOnly && without.Withheld == nil {
		if lacks == "" {
			t = x.Place()
		}
		if t == nil {
			t = x.borrowed()
		}
		if t == nil && lacks == "" {
			t = x.ofFailed()
		}
		if t == nil && lacks == "" && !x.later {
			t = x.reclaim()
		}
	}
	if t == nil && lacks != "" {
		if t = x.relicensed(); t == nil {
			without.Withheld = []string{lacks}
		}
	}
	return t, without
}

// byClaim places the first members by a claim: the reservation of their workflow, cells of their namespace, or slots of their project.
func (x *GangPlacer) byClaim() (t *Trial, without claim.Without) {
	if t, without = x.ofWorkflow(); t != nil {
		return t, without
	}
	if t, without = x.claim(); t != nil {
		return t, without
	}
	t, why := x.slots()
	without.Reasons = append(without.Reasons, why...)
	return t, without
}

// borrowed places the first members where they find room, with what workflows lend to them in place of what they do not find; nil: too little is lent.
func (x *GangPlacer) borrowed() (t *Trial) {
	if !slices.ContainsFunc(x.gw.Works, func(w *reconcile.GroupWork) bool { return len(lend.Lenders(x.s.Input, x.s.World, w.Group)) > 0 }) {
		return nil
	}
	looked, failed := x.looked, x.failed
	x.borrows = true
	t = x.Place()
	x.borrows, x.looked, x.failed = false, looked, failed
	return t
}

// seek finds a node for a member that has its licenses.
func (x *GangPlacer) seek(run *groupRun, p reconcile.Placement) *search.Found {
	if x.borrows && run.lacksLicense() != "" {
		return nil
	}
	return run.seek(p)
}

// lend places a member with what a workflow lends to it, if it is to borrow. It reports whether it did.
func (x *GangPlacer) lend(run *groupRun, p reconcile.Placement) bool {
	if !x.borrows {
		return false
	}
	placed := run.borrow(p)
	x.later = x.later || run.lent != nil && lend.Later(run.lent.lenders)
	return placed
}

// relicensed places the first members with licenses that borrowers return to their workflow, or those of lower bands; nil: they return too few, or there
// is no room.
func (x *GangPlacer) relicensed() (t *Trial) {
	s, r, of := x.s, x.s.reclaimer(x.base), x.gw.Licenses()
	if own := feasible.OwnWorkflow(s.World, s.Input.Job); own != nil {
		if leave, enough := licensetake.FromBorrowers(world.Base(x.base), own, of, nil); enough {
			t = x.instead(leave)
		}
	}
	if t == nil && s.mayReclaim() && !x.later {
		recognised := standing.Of(s.World, s.Input.Job) == structs.StandingRecognised
		t = x.instead(r.licenses(of, func() bool { return x.lacksLicense(recognised) != "" }))
	}
	return t
}

// instead has some leave for the licenses that they return, if the first members are placed then; nil: they are not.
func (x *GangPlacer) instead(leave []*world.Usage) (t *Trial) {
	if len(leave) == 0 {
		return nil
	}
	stops := together.Stop(x.base, leave, x.s.Input.Now.UnixNano())
	if t, _ = x.first(); t == nil {
		together.Stay(x.base, leave)
		return nil
	}
	t.leave, t.stops = leave, stops
	return t
}

// returned notes who leaves for the licenses that they return to a trial that was kept. Who can stay beside what else was taken stays.
func (x *GangPlacer) returned(t *Trial) {
	if len(t.leave) == 0 {
		return
	}
	runs := t.all()
	at := slices.IndexFunc(runs, func(run *groupRun) bool { return run.batch != nil })
	r := x.s.reclaimer(x.s.Edit)
	if own := feasible.OwnWorkflow(x.s.World, x.s.Input.Job); own != nil && t.leave[0].Owner.Terms.BorrowsFrom() == own.Key() {
		r.only, r.why = map[string]bool{}, "reclaimed for workflow "+own.ID
	}
	r.returned(runs[at], t.leave, t.stops)
	var placed []licensetake.Placed
	for _, run := range runs {
		if run.batch != nil {
			placed = append(placed, licensetake.PlacedBy(run.batch, run.search.Request.By.Recognised))
		}
	}
	for _, d := range slices.Backward(slices.Clone(x.s.reclaimed)) {
		if d.licenses && !d.gang && licensetake.MayStay(x.s.Edit, d.use, placed) {
			r.back(d)
		}
	}
}

// placeMoreUnlicensed places a member that need not come with others and finds too few licenses, with some that are lent to it unless it must use a
// claim. It reports whether that was so; one that was not placed is explained.
func (g *groupRun) placeMoreUnlicensed(p reconcile.Placement, required bool) bool {
	if g.lacksLicense() == "" {
		return false
	}
	return !g.s.Input.EntitledOnly && !required && g.borrow(p) || g.unlicensed(p)
}

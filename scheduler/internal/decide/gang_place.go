package decide

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/gangrank"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// MaxNodesTried bounds the nodes that are tried for a gang that must be on one node.
// The first nearly always does, as all that the members request fits there together.
const MaxNodesTried = 16

// GangPlacer places one gang as a whole.
type GangPlacer struct {
	s        *Scheduler
	gw       *reconcile.GangWork
	base     *world.Edit // with the room of what leaves with the placement
	requests []amount.Amount
	meta     []bool                   // whether groups look at meta
	reserved map[string]amount.Amount // reserved, by class
	// What is explained, if there is no room: the domains of the level that was
	// required, and the last trial.
	looked []*Room
	failed *Trial
	// taking: others of lower bands, of priorities up to most, make room; compares: the
	// domain is wanted that loses least. See reclaim_gang.go.
	taking, compares bool
	most             int
	// claiming: by what the gang's namespace owns; lowering: what its lower bands are guaranteed, too. See claims_gang.go.
	claiming, lowering bool
	// onSlots: the first members, while they are to use slots of their project. leaving: others leave for them: for slots all that may be taken from, else
	// those that failed the submission check. See slots_gang.go.
	onSlots *slot.Gang
	leaving bool
	// borrows: members that find no room, or too few licenses, borrow from workflows; later: more is lent to them in a later round. See gang_license.go.
	borrows, later bool
}

// NewGangPlacer begins the placing of a gang on the edit of an evaluation.
func NewGangPlacer(s *Scheduler, gw *reconcile.GangWork) *GangPlacer {
	x := &GangPlacer{s: s, gw: gw, base: s.Edit.World().Edit()}
	for _, st := range gw.Stops {
		world.Release(x.base, st.AllocID)
	}
	for _, work := range gw.Works {
		x.requests = append(x.requests, amount.OfRequest(search.NewRequest(s.Input, work.Group)))
		x.meta = append(x.meta, s.Fit(work.Group).LooksAtMeta())
	}
	return x
}

// placeGang places what a gang lacks. What it returns is to be looked at later.
func (s *Scheduler) placeGang(gw *reconcile.GangWork) []reconcile.Later {
	for _, work := range gw.Works {
		world.PutInto(&s.queued, work.Group.Name, 0)
	}
	if gw.Wanted() == 0 {
		return nil
	}
	if !gw.Whole {
		if gw.Suspended(s.Live, s.plan.Update) {
			entitledPosition{s}.leaveGang(gw, "its gang is suspended")
		} else {
			s.growGang(gw)
		}
		return nil
	}
	x := NewGangPlacer(s, gw)
	if why := x.enough(); why != "" {
		x.explain(claim.Without{Withheld: []string{why}})
		return nil
	}
	t, without := x.first()
	if t == nil && s.Input.EntitledOnly && without.Withheld == nil {
		entitledPosition{s}.leaveGang(gw)
		return nil
	}
	if t != nil {
		x.keep(t)
		return nil
	}
	x.explain(without)
	if gw.Force != nil {
		return []reconcile.Later{*gw.Force}
	}
	return nil
}

// Place finds places for the first members: under one cell of the level that is
// wanted, else of the lowest level above it, else, unless that is required, anywhere.
func (x *GangPlacer) Place() *Trial {
	want := x.gw.Spec.Topology
	if want == nil {
		return x.try(nil)
	}
	levels := x.s.Input.Config.SiteLevels()
	_, at, site := domain.SiteLevel(&x.s.Input.Config, want.Level)
	switch {
	case site:
		levels = levels[at:]
	case domain.NodeLevel(x.s.World, want.Level):
		for _, level := range domain.LevelsWithin(x.gw, want) {
			if t := x.onOneNode(level); t != nil {
				return t
			}
			if !x.taking {
				continue
			}
			if t := x.makeRoomOnOne(level); t != nil {
				return t
			}
		}
		if want.Required {
			return nil
		}
	case want.Required:
		return nil
	}
	for _, level := range levels {
		if t := x.inDomains(level); t != nil || want.Required {
			return t
		}
	}
	return x.try(nil)
}

// Trial is one try to place a gang's first members, on an edit that is kept only if
// all of them find room.
type Trial struct {
	edit   *world.Edit
	runs   []*groupRun // by group
	claims []*claimRun // by group; nil: they use no cells
	slots  []*slotRun  // by group; nil: they use no slots
	short  int         // the group that found no room, of a trial that failed
	// What others make room for, and what that takes from them.
	reclaim *gangReclaim
	loss    preempt.Loss
	before  *mark // to go back to; nil: nothing was taken from others without reclaim
	// leave return licenses for it, and stops are theirs.
	leave []*world.Usage
	stops []*structs.AllocStop
}

// found is how many of a group found room.
func (t *Trial) found(group int) int64 {
	if b := t.runs[group].batch; b != nil {
		return int64(len(b.Instances))
	}
	return 0
}

// try places all first members under a domain (nil: anywhere), or nothing. Groups of
// large instances go first, as small ones find room between them.
func (x *GangPlacer) try(d *feasible.Domain) *Trial {
	switch {
	case x.claiming:
		return x.tryClaims(d)
	case x.onSlots != nil:
		return x.trySlots(d)
	}
	t := x.newTrial(d)
	if x.leaving || x.borrows { // borrowers leave for the workflow's own
		before := x.s.mark()
		t.before = &before
	}
	whole := true
	for _, i := range amount.LargestFirst(x.requests) {
		run := t.runs[i]
		run.search.Rewind() // others have taken room since it was made
		for _, p := range run.work.Place[:run.work.First] {
			if f := x.seek(run, p); f != nil {
				run.accept(p, f)
			} else if !x.lend(run, p) && (!x.leaving || !run.takeFailed(p)) && !t.makeRoom(x, run, p) {
				whole, t.short = false, i
				break
			}
		}
		if !whole && d != nil {
			break // where anywhere is tried, the others are counted too
		}
	}
	if t.madeRoom(x, whole) {
		if t.before != nil {
			t.left(x)
		}
		return t
	}
	x.failed = t
	x.Undo(t)
	return nil
}

// newTrial begins a trial under a domain.
func (x *GangPlacer) newTrial(d *feasible.Domain) *Trial {
	s := x.s
	t := &Trial{edit: x.base.World().Edit()}
	for _, work := range x.gw.Works {
		f := s.Fit(work.Group)
		if d != nil {
			f = f.In(d)
		}
		run := s.newRun(work, t.edit, f)
		run.under(d)
		t.runs = append(t.runs, run)
	}
	for _, a := range x.gw.Old {
		s.Census.Move(a.TaskGroup, a.NodeID, -1)
	}
	return t
}

// all returns what the members of a trial were placed by: each group's run, with those by its kinds of cells.
func (t *Trial) all() (runs []*groupRun) {
	for i, run := range t.runs {
		runs = append(append(runs, run), run.lent.begun()...)
		if t.claims != nil {
			runs = append(runs, t.claims[i].all()...)
		}
		if t.slots != nil {
			runs = append(runs, t.slots[i].all()...)
		}
	}
	return runs
}

// Undo forgets where a trial's members would have been.
func (x *GangPlacer) Undo(t *Trial) {
	for _, a := range x.gw.Old {
		x.s.Census.Move(a.TaskGroup, a.NodeID, 1)
	}
	if t.reclaim != nil {
		x.s.backTo(t.reclaim.mark)
	}
	if t.before != nil {
		x.s.backTo(*t.before)
	}
	for _, run := range t.all() {
		if run.batch == nil {
			continue
		}
		for _, in := range run.batch.Instances {
			x.s.Census.Move(run.work.Group.Name, run.batch.Nodes[in.Node].ID, -1)
		}
	}
}

// under keeps a run to the one node of a domain, if it is one, and to its devices.
func (g *groupRun) under(d *feasible.Domain) {
	g.only = ""
	if d == nil {
		return
	}
	g.only = d.NodeID
	if d.Devices != nil {
		for i := range g.search.Request.Devices {
			g.search.Request.Devices[i].Within = d
		}
	}
}

// onOneNode places all first members on one node, under one cell of a level there.
func (x *GangPlacer) onOneNode(level string) *Trial {
	switch {
	case x.claiming:
		return x.claimOneNode(level)
	case x.onSlots != nil || x.leaving:
		return x.leaveOneNode(level)
	}
	s := x.s
	joint := domain.Joint(x.gw, level)
	find := search.New(x.base, search.NewRequest(s.Input, joint), feasible.NewFeasibility(s.Input.Job, joint, s.fits.Matcher), &s.Random, s.Input.Policy())
	var tried []string
	for range MaxNodesTried {
		f := find.Next(tried)
		if f == nil || slices.Contains(tried, f.Node.ID) {
			break
		}
		for _, d := range x.domainsOn(f, level) {
			if t := x.try(d); t != nil {
				return t
			}
		}
		tried = append(tried, f.Node.ID)
	}
	if x.borrows {
		return x.leaveOneNode(level)
	}
	return nil
}

// keep takes a trial over into the plan, and places what more of the gang finds room.
func (x *GangPlacer) keep(t *Trial) {
	s := x.s
	s.Edit = t.edit
	s.plan.Stop = append(s.plan.Stop, x.gw.Stops...)
	s.plan.AllAtOnce = s.plan.AllAtOnce || x.gw.Spec.Informed
	for i, run := range t.runs {
		rest := run.work.Place[run.work.First:]
		if len(rest) > 0 {
			run.search.Rewind() // others have taken room since it was made
		}
		var claims *claimRun
		if t.claims != nil {
			claims = t.claims[i].more()
		}
		if t.claims != nil { // those above min may use slots beside cells
			t.slots = append(t.slots, run.slots())
		}
		var slots *slotRun
		if i < len(t.slots) {
			slots = t.slots[i].more()
		}
		for _, p := range rest {
			placeMore(x.gw, run, claims, slots, p)
		}
	}
	x.returned(t)
	s.seat(x.gw, t.all(), nil)
}

// placeMore places one member that need not come with others. A topology that is only
// preferred is given up where it has no room.
func placeMore(gw *reconcile.GangWork, run *groupRun, claims *claimRun, slots *slotRun, p reconcile.Placement) {
	s, group := run.s, run.work.Group
	if run.enough(p) || run.placeMoreUnlicensed(p, claims != nil && claims.required || slots != nil && slots.required) || (slots == nil || !slots.required) && claims.placeWider(gw.Spec.Topology, p) ||
		(claims == nil || !claims.required) && slots.placeWider(gw.Spec.Topology, p) || run.leave() || !claims.mayDoWithout(p) || !slots.mayDoWithout(p) {
		return
	}
	slots.rewind()
	if s.failed[group.Name] == nil {
		f := run.seek(p)
		for d := run.search.Fit.Within; f == nil && d != nil && !gw.Spec.Topology.Required; {
			d = d.Above
			run.search = s.newSearch(group, run.search.Edit, s.Fit(group).In(d))
			run.under(d)
			f = run.seek(p)
		}
		if f != nil {
			run.accept(p, f)
			return
		}
	}
	if !run.borrow(p) {
		run.fail(p)
	}
}

// growGang places members of a gang that is up, beside those that stay.
func (s *Scheduler) growGang(gw *reconcile.GangWork) {
	var live []*structs.Allocation
	var last *structs.RescheduleTracker
	for _, a := range s.Live {
		if slices.ContainsFunc(gw.Works, func(w *reconcile.GroupWork) bool { return w.Group.Name == a.TaskGroup }) {
			live = append(live, a)
			if t := a.RescheduleTracker; t != nil && (last == nil || len(t.Events) > len(last.Events)) {
				last = t
			}
		}
	}
	slices.SortFunc(live, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(gangrank.Of(a), gangrank.Of(b)), cmp.Compare(a.ID, b.ID))
	})
	if gw.Spec.Informed && len(live) > 0 {
		ids := make([]string, len(live))
		for i, a := range live {
			ids[i] = a.ID
		}
		s.plan.Beside = append(s.plan.Beside, ids)
	}
	d := s.beside(gw, live)
	kind, guaranteed := s.claimOf(live)
	t := &Trial{}
	for i, work := range gw.Works {
		f := s.Fit(work.Group)
		if d != nil {
			f = f.In(d)
		}
		run := s.newRun(work, s.Edit, f)
		run.under(d)
		if t.runs = append(t.runs, run); (len(live) == 0 || kind == structs.ClaimWorkflow) && run.placeOwn(work.Place) {
			continue
		}
		var claims *claimRun
		var slots *slotRun
		if kind != "" && kind != structs.ClaimWorkflow {
			claims, slots = run.claims(), run.slots()
		}
		t.claims, t.slots = append(t.claims, claims), append(t.slots, slots)
		lacks := gw.Spec.Groups[i].Min - guaranteed[work.Group.Name] - len(work.Done)
		for _, p := range work.Place {
			if p.Tracker == nil && !gw.Spec.ByMember {
				p.Tracker = last // they fail as one
			}
			claims.require(lacks > 0 && kind == structs.ClaimCells)
			slots.require(lacks > 0 && kind == structs.ClaimSlots)
			lacks--
			placeMore(gw, run, claims, slots, p)
		}
	}
	s.seat(gw, t.all(), live)
}

// beside is the domain that others of a gang are to be under: that of those which
// run; nil: any.
func (s *Scheduler) beside(gw *reconcile.GangWork, live []*structs.Allocation) *feasible.Domain {
	want := gw.Spec.Topology
	if want == nil || len(live) == 0 {
		return nil
	}
	n, known := s.World.Node(live[0].NodeID)
	if !known {
		return nil
	}
	if level, _, site := domain.SiteLevel(&s.Input.Config, want.Level); site {
		return domain.OfSite(n, level)
	}
	if domain.NodeLevel(s.World, want.Level) {
		need := int64(0)
		for _, work := range gw.Works {
			need += amount.OfRequest(search.NewRequest(s.Input, work.Group)).Devices * int64(len(work.Place))
		}
		return domain.BesideOn(s.Edit, gw, s.fits.Matcher, need, n, live)
	}
	return nil
}

package scheduler

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// maxNodesTried bounds the nodes that are tried for a gang that must be on one node.
// The first nearly always does, as all that the members ask fits there together.
const maxNodesTried = 16

// gangPlacer places one gang as a whole.
type gangPlacer struct {
	s    *scheduler
	gw   *gangWork
	base *Edit // with the room of what leaves with the placement
	asks []amount
	meta []bool            // whether groups look at meta
	held map[string]amount // reserved, by class
	// What is explained, if there is no room: the domains of the level that was
	// required, and the last trial.
	looked []*room
	failed *trial
	// taking: others of lower bands, of priorities up to most, make room; compares: the
	// domain is wanted that loses least. See reclaim_gang.go.
	taking, compares bool
	most             int
}

func newGangPlacer(s *scheduler, gw *gangWork) *gangPlacer {
	x := &gangPlacer{s: s, gw: gw, base: s.edit.World().Edit()}
	for _, st := range gw.stops {
		x.base.release(st.AllocID)
	}
	for _, work := range gw.works {
		x.asks = append(x.asks, askAmount(newAsk(s.in, work.group)))
		x.meta = append(x.meta, s.fit(work.group).looksAtMeta())
	}
	return x
}

// placeGang places what a gang lacks. What it gives is to be looked at later.
func (s *scheduler) placeGang(gw *gangWork) []later {
	for _, work := range gw.works {
		put(&s.queued, work.group.Name, 0)
	}
	if gw.wanted() == 0 {
		return nil
	}
	if !gw.whole {
		s.growGang(gw)
		return nil
	}
	x := newGangPlacer(s, gw)
	t := x.place()
	if t == nil {
		t = x.reclaim()
	}
	if t != nil {
		x.keep(t)
		return nil
	}
	x.explain()
	if gw.force != nil {
		return []later{*gw.force}
	}
	return nil
}

// place finds places for the first members: under one cell of the level that is
// wanted, else of the lowest level above it, else, unless that is required, anywhere.
func (x *gangPlacer) place() *trial {
	want := x.gw.spec.topology
	if want == nil {
		return x.try(nil)
	}
	levels := x.s.in.Config.SiteLevels()
	_, at, site := x.s.siteLevel(want.Level)
	switch {
	case site:
		levels = levels[at:]
	case x.s.nodeLevel(want.Level):
		for _, level := range x.levelsWithin(want) {
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

// trial is one try to place a gang's first members, on an edit that is kept only if
// all of them find room.
type trial struct {
	edit  *Edit
	runs  []*groupRun // by group
	short int         // the group that found no room, of a trial that failed
	// What others make room for, and what that takes from them.
	reclaim *gangReclaim
	loss    preempt.Loss
}

// found is how many of a group found room.
func (t *trial) found(group int) int64 {
	if b := t.runs[group].batch; b != nil {
		return int64(len(b.Instances))
	}
	return 0
}

// try places all first members under a domain (nil: anywhere), or nothing. Groups of
// large instances go first, as small ones find room between them.
func (x *gangPlacer) try(d *domain) *trial {
	s := x.s
	t := &trial{edit: x.base.World().Edit()}
	for _, work := range x.gw.works {
		f := s.fit(work.group)
		if d != nil {
			f = f.in(d)
		}
		run := s.newRun(work, t.edit, f)
		run.under(d)
		t.runs = append(t.runs, run)
	}
	for _, a := range x.gw.old {
		s.census.move(a.TaskGroup, a.NodeID, -1)
	}
	order := make([]int, len(x.asks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareAmounts(x.asks[b], x.asks[a]) })
	whole := true
	for _, i := range order {
		run := t.runs[i]
		run.search.rewind() // others have taken room since it was made
		for _, p := range run.work.place[:run.work.first] {
			if f, ok := run.seek(p); ok {
				run.accept(p, f)
			} else if !t.makeRoom(x, run, p) {
				whole, t.short = false, i
				break
			}
		}
		if !whole && d != nil {
			break // where anywhere is tried, the others are counted too
		}
	}
	if t.madeRoom(x, whole) {
		return t
	}
	x.failed = t
	x.undo(t)
	return nil
}

// undo forgets where a trial's members would have been.
func (x *gangPlacer) undo(t *trial) {
	for _, a := range x.gw.old {
		x.s.census.move(a.TaskGroup, a.NodeID, 1)
	}
	if t.reclaim != nil {
		x.s.backTo(t.reclaim.mark)
	}
	for _, run := range t.runs {
		if run.batch == nil {
			continue
		}
		for _, in := range run.batch.Instances {
			x.s.census.move(run.work.group.Name, run.batch.Nodes[in.Node].ID, -1)
		}
	}
}

// under keeps a run to the one node of a domain, if it is one, and to its devices.
func (g *groupRun) under(d *domain) {
	g.only = ""
	if d == nil {
		return
	}
	g.only = d.nodeID
	if d.devices != nil {
		for i := range g.search.ask.devices {
			g.search.ask.devices[i].within = d
		}
	}
}

// onOneNode places all first members on one node, under one cell of a level there.
func (x *gangPlacer) onOneNode(level string) *trial {
	s := x.s
	joint := x.joint(level)
	find := newSearch(x.base, newAsk(s.in, joint), newFeasibility(s.in.Job, joint, s.fits.m), s.rng, s.in.policy())
	var tried []string
	for range maxNodesTried {
		f, ok := find.next(tried)
		if !ok || slices.Contains(tried, f.node.id) {
			return nil
		}
		for _, d := range x.domainsOn(f, level) {
			if t := x.try(d); t != nil {
				return t
			}
		}
		tried = append(tried, f.node.id)
	}
	return nil
}

// keep takes a trial over into the plan, and places what more of the gang finds room.
func (x *gangPlacer) keep(t *trial) {
	s := x.s
	s.edit = t.edit
	s.plan.Stop = append(s.plan.Stop, x.gw.stops...)
	s.plan.AllAtOnce = s.plan.AllAtOnce || x.gw.spec.told
	for _, run := range t.runs {
		rest := run.work.place[run.work.first:]
		if len(rest) > 0 {
			run.search.rewind() // others have taken room since it was made
		}
		for _, p := range rest {
			x.gw.more(run, p)
		}
	}
	s.seat(x.gw, t.runs, nil)
}

// more places one member that need not come with others. A topology that is only
// preferred is given up where it has no room.
func (gw *gangWork) more(run *groupRun, p placement) {
	s, group := run.s, run.work.group
	if s.failed[group.Name] == nil {
		f, ok := run.seek(p)
		for d := run.search.f.within; !ok && d != nil && !gw.spec.topology.Required; {
			d = d.above
			run.search = s.newSearch(group, run.search.e, s.fit(group).in(d))
			run.under(d)
			f, ok = run.seek(p)
		}
		if ok {
			run.accept(p, f)
			return
		}
	}
	run.fail(p)
}

// growGang places members of a gang that is up, beside those that stay.
func (s *scheduler) growGang(gw *gangWork) {
	var live []*structs.Allocation
	var last *structs.RescheduleTracker
	for _, a := range s.live {
		if slices.ContainsFunc(gw.works, func(w *groupWork) bool { return w.group.Name == a.TaskGroup }) {
			live = append(live, a)
			if t := a.RescheduleTracker; t != nil && (last == nil || len(t.Events) > len(last.Events)) {
				last = t
			}
		}
	}
	slices.SortFunc(live, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a.ID, b.ID))
	})
	if gw.spec.told && len(live) > 0 {
		ids := make([]string, len(live))
		for i, a := range live {
			ids[i] = a.ID
		}
		s.plan.Beside = append(s.plan.Beside, ids)
	}
	d := s.beside(gw, live)
	var runs []*groupRun
	for _, work := range gw.works {
		f := s.fit(work.group)
		if d != nil {
			f = f.in(d)
		}
		run := s.newRun(work, s.edit, f)
		run.under(d)
		runs = append(runs, run)
		for _, p := range work.place {
			if p.tracker == nil && !gw.spec.byMember {
				p.tracker = last // they fail as one
			}
			gw.more(run, p)
		}
	}
	s.seat(gw, runs, live)
}

// beside is the domain that others of a gang are to be under: that of those which
// run; nil: any.
func (s *scheduler) beside(gw *gangWork, live []*structs.Allocation) *domain {
	want := gw.spec.topology
	if want == nil || len(live) == 0 {
		return nil
	}
	n, known := s.w.Node(live[0].NodeID)
	if !known {
		return nil
	}
	if level, _, site := s.siteLevel(want.Level); site {
		return domainOf(n, level)
	}
	if s.nodeLevel(want.Level) {
		return s.besideOn(gw, n, live)
	}
	return nil
}

// anywhere is the search without the domain that it was kept to.
func (s *search) anywhere() *search {
	if s.f.within == nil {
		return s
	}
	c := *s
	c.f = s.f.in(nil)
	c.byClass = c.f.looksAtMeta()
	return &c
}

package decide

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A gang uses slots of its project as a whole (semantics part 0, rule 5): its first instances all do, or none of them. If others must leave, they
// leave for all of them in one plan, or nobody does. Those above its min are decided one by one.

// first returns the groups of a gang, and how many of each must be placed at once.
func first(gw *reconcile.GangWork) (groups []*structs.TaskGroup, n []int) {
	for _, work := range gw.Works {
		groups, n = append(groups, work.Group), append(n, work.First)
	}
	return groups, n
}

// Waiting is a group that waits in an evaluation, for those who explain why.
type Waiting struct {
	S    *Scheduler
	Work *reconcile.GroupWork
}

// WhyNoSlots returns why the group uses no slots of its project, that has been pending since then, in Unix nanoseconds; "": it could use none;
// and until when others need not leave for it.
func (w Waiting) WhyNoSlots(since int64) (why string, until int64) {
	if gw := w.Work.Gang; gw != nil && gw.Whole {
		groups, n := first(gw)
		return slot.WhyOfGang(w.S.Input, NewGangPlacer(w.S, gw).base, groups, n, since)
	}
	return slot.Why(w.S.Input, w.S.Edit, w.Work.Group, since)
}

// enough returns why the gang waits if with its first members its project would run more instances than are enough; "": it does not.
func (x *GangPlacer) enough() string {
	if x.s.Input.Job.Project == "" {
		return ""
	}
	groups, n := first(x.gw)
	return slot.WhyNoMoreOf(world.Base(x.base), x.s.Input.Job, groups, n)
}

// slots places the gang's first members on slots of their project, and has others leave for them if they may; nil: there is not enough for all, and
// why.
func (x *GangPlacer) slots() (t *Trial, why []string) {
	if x.s.Input.Job.Project == "" {
		return nil, nil
	}
	groups, n := first(x.gw)
	all := slot.NewGang(x.s.Input, x.base, groups, n)
	if all == nil {
		return nil, nil
	}
	now, since := x.s.Input.Now.UnixNano(), x.pendingSince()
	if all.HasSlots() {
		x.onSlots = all
		looked, failed := x.looked, x.failed
		defer func() { x.onSlots, x.leaving, x.looked, x.failed = nil, false, looked, failed }()
		if t = x.Place(); t != nil {
			return t, nil
		}
		switch at := since + all.Grace(); {
		case !all.UnderAllocated():
		case at > now:
			x.s.graceEnds = earlier(x.s.graceEnds, time.Unix(0, at).UTC())
		default:
			x.leaving = true
			if t = x.Place(); t != nil {
				return t, nil
			}
		}
	}
	return nil, []string{all.Why(now, since)}
}

// pendingSince returns since when all of the gang's groups have been pending.
func (x *GangPlacer) pendingSince() (since int64) {
	for _, work := range x.gw.Works {
		if work.First > 0 {
			since = max(since, x.s.Input.PendingSince(work.Group.Name, x.s.eval.PendingSince()))
		}
	}
	return since
}

// ofFailed places the gang's first members where those leave that failed the submission check; nil: too few do.
func (x *GangPlacer) ofFailed() *Trial {
	w := world.Base(x.base)
	if !w.Slots().AnyFailed() || standing.Of(w, x.s.Input.Job) == structs.StandingFailed {
		return nil
	}
	looked, failed := x.looked, x.failed
	defer func() { x.onSlots, x.leaving, x.looked, x.failed = nil, false, looked, failed }()
	x.leaving = true
	if x.s.Input.Job.Project != "" {
		groups, n := first(x.gw)
		if all := slot.NewGang(x.s.Input, x.base, groups, n); all != nil && all.HasSlots() {
			x.onSlots = all
			if t := x.Place(); t != nil {
				return t
			}
			x.onSlots = nil
		}
	}
	return x.Place()
}

// trySlots places all first members on slots under a domain (nil: anywhere), or nothing.
func (x *GangPlacer) trySlots(d *feasible.Domain) *Trial {
	t, before := x.newTrial(d), x.s.mark()
	t.before = &before
	for _, run := range t.runs {
		t.slots = append(t.slots, run.slots())
	}
	for _, i := range amount.LargestFirst(x.requests) {
		work := t.runs[i].work
		for n, p := range work.Place[:work.First] {
			c := t.slots[i]
			if n == 0 {
				c.find.Rewind() // others have taken room since it was made
			}
			if !c.find.HasSlots() || !c.place(p) && (!x.leaving || !c.take(p) && !c.takeFailed(p)) {
				x.Undo(t)
				return nil
			}
		}
	}
	t.left(x)
	return t
}

// left ends a trial for which others leave: who left for one member may stay if a gang that left for the next had its room beside.
func (t *Trial) left(x *GangPlacer) {
	t.runs[0].putBackAll()
	t.loss = x.s.lossSince(*t.before)
}

// leaveOneNode places all first members on one node, under one cell of a level there, where they borrow, use slots or others leave for them: of the nodes that are
// tried on the one that loses least.
func (x *GangPlacer) leaveOneNode(level string) *Trial {
	var nodes []string
	switch {
	case x.borrows:
		nodes = lend.NodesToTry(x.base, x.s.Input, x.gw.Works[0].Group, search.NewRequest(x.s.Input, domain.Joint(x.gw, level)), claimDomainTries)
	case x.onSlots != nil:
		nodes = x.onSlots.NodesLeft(claimDomainTries)
	default:
		nodes = slot.NodesOfFailed(world.Base(x.base), x.s.Input, claimDomainTries)
	}
	least := leastLoss{x: x}
	for _, id := range nodes {
		for _, d := range domain.At(x.base, x.gw, id, level) {
			if t := x.try(d); t != nil && least.enough(t, d) {
				return t
			}
		}
	}
	return least.again()
}

// more returns the placing on slots for members that need not come with others.
func (c *slotRun) more() *slotRun {
	if c != nil {
		c.full, c.stuck = false, false
		c.find.Rewind()
	}
	return c
}

// require states whether the next instance must use slots, as too few of its gang would without it.
func (c *slotRun) require(is bool) {
	if c != nil {
		c.required = is
	}
}

// placeWider places one instance of a gang on slots of its project. A topology that is only preferred is given up where there are none.
func (c *slotRun) placeWider(t *structs.TopologyConstraint, p reconcile.Placement) bool {
	if c.placeOrTake(p) {
		return true
	}
	if c == nil || c.g.search.Fit.Within == nil || t != nil && t.Required {
		return false
	}
	if c.wider == nil {
		g := *c.g
		g.only, g.batch, g.nodes, g.short = "", nil, nil, nil
		g.search = g.s.newSearch(g.work.Group, g.search.Edit, g.s.Fit(g.work.Group))
		c.wider = g.slots()
	}
	c.stale = true
	return c.wider.more().placeOrTake(p)
}

// mayDoWithout reports whether an instance that found no slots may run without. One that may not is explained.
func (c *slotRun) mayDoWithout(p reconcile.Placement) bool {
	if c == nil || !c.required {
		return true
	}
	c.g.reasons = append(slices.Clone(c.g.reasons), "withheld: its gang uses slots, and would not without it")
	c.g.fail(p)
	return false
}

// all returns the placings by what an instance takes beside its cost.
func (c *slotRun) all() (runs []*groupRun) {
	if c == nil {
		return nil
	}
	for _, use := range c.uses {
		runs = append(runs, c.runs[use])
	}
	return append(runs, c.wider.all()...)
}

package decide

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// What a project was given comes before what is free (semantics part 4): a recognised instance uses slots of its project while a row has room
// for it, on a node that has enough left. Where the project runs fewer instances than it has slots, and one has been pending for longer than the
// grace, others leave for it.

// slotRun places instances of one group on slots of their project.
type slotRun struct {
	g    *groupRun
	find *slot.Finder
	// runs are the placings by what an instance takes beside its cost: a batch has one right.
	runs map[slot.Use]*groupRun
	uses []slot.Use // of runs, in the order in which they were begun
	// full: no more slots are to be had where room is free; stuck: none by taking from others either.
	full, stuck bool
	// stays: what is placed takes the place of another, whose node it prefers.
	stays bool
	// stale: what the group's search has found free may be taken, and more may be free.
	stale bool
	// Of members of a gang. required: the next must use slots. wider places those without a topology that is only preferred. See slots_gang.go.
	required bool
	wider    *slotRun
}

// slots begins the placing of a group on slots of its project; nil: its instances use none.
func (g *groupRun) slots() *slotRun {
	s := g.s
	if s.Input.Job.Project == "" {
		return nil
	}
	find := slot.NewFinder(s.Input, g.search.Edit, g.work.Group, func() *search.Search {
		return search.ForGroup(s.Input, g.work.Group, g.search.Edit, g.search.Fit, &s.Random, &s.Census, s.Live)
	})
	if find == nil {
		return nil
	}
	g.onSlots = &slotRun{g: g, find: find, runs: map[slot.Use]*groupRun{}}
	return g.onSlots
}

// placeOrTake places one instance on slots, and takes room from others for it if it may. It reports whether it did.
func (c *slotRun) placeOrTake(p reconcile.Placement) bool {
	if c == nil || c.stuck || p.NodeID != "" {
		return false
	}
	if !c.find.HasSlots() {
		c.full, c.stuck = true, true
		c.because(c.find.WhyFull())
		return false
	}
	if !c.full && c.place(p) {
		return true
	}
	c.full = true
	if c.take(p) {
		return true
	}
	c.stuck = true
	return false
}

// because notes why an instance uses no slot.
func (c *slotRun) because(why string) {
	c.g.noSlot = c.find.Reasons(why)
	c.g.reasons = c.g.noSlot
}

// place places one instance on free slots.
func (c *slotRun) place(p reconcile.Placement) bool {
	world.Flush(c.g.search.Edit)
	if c.g.only != "" {
		return c.placeOn(c.g.only, p) != nil
	}
	if (c.stays || c.g.sticky(p)) && c.placeOn(p.Previous.NodeID, p) != nil {
		c.find.Rewind()
		return true
	}
	if c.find.InCells() {
		return c.placeInCell("", p) != nil
	}
	at := c.find.Next(p.Avoided())
	if at == nil || c.placeOn(at.Node.ID, p) == nil {
		return false
	}
	c.find.Taken(at)
	return true
}

// placeInCell places one instance in free cells of its project that are slots, on one node if it is named. It returns the run that
// did; nil: there is no room.
func (c *slotRun) placeInCell(nodeID string, p reconcile.Placement) *groupRun {
	for at, use := range c.find.Cells(nodeID) {
		if slices.Contains(p.Avoided(), at.Node) {
			continue
		}
		run := c.run(use)
		c.find.Aim(run.search.Request, at)
		if f := run.search.On(at.Node); f != nil {
			run.accept(p, f)
			c.stale = true
			return run
		}
	}
	return nil
}

// placeOn places one instance on free slots of a node. It returns the run that did; nil: there is no room.
func (c *slotRun) placeOn(nodeID string, p reconcile.Placement) *groupRun {
	if c.find.InCells() {
		return c.placeInCell(nodeID, p)
	}
	n, known := world.StateOf(c.g.search.Edit, nodeID)
	if !known || n.Node == nil {
		return nil
	}
	use, ok := c.find.On(n)
	if !ok {
		return nil
	}
	run := c.run(use)
	f := run.search.On(nodeID)
	if f == nil {
		return nil
	}
	run.accept(p, f)
	c.stale = true
	return run
}

// placeWhereRoomWasMade places one instance on a node that others leave for it, on slots of its project if some are free there. It returns the run that
// did; nil: there is no room after all.
func (g *groupRun) placeWhereRoomWasMade(nodeID string, p reconcile.Placement) *groupRun {
	if c := g.onSlots; c != nil && c.find.HasSlots() {
		if run := c.placeOn(nodeID, p); run != nil {
			return run
		}
	}
	n, _ := world.StateOf(g.search.Edit, nodeID)
	grant, what := g.search.Request.Grant(n, g.s.fits.Matcher, &g.s.Random)
	if what != "" {
		return nil
	}
	g.accept(p, &search.Found{Node: n, Grant: grant})
	return g
}

// run returns the placing of the group by what an instance takes of slots, begun if need be.
func (c *slotRun) run(use slot.Use) *groupRun {
	if r := c.runs[use]; r != nil {
		return r
	}
	r := *c.g
	r.batch, r.nodes, r.short, r.onSlots = nil, nil, nil, nil
	r.search = c.g.search.ForNamed(c.g.search.Request.OnSlot(use.Guards, use.Light, use.Level))
	c.runs[use], c.uses = &r, append(c.uses, use)
	return &r
}

// placeAgain places the successor of an instance that has just released what it used.
func (c *slotRun) placeAgain(p reconcile.Placement) bool {
	if c != nil {
		c.full, c.stuck, c.stays = false, false, p.Previous != nil
		c.find.Rewind()
	}
	return c.placeOrTake(p)
}

// batches adds what was placed to the plan.
func (c *slotRun) batches() {
	if c != nil {
		for _, use := range c.uses {
			c.runs[use].addBatch()
		}
	}
}

// rewind begins the group's search anew if slots were used since.
func (c *slotRun) rewind() {
	if c != nil && c.stale {
		c.stale = false
		c.g.search.Rewind()
	}
}

// next finds the next node for one instance, one with overflow slots if no other has room.
func (g *groupRun) next(p reconcile.Placement) *search.Found {
	if g.beside == nil {
		return g.search.Next(p.Avoided())
	}
	g.search.Allow = g.beside
	f := g.search.Next(p.Avoided())
	g.search.Allow = nil
	if f == nil {
		g.beside = nil
		g.search.Rewind()
		f = g.search.Next(p.Avoided())
	}
	return f
}

// placeBeside places one instance where room is free, whoever owns it.
func (g *groupRun) placeBeside(p reconcile.Placement, slots *slotRun) bool {
	slots.rewind()
	return g.place(p)
}

// take has others leave for one instance whose project is under-allocated, if it has been pending for long enough.
func (c *slotRun) take(p reconcile.Placement) bool {
	s := c.g.s
	if !c.find.UnderAllocated() {
		c.because(c.find.WhyEnough())
		return false
	}
	if at := s.Input.PendingSince(c.g.work.Group.Name, s.eval.PendingSince()) + c.find.Grace(); at > s.Input.Now.UnixNano() {
		s.graceEnds = earlier(s.graceEnds, time.Unix(0, at).UTC())
		c.because(c.find.WhyGrace())
		return false
	}
	if c.takeFrom(c.find, p) {
		return true
	}
	c.because(c.find.WhyNobody())
	return false
}

// takeFailed has instances leave whose jobs failed the submission check, for one that is entitled to a slot: at once, as they leave for any other.
func (c *slotRun) takeFailed(p reconcile.Placement) bool {
	return c != nil && c.find.HasSlots() && c.takeFrom(c.find.OfFailed(), p)
}

// takeFrom has victims leave for one instance on slots.
func (c *slotRun) takeFrom(victims *slot.Finder, p reconcile.Placement) bool {
	world.Flush(c.g.search.Edit)
	for at := range victims.Takes(c.g.s.Input.Now.UnixNano(), c.g.mayLeave) {
		if c.g.only != "" && c.g.only != at.Node {
			continue
		}
		if tried, placed := c.takeOn(at, p); tried {
			c.find.Rewind()
			c.full, c.stuck, c.stale = !placed, !placed, true
			return placed
		}
	}
	return false
}

// takeOn has some leave a node for an instance, if they are enough; placed: it found room then.
func (c *slotRun) takeOn(at slot.Take, p reconcile.Placement) (tried, placed bool) {
	project := c.find.Instance().Project
	if !c.find.InCells() {
		return c.run(at.Use).takeOn(at, "reclaimed for a slot of project "+project, p)
	}
	for cell, use := range c.find.Cells(at.Node) {
		run := c.run(use)
		c.find.Aim(run.search.Request, cell)
		if tried, placed = run.takeOn(at, "reclaimed for a slot of project "+project, p); tried {
			break
		}
	}
	return tried, placed
}

// takeOn has some leave a node for an instance that the run places, for a reason.
func (g *groupRun) takeOn(at slot.Take, why string, p reconcile.Placement) (tried, placed bool) {
	r := g.s.reclaimer(g.search.Edit)
	r.below, r.only, r.why = preempt.EveryBand, at.Leave, why
	p.NodeID = at.Node
	if !r.assign(&reclaimSearch{r: r, run: g, seen: map[string]bool{}}, p) {
		return false, false
	}
	return true, len(r.settle()) == 0
}

// takeFailed has instances leave, for one that found no room, whose jobs failed the submission check: any request of higher standing may take what
// they use, whatever its band.
func (g *groupRun) takeFailed(p reconcile.Placement) bool {
	s, w := g.s, world.Base(g.search.Edit)
	if p.NodeID == "" {
		p.NodeID = g.only
	}
	if g.alone || !w.Slots().AnyFailed() || standing.Of(w, s.Input.Job) == structs.StandingFailed {
		return false
	}
	if g.onSlots.takeFailed(p) {
		return true
	}
	world.Flush(g.search.Edit)
	for at := range slot.OfFailed(s.Input, g.search.Edit, g.search).Takes(s.Input.Now.UnixNano(), g.mayLeave) {
		if p.NodeID != "" && p.NodeID != at.Node {
			continue
		}
		if tried, placed := g.takeOn(at, "reclaimed, as its job failed the submission check", p); tried {
			g.search.Rewind()
			return placed
		}
	}
	g.alone = p.NodeID == ""
	return false
}

// mayLeave reports whether a usage may be taken from for a project's slot as far as this plan goes.
func (g *groupRun) mayLeave(u *world.Usage) bool {
	s := g.s
	return u.Owner.Namespace != s.eval.Namespace || u.Owner.Job != s.eval.JobID
}

// enough reports whether as many instances of the job's project run as complete what it is to complete in its time (objective "throughput"): the rest
// of its slots is for others. One that waits for that is explained.
func (g *groupRun) enough(p reconcile.Placement) bool {
	why := slot.WhyNoMore(world.Base(g.search.Edit), g.s.Input.Job, g.work.Group)
	if why == "" || p.NodeID != "" {
		return false
	}
	g.reasons = []string{why}
	g.fail(p)
	return true
}

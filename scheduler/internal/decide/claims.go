package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
)

// What a namespace owns comes first (semantics part 2): an instance that requests whole devices goes into a free cell of what its
// namespace has bound already, the smallest first; else a cell that its namespace owns is bound for it, one whose binding leaves
// what all others own, without loss before others, then of least loss. What runs there opportunistically is
// reclaimed, whatever its priority.

// claimRun places instances of one group by what their namespace owns.
type claimRun struct {
	g    *groupRun
	find *claim.Finder // nil: the group uses no claim
	// runs are the placings by kind of cell: a batch has one right.
	runs  []*groupRun
	none  bool      // nothing more is to be had
	last  *groupRun // by which the last instance was placed
	wider *claimRun // without a topology that is only preferred
	// noneLower: lower bands of the namespace have nothing more to give up.
	noneLower bool
	// required: the next instance must use a claim, whatever the job's class is.
	required bool
	// why says why an instance that no claim was found for uses none, and why it must not run opportunistically; valid while no more
	// is to be had.
	why *claim.Without
	// stale: what the group's search has found free may be taken, and more may be free.
	stale bool
}

// claims begins the placing of a group by what its namespace owns; nil: it owns nothing, and the job may run without that.
func (g *groupRun) claims() *claimRun {
	in := g.s.Input
	owns := g.s.World.Owns(in.Job.Namespace)
	if !owns && !in.WaitsForClaims() {
		return nil
	}
	c := &claimRun{g: g}
	if owns {
		c.find = claim.NewFinder(in.Job, g.search)
	}
	return c
}

// place places one instance in a cell of its namespace. It reports whether it did.
func (c *claimRun) place(p reconcile.Placement) bool {
	if c == nil || c.find == nil || c.none || p.NodeID != "" {
		return false
	}
	world.FlushClaims(c.g.search.Edit)
	for _, in := range []func(reconcile.Placement) bool{c.placeIn, c.placeInSeveral} {
		for key := range c.g.s.World.Chains {
			if c.find.Matches(key) && c.find.Begin(c.g.search.Edit, key) && in(p) {
				c.stale = true
				return true
			}
		}
	}
	c.none = true
	return false
}

// placeInSeveral places one instance in several cells of one node, if its devices need not lie under one.
func (c *claimRun) placeInSeveral(p reconcile.Placement) bool {
	return slices.ContainsFunc(c.find.Several(c.g.search.Edit), func(at claim.Cell) bool { return c.tryOn(at, p) })
}

// placeIn places one instance in a cell of the chain that the finder is at: in the smallest free one of what is bound, or in one that
// is bound for it.
func (c *claimRun) placeIn(p reconcile.Placement) bool {
	if slices.ContainsFunc(c.find.Bound(c.g.search.Edit), func(at claim.Cell) bool { return c.tryOn(at, p) }) {
		return true
	}
	for at := range c.find.Unbound() {
		if c.tryOn(at, p) {
			return true
		}
	}
	return false
}

// placeAgain places the successor of an instance that has just given back what it used.
func (c *claimRun) placeAgain(p reconcile.Placement) bool {
	if c != nil {
		c.none, c.noneLower, c.why = false, false, nil
	}
	return c.placeOrLower(p)
}

// batches adds what was placed to the plan.
func (c *claimRun) batches() {
	if c != nil {
		for _, r := range c.runs {
			r.addBatch()
		}
	}
}

// rewind begins the group's search anew if cells were given since.
func (c *claimRun) rewind() {
	if c != nil && c.stale {
		c.stale = false
		c.g.search.Rewind()
	}
}

// mayDoWithout reports whether an instance that no claim was found for may run opportunistically. One that may not is explained.
func (c *claimRun) mayDoWithout(p reconcile.Placement) bool {
	if c == nil {
		return true
	}
	why := c.why
	if why == nil || c.required {
		w := claim.WhyWithout(c.g.s.Input, c.g.search.Edit, []*search.Request{c.g.search.Request}, []int{1}, c.required)
		why = &w
	}
	if !c.required {
		c.why = why
	}
	c.g.reasons = why.Reasons
	if why.Withheld == nil {
		c.rewind()
		return true
	}
	c.g.reasons = slices.Concat(c.g.noSlot, why.Withheld)
	c.g.fail(p)
	return false
}

// tryOn tries to place an instance in a cell, and reclaims what is there if need be.
func (c *claimRun) tryOn(at claim.Cell, p reconcile.Placement) bool {
	n, known := world.StateOf(c.g.search.Edit, at.Node)
	if !known || n.Node == nil || slices.Contains(p.Avoided(), at.Node) || c.find.BeyondShare(n) {
		return false
	}
	c.last = c.run(c.find.Chain().LevelName(at.Kind), at.Kind.Size)
	run := c.last
	c.find.Aim(run.search.Request, n, at)
	if f := run.search.On(at.Node); f != nil {
		run.accept(p, f)
		return true
	}
	r := c.g.s.reclaimer(c.g.search.Edit)
	r.below = preempt.EveryBand
	find := &reclaimSearch{r: r, run: run, seen: map[string]bool{}}
	p.NodeID = at.Node
	return r.assign(find, p) && len(r.settle()) == 0
}

// run returns the placing of the group by a kind of cell, begun if need be.
func (c *claimRun) run(level string, size int) *groupRun {
	for _, r := range c.runs {
		if t := r.search.Request.Resources.Shared.Terms; t.CellLevel == level && t.CellSize == size {
			return r
		}
	}
	r := *c.g
	r.batch, r.nodes, r.short = nil, nil, nil
	r.search = c.g.search.ForNamed(c.g.search.Request.Claiming(level, size))
	c.runs = append(c.runs, &r)
	return &r
}

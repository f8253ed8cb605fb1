package decide

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/slot"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What a workflow has reserved comes first of all claims (semantics part 5): instances of its running stage use it, and those that borrow from it
// leave for them, whether they fit into it or use it without a claim. What idles of it is lent to others that found no room elsewhere.

// workflowRun places instances of one group in the reservation of their workflow.
type workflowRun struct {
	*groupRun
	claim *structs.WorkflowClaim
	stuck bool // no more is to be had
}

// workflow begins the placing of a group in the reservation of its workflow; nil: it has none.
func (g *groupRun) workflow() *workflowRun {
	claim := feasible.OwnWorkflow(g.s.World, g.s.Input.Job)
	if claim == nil {
		return nil
	}
	r := *g
	r.batch, r.nodes, r.short = nil, nil, nil
	r.search = g.search.ForNamed(g.search.Request.OfWorkflow(claim.Key()))
	return &workflowRun{groupRun: &r, claim: claim}
}

// place places one instance, for which borrowers leave if need be. It reports whether it did.
func (c *workflowRun) place(p reconcile.Placement) bool {
	if c == nil || c.stuck || p.NodeID != "" {
		return false
	}
	world.Flush(c.search.Edit)
	for at := range lend.Nodes(c.search, c.claim, c.s.Input.NodeOf(c.work.Group.Name)) {
		if c.placeAt(at, c.claim, p) {
			return true
		}
	}
	c.stuck = true
	return false
}

// placeAt places one instance in the reservation of a workflow on a node, for which borrowers leave if need be. It reports whether it did.
func (g *groupRun) placeAt(at lend.Node, of *structs.WorkflowClaim, p reconcile.Placement) (placed bool) {
	if g.only != "" && g.only != at.ID {
		return false
	}
	if at.Leave != nil {
		_, placed = g.takeOn(slot.Take{Node: at.ID, Leave: at.Leave}, "reclaimed for workflow "+of.ID, p)
	} else if f := g.search.On(at.ID); f != nil && (world.WorkflowEdit{E: g.search.Edit}).BorrowLacks(at.ID, f.Grant.Usage) == "" {
		g.accept(p, f)
		placed = true
	}
	return placed
}

// batches adds what was placed to the plan.
func (c *workflowRun) batches() {
	if c != nil {
		c.addBatch()
	}
}

// loan places instances of one group in what idles of workflows' reservations.
type loan struct {
	lenders []lend.Lender
	runs    []*groupRun // by lender; then those that borrow licenses alone
	stuck   bool        // nothing more is lent
}

// loan returns the loan of a group; nil: no workflow lends to it.
func (g *groupRun) loan() *loan {
	lenders := lend.Lenders(g.s.Input, g.s.World, g.work.Group)
	if len(lenders) == 0 {
		return nil
	}
	return &loan{lenders: lenders, runs: make([]*groupRun, 2*len(lenders))}
}

// borrow places one instance of a group that found no other room in what is lent to it. Most groups find room: who lends is looked up for those that
// do not.
func (g *groupRun) borrow(p reconcile.Placement) bool {
	if !g.loaned {
		g.loaned, g.lent = true, g.loan()
	}
	return g.lent.place(g, p)
}

// place places one instance of a run's group that found no other room. It reports whether it did.
func (l *loan) place(g *groupRun, p reconcile.Placement) bool {
	if l == nil || l.stuck || p.NodeID != "" {
		return false
	}
	world.Flush(g.search.Edit)
	for i := range l.lenders {
		of := &l.lenders[i]
		run, edit := l.run(g, i), world.WorkflowEdit{E: g.search.Edit}
		if run.lacksLicense() != "" || !of.Offers(g.search.Edit, run.search.Request, g.s.Input.LendRound) {
			continue
		}
		if g.lacksLicense() != "" { // where it would run otherwise, with a license that is lent
			alone := l.run(g, i+len(l.lenders))
			if f := alone.seek(p); f != nil && edit.BorrowLacks(f.Node.ID, f.Grant.Usage) == "" {
				alone.accept(p, f)
				return true
			}
		}
		for _, at := range of.NodesOf(run.search) {
			if run.placeAt(at, of.Claim, p) {
				return true
			}
		}
	}
	l.stuck = true
	return false
}

// run returns the run of a lender, or, above those, the one that borrows its licenses alone; begun if need be.
func (l *loan) run(g *groupRun, i int) *groupRun {
	if l.runs[i] == nil {
		r, of := *g, l.lenders[i%len(l.lenders)]
		r.batch, r.nodes, r.short, r.onSlots = nil, nil, nil, nil
		if r.search = g.search.ForNamed(g.search.Request.Borrowing(of.Claim.Key(), of.To, false)); i >= len(l.lenders) {
			r.search = g.search.ForAlike(g.search.Request.Borrowing(of.Claim.Key(), of.To, true))
		}
		l.runs[i] = &r
	}
	return l.runs[i]
}

// begun returns the runs that were begun.
func (l *loan) begun() (list []*groupRun) {
	if l != nil {
		list = slices.DeleteFunc(slices.Clone(l.runs), func(r *groupRun) bool { return r == nil })
	}
	return list
}

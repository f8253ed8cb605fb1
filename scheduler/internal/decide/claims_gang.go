package decide

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A gang uses what its namespace owns as a whole (semantics part 0, rule 5): its first instances all use cells, or all are
// opportunistic. Those above its min are placed one by one: beside guaranteed ones in cells where these suffice. A gang that a
// topology keeps under one cell uses claims only where the cells lie so.

// claimDomainTries bounds the domains of a level that are tried for a gang that uses claims.
const claimDomainTries = 32

// claim places the gang's first members by what their namespace owns; nil: it has no room for all of them, and why.
func (x *GangPlacer) claim() (t *Trial, without claim.Without) {
	if x.s.World.Owns(x.s.Input.Job.Namespace) && x.claimable() {
		looked := x.looked
		x.claiming = true
		t = x.Place()
		if x.lowering = t == nil && x.s.mayReclaim(); x.lowering {
			t = x.Place()
		}
		x.claiming, x.lowering, x.looked = false, false, looked
	}
	if t == nil {
		without = x.withoutClaim()
	}
	return t, without
}

// withoutClaim returns why the gang uses no claim.
func (x *GangPlacer) withoutClaim() claim.Without {
	var requests []*search.Request
	var instances []int
	for _, work := range x.gw.Works {
		if work.First > 0 {
			requests, instances = append(requests, search.NewRequest(x.s.Input, work.Group)), append(instances, work.First)
		}
	}
	return claim.WhyWithout(x.s.Input, x.base, requests, instances, false)
}

// WithoutClaim returns, for a group that waits, why it uses no claim, and why it must not run opportunistically; nil: it may.
func (s *Scheduler) WithoutClaim(work *reconcile.GroupWork) (reasons, withheld []string) {
	var w claim.Without
	if work.Gang != nil && work.Gang.Whole {
		w = NewGangPlacer(s, work.Gang).withoutClaim()
	} else {
		w = claim.WhyWithout(s.Input, s.Edit, []*search.Request{search.NewRequest(s.Input, work.Group)}, []int{1}, false)
	}
	return w.Reasons, w.Withheld
}

// claimable reports whether all first members may use claims.
func (x *GangPlacer) claimable() bool {
	for _, work := range x.gw.Works {
		if work.First > 0 && claim.Devices(x.s.Input.Job, search.NewRequest(x.s.Input, work.Group)) == nil {
			return false
		}
	}
	return true
}

// tryClaims places all first members by claims under a domain (nil: anywhere), or nothing.
func (x *GangPlacer) tryClaims(d *feasible.Domain) *Trial {
	t, before := x.newTrial(d), x.s.mark()
	t.before = &before
	for _, run := range t.runs {
		t.claims = append(t.claims, run.claims())
	}
	for _, i := range amount.LargestFirst(x.requests) {
		work := t.runs[i].work
		for _, p := range work.Place[:work.First] {
			if c := t.claims[i]; !c.place(p) && (!x.lowering || !c.placeOrLower(p)) {
				x.Undo(t)
				return nil
			}
		}
	}
	t.loss = x.s.lossSince(before)
	return t
}

// finders returns what finds cells for each group of which members must be placed at once.
func (x *GangPlacer) finders() (list []*claim.Finder) {
	for _, work := range x.gw.Works {
		if work.First > 0 {
			list = append(list, claim.NewFinder(x.s.Input.Job, x.s.newRun(work, x.base, x.s.Fit(work.Group)).search))
		}
	}
	return list
}

// ownChains calls visit for each chain that members may be of, with a finder that is at it.
func (x *GangPlacer) ownChains(visit func(f *claim.Finder)) {
	world.FlushClaims(x.base)
	finders := x.finders()
	for key := range x.s.World.Chains {
		at := slices.IndexFunc(finders, func(f *claim.Finder) bool { return f.Matches(key) && f.Begin(x.base, key) })
		if at >= 0 {
			visit(finders[at])
		}
	}
}

// claimDomains returns the domains of a level in which the cells of the gang's namespace may hold its first members: those first of which
// most is bound already.
func (x *GangPlacer) claimDomains(level structs.TopologyLevel) []*Room {
	bound, unbound, need := map[string]int{}, map[string]int{}, x.need()
	x.ownChains(func(f *claim.Finder) {
		f.Room(x.base, func(id string) string {
			n, _ := x.s.World.Node(id)
			return n.Meta[level.Meta]
		}, bound, unbound)
	})
	all := slices.DeleteFunc(x.rooms(level), func(r *Room) bool { return bound[r.Value]+unbound[r.Value] < need })
	slices.SortStableFunc(all, func(a, b *Room) int { return cmp.Compare(bound[b.Value], bound[a.Value]) })
	return all[:min(len(all), claimDomainTries)]
}

// need is how many devices all first members request together.
func (x *GangPlacer) need() (n int) {
	for i, work := range x.gw.Works {
		n += int(x.requests[i].Devices) * work.First
	}
	return n
}

// claimOneNode places all first members by claims on one node, under one cell of a level there: on nodes first on which a single cell
// of their namespace holds them all.
func (x *GangPlacer) claimOneNode(level string) *Trial {
	var nodes []string
	for _, devices := range []int{x.need(), 1} {
		x.ownChains(func(f *claim.Finder) { nodes = append(nodes, f.NodesToTry(x.base, devices, MaxNodesTried)...) })
	}
	tried := map[string]bool{}
	for _, id := range nodes {
		if tried[id] || len(tried) >= 2*MaxNodesTried {
			continue
		}
		tried[id] = true
		if t := x.claimOn(id, level); t != nil {
			return t
		}
	}
	return nil
}

// claimOn places all first members by claims on a node, under one cell of a level there.
func (x *GangPlacer) claimOn(id, level string) *Trial {
	for _, d := range domain.At(x.base, x.gw, id, level) {
		if t := x.try(d); t != nil {
			return t
		}
	}
	return nil
}

// more returns the placing by claims for members that need not come with others.
func (c *claimRun) more() *claimRun {
	if c != nil {
		c.none = false
	}
	return c
}

// require states whether the next instance must use a claim, as too few of its gang would without it.
func (c *claimRun) require(is bool) {
	if c != nil {
		c.required = is
	}
}

// placeWider places one instance of a gang in a cell of its namespace. A topology that is only preferred is given up where there is none.
func (c *claimRun) placeWider(t *structs.TopologyConstraint, p reconcile.Placement) bool {
	if c.placeOrLower(p) {
		return true
	}
	if c == nil || c.find == nil || c.find.Within() == nil || t != nil && t.Required {
		return false
	}
	if c.wider == nil {
		g := *c.g
		g.batch, g.nodes, g.short = nil, nil, nil
		g.search = g.s.newSearch(g.work.Group, g.search.Edit, g.s.Fit(g.work.Group))
		c.wider = g.claims()
	}
	if !c.wider.place(p) {
		return false
	}
	c.stale = true
	return true
}

// all returns the placings by kind of cell.
func (c *claimRun) all() []*groupRun {
	switch {
	case c == nil:
		return nil
	case c.wider == nil:
		return c.runs
	}
	return slices.Concat(c.runs, c.wider.runs)
}

// claimOf returns the kind of claim that the running members of a gang use, most of those that use any, and how many of each group do; "": they use none.
func (s *Scheduler) claimOf(live []*structs.Allocation) (kind string, n map[string]int) {
	total, by := map[string]int{}, map[string]map[string]int{structs.ClaimCells: {}, structs.ClaimSlots: {}, structs.ClaimWorkflow: {}}
	for _, a := range live {
		if u, counts := world.Usages(world.Base(s.Edit)).Get(a.ID); counts && by[u.Owner.Terms.Claim] != nil {
			total[u.Owner.Terms.Claim]++
			by[u.Owner.Terms.Claim][u.Owner.Group]++
		}
	}
	switch {
	case total[structs.ClaimWorkflow] > 0:
		kind = structs.ClaimWorkflow
	case total[structs.ClaimSlots] > total[structs.ClaimCells]:
		kind = structs.ClaimSlots
	case total[structs.ClaimCells] > 0:
		kind = structs.ClaimCells
	}
	return kind, by[kind]
}

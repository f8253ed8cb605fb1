package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Licenses are counters that belong to no node (semantics part 5): whether there are enough is decided before a node is looked for.

// lacksLicense returns which license one instance more of the group finds too few of; "": none.
func (g *groupRun) lacksLicense() string {
	return world.LicenseEdit{E: g.search.Edit}.LacksFor(g.search.Request.Resources.Shared.Terms.Licenses, 1)
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
	of, edit := g.search.Request.Resources.Shared.Terms.Licenses, world.LicenseEdit{E: g.search.Edit}
	for n := len(g.short); n > 0; n-- {
		why := edit.LacksFor(of, n)
		if why == "" {
			return
		}
		g.failFor(g.short[n-1], why)
		g.short = g.short[:n-1]
	}
}

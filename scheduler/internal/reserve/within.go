package reserve

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A part of a reservation is an amount, so that levels within nodes count as the node. Of what is free now those nodes are taken first that have a free cell of
// such a level for each instance or gang that requires one; only where there are none another node is, and the instances wait in their stage for the cell.

// within is devices that have to be under one cell of a level within a node.
type within struct {
	level string
	count int
}

// withinOf returns what an instance of a group requires within its node, by itself and with its gang.
func (c *chooser) withinOf(job *structs.Job, g *structs.TaskGroup, f *feasible.Feasibility) (list []within) {
	add := func(level string, count int) {
		if at := slices.Index(structs.NodeLevels(), level); at < 0 || level == structs.LevelNode || count == 0 || c.ofSite(level) {
			return
		}
		list = append(list, within{level, count})
	}
	for i := range f.Devices {
		if d := &f.Devices[i]; d.Find.Required && d.Pin() == "" {
			add(d.Find.Level, d.Whole())
		}
	}
	gang := feasible.GangsOf(job)[g.Name]
	if gang == nil || gang.Topology == nil || !gang.Topology.Required {
		return list
	}
	count := 0
	for _, m := range gang.Groups {
		count += m.Group.Count * feasible.NeedsOf(m.Group).Devices
	}
	add(gang.Topology.Level, count)
	return list
}

// ofSite reports whether a level is above nodes.
func (c *chooser) ofSite(level string) bool {
	return slices.ContainsFunc(c.w.SiteLevels(), func(l structs.TopologyLevel) bool { return l.Name == level })
}

// hasFree reports whether a node has a free cell for each of what is required within it. One with a part of what is left is taken to have.
func (c *chooser) hasFree(i int, list []within) bool {
	if c.taken[i] {
		return true
	}
	n, is := c.nodes[i], c.isSpare(i)
	return !slices.ContainsFunc(list, func(w within) bool {
		for at, t := range n.Capacity.Trees {
			free := func(device int) bool {
				return (is == nil || is(t, device)) && !n.Bars(t.IDs[device], &world.Taker{Borrows: c.key})
			}
			if _, found := n.Cells[at].Find(cell.Request{Count: w.count, Share: world.WholeDevice, Level: w.level, Required: true, Allowed: free}); found {
				return false
			}
		}
		return true
	})
}

// packFree packs the stages into what is free now: if it can be, where the free devices of each node are under such cells as are required.
func (c *chooser) packFree(r *request) workflow.Packing {
	if c.within {
		c.now = true
		packed := r.pack(c.free)
		if c.now = false; packed.Missing.IsZero() {
			return packed
		}
	}
	return r.pack(c.free)
}

package reserve

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A stage is packed by amounts, so that levels within nodes count as the node. Where instances or gangs require such a level, it is looked afterwards on each
// node whether all that are packed there have cells beside one another; a node of which that is not true is packed with a device less, until it is, or the stages
// do not pack. The parts of such nodes name their devices: those under the cells.

// within is devices that have to be under one cell of a level within a node.
type within struct {
	level   string
	count   int
	members []int // of the stage: one instance, or those of a gang
	matches func(*structs.NodeDeviceResource) bool
}

// withinOf returns what the instances of a stage require within their nodes, by themselves and with their gangs, the largest first.
func withinOf(w *world.World, s Stage) (list []within) {
	next := 0
	for _, job := range s {
		if job.PerNode() {
			continue
		}
		gangs := feasible.GangsOf(job)
		at := map[*feasible.Gang]int{} // looked up only
		for _, g := range job.TaskGroups {
			first, f := next, feasible.NewFeasibility(job, g, feasible.NewMatcher())
			next += g.Count
			for i := range f.Devices {
				if d := &f.Devices[i]; d.Find.Required && d.Pin() == "" && isWithin(w, d.Find.Level) && d.Whole() > 0 {
					for m := first; m < next; m++ {
						list = append(list, within{d.Find.Level, d.Whole(), []int{m}, matchesOf(f, i)})
					}
				}
			}
			gang, each := gangs[g.Name], feasible.NeedsOf(g).Devices
			if gang == nil || gang.Topology == nil || !gang.Topology.Required || !isWithin(w, gang.Topology.Level) || each == 0 || g.Count == 0 {
				continue
			}
			k, known := at[gang]
			if !known {
				k = len(list)
				at[gang], list = k, append(list, within{level: gang.Topology.Level, matches: matchesOf(f, 0)})
			}
			for m := first; m < next; m++ {
				list[k].count, list[k].members = list[k].count+each, append(list[k].members, m)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b within) int { return cmp.Compare(b.count, a.count) })
	return list
}

// matchesOf returns which groups of devices are of the kind that a request of a group states.
func matchesOf(f *feasible.Feasibility, request int) func(*structs.NodeDeviceResource) bool {
	return func(d *structs.NodeDeviceResource) bool { return f.Devices[request].Matches(f.Matcher, d) }
}

// isWithin reports whether a level is within nodes.
func isWithin(w *world.World, level string) bool {
	return level != structs.LevelNode && slices.Contains(structs.NodeLevels(), level) &&
		!slices.ContainsFunc(w.SiteLevels(), func(l structs.TopologyLevel) bool { return l.Name == level })
}

// nodesAs is how nodes are when a reservation is made, and which of their devices it may have.
type nodesAs struct {
	state   func(i int) *world.NodeState
	allowed func(i int) func(*world.DeviceTree, int) bool
	alone   bool // no other workflow has reserved any
}

// asIs is the nodes as they are.
func (c *chooser) asIs() nodesAs {
	return nodesAs{state: func(i int) *world.NodeState { return c.nodes[i] }, allowed: c.isSpare}
}

// without is the nodes without those who leave.
func (c *chooser) without(leaves func(*world.Usage) bool) nodesAs {
	known := map[int]*world.NodeState{} // looked up only
	return nodesAs{state: func(i int) *world.NodeState {
		if known[i] == nil {
			n := world.TrialOf(c.nodes[i])
			for _, u := range c.nodes[i].Usages {
				if leaves(u) {
					n.Give(u)
				}
			}
			known[i] = n
		}
		return known[i]
	}, allowed: c.isSpare}
}

// withoutAll is the nodes without what runs there, except what [chooser.list] leaves there. alone: nor has another workflow reserved anything.
func (c *chooser) withoutAll(alone bool) nodesAs {
	as := c.without(func(u *world.Usage) bool {
		return !c.bands.perNode(u) && (!u.Guaranteed() || u.Owner.Terms.Claim == structs.ClaimWorkflow)
	})
	as.alone = alone
	return as
}

// maxWithin bounds how often stages are packed anew because cells within nodes do not suffice.
const maxWithin = 64

// packWithin packs the stages into what may be reserved of each node, where the devices are under such cells as are required within nodes, and returns which
// devices the parts of such nodes have, by the nodes' places.
func (c *chooser) packWithin(r *request, nodes []workflow.Amounts, as nodesAs) (packed workflow.Packing, named map[int][]string) {
	if !c.strict {
		return r.pack(nodes), nil
	}
	all, nodes := nodes, slices.Clone(nodes)
	for try := 0; ; try++ {
		c.mayHold, c.holding = alone(c, as), c.holding+1
		packed = r.pack(nodes)
		if c.mayHold = nil; !packed.Missing.IsZero() {
			packed.Apart = packed.Apart || r.pack(all).Missing.IsZero()
			return packed, nil
		}
		x := cellsOf{chooser: c, as: as, parts: packed.Parts, used: map[int]map[string]bool{}}
		short := x.place(r)
		if len(short) == 0 {
			if named, short = x.names(); len(short) == 0 {
				return packed, named
			}
		}
		if try == maxWithin {
			packed.Missing, packed.Apart = workflow.Amounts{Devices: 1}, true
			return packed, nil
		}
		for i, devices := range short { // order does not matter
			nodes[i].Devices = min(nodes[i].Devices, int64(devices)) - 1
		}
	}
}

// alone returns whether a node has a free cell for what some instance requires, if nothing else of the reservation is there.
func alone(c *chooser, as nodesAs) func(i int, list []within) bool {
	return func(i int, list []within) bool {
		x := cellsOf{chooser: c, as: as}
		return x.skips(i) || !slices.ContainsFunc(list, func(w within) bool { return x.find(i, &w, x.free(i), nil) == nil })
	}
}

// mayHoldOf returns which of the nodes that an instance may use have a free cell for what it requires within them, while that is heeded.
func (c *chooser) mayHoldOf(may func(int) bool, list []within) func(int) bool {
	if len(list) == 0 {
		return may
	}
	known, holding := make([]int8, len(c.nodes)), 0
	return func(i int) bool {
		if !may(i) || c.mayHold == nil {
			return may(i)
		}
		if holding != c.holding {
			clear(known)
			holding = c.holding
		}
		if known[i] == 0 {
			if known[i] = -1; c.mayHold(i, list) {
				known[i] = 1
			}
		}
		return known[i] > 0
	}
}

// withinFor returns what an instance of a stage requires within its node, by itself and with its gang.
func withinFor(list []within, instance int) (own []within) {
	for _, w := range list {
		if slices.Contains(w.members, instance) {
			own = append(own, w)
		}
	}
	return own
}

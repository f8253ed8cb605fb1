package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/gangrank"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// seat ends the runs, and sends the placed members their ranks and where all are: they
// themselves, those that run, and those that have completed, whose work is not done again.
// Whoever stands for a member has its rank. Only a gang of other counts, none of which
// runs, is numbered anew: its members in the order of groups and indexes.
func (s *Scheduler) seat(gw *reconcile.GangWork, runs []*groupRun, live []*structs.Allocation) {
	g := &seating{s: s}
	for _, a := range live {
		if a.Gang != nil && !g.Taken(a.Gang.Rank) {
			g.Give(a.Gang.Rank, gangrank.HostOf(s.World, a))
			g.runs(a.NodeID, domain.DevicesOf(a))
		}
	}
	keeps := func(a *structs.Allocation) bool {
		return a != nil && a.Gang != nil && (len(live) > 0 || gangrank.Same(gw, a))
	}
	var others []gangrank.Member
	for i, run := range runs {
		if i == 0 || runs[i-1].work != run.work { // a group has a run for each kind of cells that its members use
			others = append(others, g.completed(run.work, keeps)...)
		}
	}
	var placed []gangrank.Member
	for _, run := range runs {
		before, mine := run.ranksBefore(keeps), g.end(run)
		for _, c := range mine {
			rank, had := before[c.Index]
			if c.Rank = rank; had && !g.Taken(rank) {
				g.Give(rank, c.Host)
				placed = append(placed, c)
			} else {
				others = append(others, c)
			}
			delete(before, c.Index)
		}
		for _, rank := range before { // into a set: the order cannot show
			g.Wait(rank)
		}
	}
	gangrank.Sort(gw, others)
	for _, c := range others {
		c.Rank = g.Free(len(live) > 0)
		g.Give(c.Rank, c.Host)
		placed = append(placed, c)
	}
	if len(live) == 0 {
		g.CloseUp(placed)
	}
	gang := &structs.AllocGang{Size: len(g.Hosts), Hosts: g.Hosts, Level: g.level()}
	for _, c := range placed {
		if c.Instance != nil {
			c.Instance.Rank = c.Rank
		}
	}
	for _, run := range runs {
		if run.batch != nil && gw.Spec.Informed {
			run.batch.Gang = gang
		}
	}
}

// seating is the ranks of a gang, and where its members run.
type seating struct {
	gangrank.Ranks
	s     *Scheduler
	nodes []string // of all members that run
	// devices are those of all members that run; bare: one of them has none.
	devices []string
	bare    bool
}

// runs notes where a member runs.
func (g *seating) runs(nodeID string, devices []string) {
	g.nodes, g.devices = append(g.nodes, nodeID), append(g.devices, devices...)
	g.bare = g.bare || len(devices) == 0
}

// level returns the lowest level under one cell of which all are that run: of a node with all of
// them, that which holds their devices.
func (g *seating) level() string {
	level := domain.Reached(g.s.World, &g.s.Input.Config, g.nodes)
	if level != structs.LevelNode || g.bare {
		return level
	}
	if n, known := world.StateOf(g.s.Edit, g.nodes[0]); known && n.Capacity != nil {
		return domain.Common(n, g.devices)
	}
	return level
}

// completed seats the members of a group that have completed. Those that have no rank in
// this gang are released.
func (g *seating) completed(work *reconcile.GroupWork, keeps func(*structs.Allocation) bool) (others []gangrank.Member) {
	for _, a := range work.Done {
		switch {
		case a.Gang == nil:
		case keeps(a) && !g.Taken(a.Gang.Rank):
			g.Give(a.Gang.Rank, gangrank.HostOf(g.s.World, a))
		default:
			others = append(others, gangrank.Member{Group: a.TaskGroup, Index: a.Index(), Host: gangrank.HostOf(g.s.World, a)})
		}
	}
	return others
}

// end writes a run into the plan, and returns its members.
func (g *seating) end(run *groupRun) (members []gangrank.Member) {
	b := run.batch
	if b == nil {
		return nil
	}
	run.metrics.Classes(run.search.Anywhere(), nil)
	b.Metrics = run.metrics.AllocMetric
	g.s.plan.Place = append(g.s.plan.Place, b)
	for i := range b.Instances {
		in := &b.Instances[i]
		node := b.Nodes[in.Node].ID
		var devices []string
		for _, list := range in.Devices { // into a set: the order cannot show
			for _, d := range list {
				devices = append(devices, d.DeviceIDs...)
			}
		}
		g.runs(node, devices)
		members = append(members, gangrank.Member{Group: b.Group, Index: in.Index, Host: gangrank.HostPortOf(g.s.World, node, in.Ports), Instance: in})
	}
	return members
}

// ranksBefore are the ranks of the members that instances stand for, by index.
func (g *groupRun) ranksBefore(keeps func(*structs.Allocation) bool) map[int]int {
	out := map[int]int{}
	for _, p := range g.work.Place {
		if keeps(p.Previous) {
			out[p.Index] = p.Previous.Gang.Rank
		}
	}
	return out
}

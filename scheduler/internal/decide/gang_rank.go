package decide

import (
	"cmp"
	"slices"

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
		if a.Gang != nil && !g.taken(a.Gang.Rank) {
			g.sit(a.Gang.Rank, hostOf(s, a))
			g.runs(a.NodeID, devicesOf(a))
		}
	}
	keeps := func(a *structs.Allocation) bool {
		return a != nil && a.Gang != nil && (len(live) > 0 || sameGang(gw, a))
	}
	var others []sitter
	for i, run := range runs {
		if i == 0 || runs[i-1].work != run.work { // a group has a run for each kind of cells that its members use
			others = append(others, g.completed(run.work, keeps)...)
		}
	}
	var placed []sitter
	for _, run := range runs {
		before, mine := run.ranksBefore(keeps), g.end(run)
		for _, c := range mine {
			rank, had := before[c.index]
			if c.rank = rank; had && !g.taken(rank) {
				g.sit(rank, c.host)
				placed = append(placed, c)
			} else {
				others = append(others, c)
			}
			delete(before, c.index)
		}
		for _, rank := range before { // into a set: the order cannot show
			g.wait(rank)
		}
	}
	slices.SortStableFunc(others, func(a, b sitter) int {
		return cmp.Or(cmp.Compare(positionInGang(gw, a.group), positionInGang(gw, b.group)), cmp.Compare(a.index, b.index))
	})
	for _, c := range others {
		c.rank = g.free(len(live) > 0)
		g.sit(c.rank, c.host)
		placed = append(placed, c)
	}
	if len(live) == 0 {
		g.closeUp(placed)
	}
	gang := &structs.AllocGang{Size: len(g.hosts), Hosts: g.hosts, Level: g.level()}
	for _, c := range placed {
		if c.instance != nil {
			c.instance.Rank = c.rank
		}
	}
	for _, run := range runs {
		if run.batch != nil && gw.Spec.Informed {
			run.batch.Gang = gang
		}
	}
}

// sameGang reports whether an allocation was placed in a gang of as many as are wanted now, so that
// its rank is one of this gang. Its version is not enough: what another count left running
// was moved to the newest version in place.
func sameGang(gw *reconcile.GangWork, a *structs.Allocation) bool {
	all, rigid := 0, true
	for _, g := range gw.Spec.Groups {
		all, rigid = all+g.Group.Count, rigid && g.Rigid
	}
	if rigid && a.Gang.Size != all {
		return false
	}
	for _, work := range gw.Works {
		var g *structs.TaskGroup
		if a.Job != nil {
			g = a.Job.LookupTaskGroup(work.Group.Name)
		}
		if g == nil || g.Count != work.Group.Count || leastOf(g) != leastOf(work.Group) {
			return false
		}
	}
	return true
}

// leastOf is the min that a group states for its gang; 0: all of it.
func leastOf(g *structs.TaskGroup) int {
	if g.Gang == nil {
		return 0
	}
	return g.Gang.Min
}

// positionInGang is where a group stands among the gang's.
func positionInGang(gw *reconcile.GangWork, group string) int {
	return slices.IndexFunc(gw.Works, func(w *reconcile.GroupWork) bool { return w.Group.Name == group })
}

// sitter is a member that gets a rank: one that has a node now, or one that has
// completed (its instance is nil).
type sitter struct {
	group    string
	index    int
	host     string
	rank     int
	instance *structs.Instance
}

// seating is the ranks of a gang.
type seating struct {
	s     *Scheduler
	hosts []string // by rank; "": nobody has it
	nodes []string // of all members that run
	// devices are those of all members that run; bare: one of them has none.
	devices []string
	bare    bool
	waits   map[int]bool
	next    int // all ranks below it are taken, or somebody waits for them
}

// runs notes where a member runs.
func (g *seating) runs(nodeID string, devices []string) {
	g.nodes, g.devices = append(g.nodes, nodeID), append(g.devices, devices...)
	g.bare = g.bare || len(devices) == 0
}

// level returns the lowest level under one cell of which all are that run: of a node with all of
// them, that which holds their devices.
func (g *seating) level() string {
	level := g.s.reached(g.nodes)
	if level != structs.LevelNode || g.bare {
		return level
	}
	if n, known := world.StateOf(g.s.Edit, g.nodes[0]); known && n.Capacity != nil {
		return n.Common(g.devices)
	}
	return level
}

// completed seats the members of a group that have completed. Those that have no rank in
// this gang are released.
func (g *seating) completed(work *reconcile.GroupWork, keeps func(*structs.Allocation) bool) (others []sitter) {
	for _, a := range work.Done {
		switch {
		case a.Gang == nil:
		case keeps(a) && !g.taken(a.Gang.Rank):
			g.sit(a.Gang.Rank, hostOf(g.s, a))
		default:
			others = append(others, sitter{group: a.TaskGroup, index: a.Index(), host: hostOf(g.s, a)})
		}
	}
	return others
}

// end writes a run into the plan, and returns its members.
func (g *seating) end(run *groupRun) (members []sitter) {
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
		members = append(members, sitter{group: b.Group, index: in.Index, host: hostPortOf(g.s, node, in.Ports), instance: in})
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

func (g *seating) taken(rank int) bool {
	return rank < 0 || (rank < len(g.hosts) && g.hosts[rank] != "")
}

// wait keeps a rank for one that finds no room yet.
func (g *seating) wait(rank int) {
	if g.waits == nil {
		g.waits = map[int]bool{}
	}
	g.waits[rank] = true
}

// free returns the lowest rank that nobody has; where others run already, one that nobody waits
// for.
func (g *seating) free(joins bool) int {
	for g.taken(g.next) || (joins && g.waits[g.next]) {
		g.next++
	}
	return g.next
}

func (g *seating) sit(rank int, host string) {
	for len(g.hosts) <= rank {
		g.hosts = append(g.hosts, "")
	}
	g.hosts[rank] = host
}

// closeUp assigns the ranks that nobody has to those of the highest ranks, in a gang that
// starts with less than all of its members: no peer looks for one that is not there. What
// has completed stays.
func (g *seating) closeUp(placed []sitter) {
	slices.SortFunc(placed, func(a, b sitter) int { return cmp.Compare(a.rank, b.rank) })
	for last := len(placed) - 1; last >= 0; last-- {
		c := &placed[last]
		rank := slices.Index(g.hosts, "")
		if c.instance == nil {
			continue
		}
		if rank < 0 || rank > c.rank {
			return
		}
		g.hosts[c.rank], c.rank = "", rank
		g.hosts[rank] = c.host
		for len(g.hosts) > 0 && g.hosts[len(g.hosts)-1] == "" {
			g.hosts = g.hosts[:len(g.hosts)-1]
		}
	}
}

func rankOf(a *structs.Allocation) int {
	if a.Gang == nil {
		return 0
	}
	return a.Gang.Rank
}

// hostOf is where a running member is reached.
func hostOf(s *Scheduler, a *structs.Allocation) string {
	if g := a.Gang; g.Rank < len(g.Hosts) && g.Hosts[g.Rank] != "" {
		return g.Hosts[g.Rank]
	}
	var ports []structs.PortMapping
	if a.AllocatedResources != nil {
		ports = a.AllocatedResources.Shared.Ports
	}
	return hostPortOf(s, a.NodeID, ports)
}

// hostPortOf is where a member on a node is reached: the node's address, with the
// member's first port if it has any.
func hostPortOf(s *Scheduler, nodeID string, ports []structs.PortMapping) string {
	n, known := s.World.Node(nodeID)
	if !known {
		return nodeID
	}
	return n.HostPort(ports)
}

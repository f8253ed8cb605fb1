package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// domain is a cell at or above the level of nodes: the nodes that a required
// topology keeps a gang on.
type domain struct {
	level string
	// key and value are of the nodes' meta; nodeID is set instead at level node.
	key, value string
	nodeID     string
	name       string // for people
}

func (d *domain) String() string { return d.level + " " + d.name }

// holds tells whether a node may be under the cell, by what all nodes of its class
// have in common.
func (d *domain) holds(n *structs.Node) bool {
	return d.nodeID != "" || (d.value != "" && n.Meta[d.key] == d.value)
}

// siteLevel gives a level above nodes by its name, and where it stands among them.
func (s *scheduler) siteLevel(name string) (structs.TopologyLevel, int, bool) {
	levels := s.in.Config.SiteLevels()
	at := slices.IndexFunc(levels, func(l structs.TopologyLevel) bool { return l.Name == name })
	if at < 0 {
		return structs.TopologyLevel{}, 0, false
	}
	return levels[at], at, true
}

// nodeLevel tells whether a level is one within nodes: a usual one, or one that a
// node reports.
func (s *scheduler) nodeLevel(name string) bool {
	if slices.Contains(structs.NodeLevels(), name) {
		return true
	}
	for _, c := range s.w.classes.All {
		r := c.any().node.NodeResources
		if r == nil || r.Topology == nil {
			continue
		}
		for _, cell := range r.Topology.Cells {
			if cell.Level == name {
				return true
			}
		}
	}
	return false
}

// domainOf gives the cell of a level that a node is under.
func domainOf(n *structs.Node, level structs.TopologyLevel) *domain {
	v := n.Meta[level.Meta]
	return &domain{level: level.Name, key: level.Meta, value: v, name: v}
}

// reached gives the lowest level under one cell of which all the nodes are; "" if
// that is above all levels.
func (s *scheduler) reached(nodeIDs []string) string {
	if len(nodeIDs) == 0 {
		return ""
	}
	if !slices.ContainsFunc(nodeIDs, func(id string) bool { return id != nodeIDs[0] }) {
		return structs.LevelNode
	}
	first, _ := s.w.Node(nodeIDs[0])
	for _, level := range s.in.Config.SiteLevels() {
		together := func(id string) bool {
			n, known := s.w.Node(id)
			return known && first != nil && first.Meta[level.Meta] != "" && n.Meta[level.Meta] == first.Meta[level.Meta]
		}
		if !slices.ContainsFunc(nodeIDs, func(id string) bool { return !together(id) }) {
			return level.Name
		}
	}
	return ""
}

// amount is what can be added up of an ask or of what is free, whole devices of any
// kind among it. Shares of a device are left out.
type amount struct {
	devices int64
	Vector
}

func (a amount) plus(o amount) amount { return amount{a.devices + o.devices, a.Vector.plus(o.Vector)} }

func (a amount) times(n int) amount {
	k := int64(n)
	return amount{a.devices * k, Vector{a.CPU * k, a.MemoryMB * k, a.DiskMB * k}}
}

// holds tells how many asks fit into what is free, at most.
func (a amount) holds(ask amount) int64 {
	most := int64(math.MaxInt32)
	for _, d := range [...][2]int64{{a.devices, ask.devices}, {a.CPU, ask.CPU}, {a.MemoryMB, ask.MemoryMB}, {a.DiskMB, ask.DiskMB}} {
		if d[1] > 0 {
			most = min(most, max(0, d[0])/d[1])
		}
	}
	return most
}

func compareAmounts(a, b amount) int {
	return cmp.Or(cmp.Compare(a.devices, b.devices), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMB, b.MemoryMB))
}

// askAmount is what of an ask can be added up.
func askAmount(a *ask) amount {
	out := amount{Vector: a.amount}
	for i := range a.devices {
		if share := a.devices[i].req.Share; share == 0 || share == structs.DeviceShareWhole {
			out.devices += int64(a.devices[i].count)
		}
	}
	return out
}

// freeAmount is what of a node is free, at most.
func freeAmount(n *nodeState) amount {
	return amount{devices: int64(n.freeDevices()), Vector: n.free()}
}

// room is what a domain has for a gang: an upper bound, as names (ports, cores, the
// places of devices) are not looked at.
type room struct {
	*domain
	free amount
	// holds counts, by group, the instances that fit if no others came.
	holds []int64
}

// enough tells whether a domain may hold the first of a gang.
func (r *room) enough(x *gangPlacer) bool {
	total := amount{}
	for i, work := range x.gw.works {
		if r.holds[i] < int64(work.first) {
			return false
		}
		total = total.plus(x.asks[i].times(work.first))
	}
	return r.free.holds(total) >= 1
}

// count is how many of a gang's first instances a domain holds at most.
func (r *room) count(x *gangPlacer) (n int64) {
	for i, work := range x.gw.works {
		n += min(r.holds[i], int64(work.first))
	}
	return n
}

// rooms adds up what is free in each domain of a level, in the order of their names.
func (x *gangPlacer) rooms(level structs.TopologyLevel) []*room {
	if strings.HasPrefix(level.Meta, "unique.") {
		return nil // no two nodes share it
	}
	byValue := map[string]*room{}
	var out []*room
	x.classes(func(n *structs.Node) *room {
		v := n.Meta[level.Meta]
		if v == "" {
			return nil
		}
		r := byValue[v]
		if r == nil {
			r = &room{domain: domainOf(n, level), holds: make([]int64, len(x.asks))}
			byValue[v] = r
			out = append(out, r)
		}
		return r
	})
	slices.SortFunc(out, func(a, b *room) int { return strings.Compare(a.value, b.value) })
	return out
}

// classes adds what is free on the nodes that a group may use to the rooms that of
// gives for each class; nil leaves a class out.
func (x *gangPlacer) classes(of func(n *structs.Node) *room) {
	usable := make([]bool, len(x.asks))
	x.base.flush()
	for _, c := range x.base.w.classes.All {
		n, any := c.any().node, false
		for i, work := range x.gw.works {
			usable[i] = x.s.fit(work.group).class(n).ok()
			any = any || usable[i]
		}
		if !any {
			continue
		}
		r := of(n)
		if r == nil {
			continue
		}
		for n := range c.all {
			x.add(r, n, usable)
		}
	}
}

func (x *gangPlacer) add(r *room, n *nodeState, usable []bool) {
	free := freeAmount(n)
	r.free = r.free.plus(free)
	for i, ask := range x.asks {
		if usable[i] {
			r.holds[i] += free.holds(ask)
		}
	}
}

// candidates are the domains that may hold the gang: least free room first, so that
// large ones survive, then by name.
func (x *gangPlacer) candidates(level structs.TopologyLevel) []*room {
	rooms := x.rooms(level)
	x.looked = rooms
	fit := slices.DeleteFunc(slices.Clone(rooms), func(r *room) bool { return !r.enough(x) })
	slices.SortStableFunc(fit, func(a, b *room) int { return compareAmounts(a.free, b.free) })
	return fit
}

// nodeRooms is what each single node has for a gang, in the order of their names.
func (x *gangPlacer) nodeRooms() []*room {
	var out []*room
	usable := make([]bool, len(x.asks))
	x.base.flush()
	for _, c := range x.base.w.classes.All {
		any := false
		for i, work := range x.gw.works {
			usable[i] = x.s.fit(work.group).class(c.any().node).ok()
			any = any || usable[i]
		}
		if !any {
			continue
		}
		for n := range c.all {
			r := &room{domain: nodeDomain(n.node), holds: make([]int64, len(x.asks))}
			x.add(r, n, usable)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *room) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.nodeID, b.nodeID))
	})
	return out
}

func nodeDomain(n *structs.Node) *domain {
	return &domain{level: structs.LevelNode, nodeID: n.ID, name: cmp.Or(n.Name, structs.ShortID(n.ID))}
}

// joint is a group that asks on one node for all that the gang's first members ask,
// so that one search finds the node for them.
func (x *gangPlacer) joint() *structs.TaskGroup {
	all := &structs.TaskGroup{Name: "gang", EphemeralDisk: &structs.EphemeralDisk{}, Volumes: map[string]*structs.VolumeRequest{}}
	for _, work := range x.gw.works {
		g := work.group
		if work.first == 0 {
			continue
		}
		all.Constraints = append(all.Constraints, g.Constraints...)
		for name, v := range g.Volumes { // into a map: the order cannot show
			all.Volumes[g.Name+"/"+name] = v
		}
		for i := range work.first {
			all.Networks = append(all.Networks, g.Networks...)
			if g.EphemeralDisk != nil {
				all.EphemeralDisk.SizeMB += g.EphemeralDisk.SizeMB
			}
			for _, t := range g.Tasks {
				one := *t
				one.Name = fmt.Sprintf("%s/%d/%s", g.Name, i, t.Name)
				all.Tasks = append(all.Tasks, &one)
			}
		}
	}
	return all
}

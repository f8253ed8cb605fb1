package scheduler

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/structs"
)

// domain is a cell that a topology keeps a gang under: nodes, or devices of one node.
type domain struct {
	level string
	// key and value are of the nodes' meta; nodeID is set instead at level node and below.
	key, value string
	nodeID     string
	// devices are those under a cell within the node; nil: all. above is the node then.
	devices map[string]bool
	above   *domain
	name    string // for people
	outside string // why other nodes are filtered
}

func newDomain(d domain) *domain {
	d.outside = "outside of " + d.String()
	return &d
}

func (d *domain) String() string {
	if d.devices != nil {
		return d.cellName()
	}
	return d.level + " " + d.name
}

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
	seen := map[*cell.Shape]bool{} // nodes of one family may have their devices in other places
	for _, c := range s.w.familiesTree().All {
		for n := range c.all {
			for _, t := range n.has.trees {
				if seen[t.shape] {
					continue
				}
				seen[t.shape] = true
				if slices.Contains(t.shape.Levels(), name) {
					return true
				}
			}
		}
	}
	return false
}

// domainOf gives the cell of a level that a node is under.
func domainOf(n *structs.Node, level structs.TopologyLevel) *domain {
	v := n.Meta[level.Meta]
	return newDomain(domain{level: level.Name, key: level.Meta, value: v, name: v})
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
		out.devices += int64(a.devices[i].whole())
	}
	return out
}

// freeAmount is what of a node is free, at most.
func freeAmount(n *nodeState) amount {
	return amount{devices: int64(n.freeDevices()), Vector: n.free()}
}

// freeIndexed is freeAmount of a node as an index gives it.
func freeIndexed(n *nodeState) amount {
	if n.dirty || n.at.family == "" {
		return freeAmount(n)
	}
	out := amount{devices: n.at.at[dimGPUs], Vector: n.free()}
	if n.hold != nil {
		out.devices += int64(n.hold.devices)
	}
	return out
}

// room is what a domain has for a gang: an upper bound, as names (ports, cores, the
// places of devices) are not looked at.
type room struct {
	*domain
	sets []usableSet
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

// rooms adds up what is free in each domain of a level, in the order of their names:
// bounds, but where single nodes must be looked at anyway.
func (x *gangPlacer) rooms(level structs.TopologyLevel) []*room {
	if strings.HasPrefix(level.Meta, "unique.") {
		return nil // no two nodes share it
	}
	x.held = x.reservedByClass()
	byValue := map[string]*room{}
	var out []*room
	for n, set := range x.sets() {
		v := n.Meta[level.Meta]
		if v == "" {
			continue
		}
		r := byValue[v]
		if r == nil {
			r = &room{domain: domainOf(n, level), holds: make([]int64, len(x.asks))}
			byValue[v] = r
			out = append(out, r)
		}
		r.sets = append(r.sets, set)
		if x.taking {
			x.count(r, set)
		} else {
			x.bound(r, n.ComputedClass, set)
		}
	}
	slices.SortFunc(out, func(a, b *room) int { return strings.Compare(a.value, b.value) })
	return out
}

// usableSet is nodes of one class with which groups of the gang may use them.
type usableSet struct {
	*nodeSet
	by []bool
}

// sets gives the classes that any group may use, each with one of its nodes.
func (x *gangPlacer) sets() iter.Seq2[*structs.Node, usableSet] {
	return func(yield func(*structs.Node, usableSet) bool) {
		x.base.flush()
		verdicts := map[string][]bool{} // by family, where that decides
		for _, c := range x.base.base().classesTree().All {
			n := c.any()
			by, known := verdicts[n.has.family]
			if !known {
				by = make([]bool, len(x.asks))
				alike := true
				for i, work := range x.gw.works {
					f := x.s.fit(work.group)
					by[i] = f.class(n.node).ok()
					alike = alike && !x.meta[i]
				}
				if alike {
					verdicts[n.has.family] = by
				}
			}
			if slices.Contains(by, true) && !yield(n.node, usableSet{c, by}) {
				return
			}
		}
	}
}

// bound adds to a room what a class has free in all. Reservations are taken off there,
// which may be the gang's own, and are added again.
func (x *gangPlacer) bound(r *room, class string, set usableSet) {
	sum, most := vectorAmount(set.sum), vectorAmount(set.nodes.Max())
	reserved, some := x.held[class]
	sum = sum.plus(reserved)
	r.free = r.free.plus(sum)
	for i, ask := range x.asks {
		if set.by[i] && (some || most.holds(ask) > 0) {
			r.holds[i] += sum.holds(ask)
		}
	}
}

// reservedByClass adds up what is reserved.
func (x *gangPlacer) reservedByClass() map[string]amount {
	held := map[string]amount{}
	for id, h := range x.base.base().holdsTree().All {
		if n, known := x.base.node(id); known && n.node != nil {
			class := n.node.ComputedClass
			held[class] = held[class].plus(amount{int64(h.devices), h.amount})
		}
	}
	return held
}

func vectorAmount(v bucket.Vector) amount {
	return amount{v[dimGPUs], Vector{v[dimCPU], v[dimMemory], v[dimDisk]}}
}

// count adds to a room what the nodes of a class have free, one by one.
func (x *gangPlacer) count(r *room, set usableSet) {
	for n := range set.all {
		free := x.amountOf(n, freeIndexed(n))
		r.free = r.free.plus(free)
		for i, ask := range x.asks {
			if set.by[i] {
				r.holds[i] += free.holds(ask)
			}
		}
	}
}

// recount looks at a room's nodes.
func (x *gangPlacer) recount(r *room) {
	r.free, r.holds = amount{}, make([]int64, len(x.asks))
	for _, set := range r.sets {
		x.count(r, set)
	}
}

// candidates are the domains that may hold the gang: least free room first, so that
// large ones survive, then by name.
func (x *gangPlacer) candidates(level structs.TopologyLevel) []*room {
	x.looked = x.rooms(level)
	fit := slices.DeleteFunc(slices.Clone(x.looked), func(r *room) bool { return !r.enough(x) })
	slices.SortStableFunc(fit, func(a, b *room) int { return compareAmounts(a.free, b.free) })
	return fit
}

// nodeRooms is what each single node has for a gang, in the order of their names.
func (x *gangPlacer) nodeRooms() []*room {
	var out []*room
	for _, set := range x.sets() {
		for n := range set.all {
			r := &room{domain: nodeDomain(n.node), free: freeAmount(n), holds: make([]int64, len(x.asks))}
			for i, ask := range x.asks {
				if set.by[i] {
					r.holds[i] = r.free.holds(ask)
				}
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *room) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.nodeID, b.nodeID))
	})
	return out
}

func nodeDomain(n *structs.Node) *domain {
	return newDomain(domain{level: structs.LevelNode, nodeID: n.ID, name: cmp.Or(n.Name, structs.ShortID(n.ID))})
}

// joint is a group that asks on one node for all that the gang's first members ask,
// so that one search finds the node for them, and a cell of a level below nodes.
func (x *gangPlacer) joint(level string) *structs.TaskGroup {
	all := &structs.TaskGroup{Name: x.gw.works[0].group.Name, EphemeralDisk: &structs.EphemeralDisk{}, Volumes: map[string]*structs.VolumeRequest{}}
	for _, work := range x.gw.works {
		g := work.group
		if work.first == 0 {
			continue
		}
		all.Constraints = append(all.Constraints, g.Constraints...)
		if len(all.Candidates) == 0 { // where groups name others, those are tried that the first names
			all.Candidates = g.Candidates
		}
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
	if x.gw.inCells(level) {
		gather(all.Tasks, level)
	}
	return all
}

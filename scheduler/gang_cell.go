package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// A topology below the level of nodes (a switch, a socket) keeps all devices of a gang
// under one cell of one node, whatever their kinds: a network card as well as a GPU.
// Members that ask for no devices are on that node. Source: semantics part 2, "topology".

// newCell makes the domain of a cell within a node.
func newCell(level, id string, n *structs.Node, devices map[string]bool) *domain {
	above := nodeDomain(n)
	return newDomain(domain{level: level, nodeID: n.ID, name: id + " of " + above.name, devices: devices, above: above})
}

// cellsOf gives the cells of a level within a node, in the order in which it reports them.
func cellsOf(n *nodeState, level string) (out []*domain) {
	if n.node == nil || n.has == nil || n.node.NodeResources == nil {
		return nil
	}
	b := newTreeBuilder(n.node.NodeResources)
	var collect func(c *structs.TopologyCell, into map[string]bool)
	collect = func(c *structs.TopologyCell, into map[string]bool) {
		for _, id := range c.Devices {
			into[id] = true
		}
		for _, kid := range b.kids[c.ID] {
			collect(kid, into)
		}
	}
	seen := map[string]bool{}
	for _, c := range b.cells {
		if c.Level != level {
			continue
		}
		devices := map[string]bool{}
		collect(c, devices)
		for id := range devices { // into a set: the order cannot show
			seen[id] = true
		}
		out = append(out, newCell(level, c.ID, n.node, devices))
	}
	for _, t := range n.has.trees { // a device may be a cell of the level itself
		for i, id := range t.ids {
			if !seen[id] && t.shape.Common([]int{i}) == level {
				out = append(out, newCell(level, id, n.node, map[string]bool{id: true}))
			}
		}
	}
	return out
}

// common gives the lowest level within a node that holds all these devices. Of several
// trees only the node holds them.
func (n *nodeState) common(ids []string) string {
	for _, t := range n.has.trees {
		var numbers []int
		for _, id := range ids {
			if i, found := t.find(id); found {
				numbers = append(numbers, i)
			}
		}
		if len(numbers) == len(ids) {
			return cmp.Or(t.shape.Common(numbers), structs.LevelNode)
		}
	}
	return structs.LevelNode
}

// devicesOf lists what devices an allocation holds.
func devicesOf(a *structs.Allocation) (ids []string) {
	if a.AllocatedResources == nil {
		return nil
	}
	for _, t := range a.AllocatedResources.Tasks { // into a set: the order cannot show
		for _, d := range t.Devices {
			ids = append(ids, d.DeviceIDs...)
		}
	}
	return ids
}

// deviceAsks gives what devices the members of a gang that are to be placed ask for.
func (gw *gangWork) deviceAsks() (asks []deviceAsk) {
	for _, work := range gw.works {
		if len(work.place) == 0 {
			continue
		}
		for _, t := range work.group.Tasks {
			asks = append(asks, deviceAsks(t)...)
		}
	}
	return asks
}

// inCells tells whether a level is one that the devices of the gang are kept under, below
// that of nodes.
func (gw *gangWork) inCells(level string) bool {
	return level != structs.LevelNode && len(gw.deviceAsks()) > 0
}

// freeIn counts the free devices under a cell that the gang may ask for.
func freeIn(d *domain, n *nodeState, asks []deviceAsk, m *matcher) (free int64) {
	for at, t := range n.has.trees {
		for i, id := range t.ids {
			matches := func(a deviceAsk) bool {
				return (a.vendor == "" || a.vendor == t.vendor) && a.kind == t.kind && a.matches(m, t.groups[i])
			}
			if d.devices[id] && n.cells[at].FreeShare(i) >= wholeDevice && slices.ContainsFunc(asks, matches) {
				free++
			}
		}
	}
	return free
}

// cellRoom is a cell with how many devices of it are free.
type cellRoom struct {
	*domain
	free int64
}

// cellRooms gives the cells of a level within a node: those with least room first, so
// that large ones survive.
func (gw *gangWork) cellRooms(n *nodeState, level string, m *matcher) (out []cellRoom) {
	asks := gw.deviceAsks()
	for _, d := range cellsOf(n, level) {
		out = append(out, cellRoom{d, freeIn(d, n, asks, m)})
	}
	slices.SortStableFunc(out, func(a, b cellRoom) int { return cmp.Compare(a.free, b.free) })
	return out
}

// domainsOn gives the domains of a level on a node that was found for all first members:
// first the cell that the search would cut.
func (x *gangPlacer) domainsOn(f found, level string) (out []*domain) {
	if !x.gw.inCells(level) {
		return []*domain{nodeDomain(f.node.node)}
	}
	need := int64(0)
	for i, work := range x.gw.works {
		need += x.asks[i].devices * int64(work.first)
	}
	for _, c := range x.gw.cellRooms(f.node, level, x.s.fits.m) {
		if c.free >= need {
			out = append(out, c.domain)
		}
	}
	cut := f.grant.use.devices
	at := slices.IndexFunc(out, func(d *domain) bool { return len(cut) > 0 && d.devices[cut[0].id] })
	if at > 0 {
		best := out[at]
		out = slices.Insert(slices.Delete(out, at, at+1), 0, best)
	}
	return out
}

// levelsWithin are the levels within nodes that are tried for the gang, in their order:
// the one that is wanted and, if it is only preferred, those above it.
func (x *gangPlacer) levelsWithin(want *structs.TopologyAsk) []string {
	levels := structs.NodeLevels()
	at := slices.Index(levels, want.Level)
	switch {
	case !x.gw.inCells(want.Level):
		return []string{structs.LevelNode}
	case want.Required:
		return []string{want.Level}
	case at < 0:
		return []string{want.Level, structs.LevelNode}
	}
	return levels[at:]
}

// besideOn is the domain on a node that others of a gang are to be under: the cell that
// holds the devices of those which run. If it is only preferred and no cell does, the
// node. If nobody holds a device yet, the cell that fits the others best.
func (s *scheduler) besideOn(gw *gangWork, n *structs.Node, live []*structs.Allocation) *domain {
	want := gw.spec.topology
	state, known := s.edit.node(n.ID)
	if !known || state.has == nil || !gw.inCells(want.Level) {
		return nodeDomain(n)
	}
	held := map[string]bool{}
	for _, a := range live {
		if a.NodeID == n.ID {
			for _, id := range devicesOf(a) {
				held[id] = true
			}
		}
	}
	var best *domain
	most, need := -1, int64(0)
	for _, work := range gw.works {
		need += askAmount(newAsk(s.in, work.group)).devices * int64(len(work.place))
	}
	for _, c := range gw.cellRooms(state, want.Level, s.fits.m) {
		holds := 0
		for id := range held { // counted: the order cannot show
			if c.devices[id] {
				holds++
			}
		}
		if len(held) == 0 {
			holds = int(min(c.free, need))
		}
		if holds > most {
			best, most = c.domain, holds
		}
	}
	switch {
	case best != nil && (want.Required || most == len(held)):
		return best
	case want.Required: // the node has no such cell (any more): no device of it may be taken
		return newCell(want.Level, "no "+want.Level, n, map[string]bool{})
	}
	return nodeDomain(n)
}

// cellRoomsOf is what the cells of a level of all nodes have for a gang, in the order of
// the nodes' names.
func (x *gangPlacer) cellRoomsOf(level string) (out []*room) {
	asks := x.gw.deviceAsks()
	for _, on := range x.nodeRooms() {
		n, _ := x.base.node(on.nodeID)
		for _, d := range cellsOf(n, level) {
			r := &room{domain: d, free: on.free, holds: make([]int64, len(x.asks))}
			r.free.devices = freeIn(d, n, asks, x.s.fits.m)
			for i, ask := range x.asks {
				if on.holds[i] > 0 {
					r.holds[i] = r.free.holds(ask)
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// gather asks for all whole devices of one description at once, under one cell of a
// level, in place of one ask for each member: so that the search of a node finds one for
// them all. Shares and other descriptions stay as they are, each under such a cell.
func gather(tasks []*structs.Task, level string) {
	var all []*structs.RequestedDevice
	for _, t := range tasks {
		if t.Resources == nil || len(t.Resources.Devices) == 0 {
			continue
		}
		r := *t.Resources
		r.Devices = nil
		for _, d := range t.Resources.Devices {
			one := *d
			one.Count = max(1, d.Count)
			one.Topology = &structs.TopologyAsk{Level: level, Required: true}
			whole := one.Count > 1 || one.Share <= 0 || one.Share >= wholeDevice
			at := slices.IndexFunc(all, func(o *structs.RequestedDevice) bool { return sameDevice(o, d) })
			if whole && at >= 0 {
				all[at].Count += one.Count
				continue
			}
			r.Devices = append(r.Devices, &one)
			if whole {
				one.Share = 0
				all = append(all, &one)
			}
		}
		t.Resources = &r
	}
}

// sameDevice tells whether two asks describe the devices alike.
func sameDevice(a, b *structs.RequestedDevice) bool {
	return a.Name == b.Name &&
		slices.EqualFunc(a.Constraints, b.Constraints, func(x, y *structs.Constraint) bool { return *x == *y }) &&
		slices.EqualFunc(a.Affinities, b.Affinities, func(x, y *structs.Affinity) bool { return *x == *y })
}

// cellName is a cell in words: most are called by their levels.
func (d *domain) cellName() string {
	if strings.HasPrefix(d.name, d.level+"-") {
		return d.name
	}
	return d.level + " " + d.name
}

package scheduler

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/structs"
)

// grant is what an instance gets of a node: its use, and the names in the form
// that a placement carries.
type grant struct {
	use      *use
	ports    []structs.PortMapping
	networks []*structs.NetworkResource
	cores    map[string][]uint16
	coreMHz  map[string]int64
	devices  map[string][]*structs.AllocatedDeviceResource
	// cell is the class of the largest free cell that was cut for the devices, or
	// scattered if they are not of one: what phases go by.
	cell int
	// like sums the weights of the devices' affinities that are met.
	like int
}

// grant finds what an instance would get of a node, without taking it. The second
// answer is what the node lacks; "" if it fits. The same node and the same state
// of rng give the same grant.
func (a *ask) grant(n *nodeState, m *matcher, rng *random) (grant, string) {
	if what := n.lacks(a.amount, &a.by); what != "" {
		return grant{}, what
	}
	if a.plain {
		return grant{use: &a.common}, ""
	}
	g := grant{use: &use{nodeID: n.id, of: a.common.of, amount: a.amount, ends: a.by.ends}}
	if what := g.pickCores(a, n); what != "" {
		return grant{}, what
	}
	if what := g.pickDevices(a, n, m); what != "" {
		return grant{}, what
	}
	if what := g.pickPorts(a, n, rng); what != "" {
		return grant{}, what
	}
	g.use.sort()
	if !n.spares(g.use, &a.by) {
		return grant{}, lacksReserved
	}
	return g, ""
}

// pickCores takes the lowest free cores.
func (g *grant) pickCores(a *ask, n *nodeState) string {
	if len(a.cores) == 0 {
		return ""
	}
	g.cores, g.coreMHz = map[string][]uint16{}, map[string]int64{}
	next := 0
	for _, want := range a.cores {
		var got []uint16
		for ; next < len(n.has.cores) && len(got) < want.n; next++ {
			if id := n.has.cores[next]; !n.coreTaken(id) {
				got = append(got, id)
			}
		}
		if len(got) < want.n {
			return lacksCores
		}
		mhz := int64(want.n) * n.has.mhzPerCore
		g.cores[want.task], g.coreMHz[want.task] = got, mhz
		g.use.cores = append(g.use.cores, got...)
		g.use.amount.CPU += mhz
	}
	return n.lacks(g.use.amount, &a.by)
}

// pickDevices takes, for each ask, free devices of one kind: the kind that is liked
// best, then the one whose cell fits best, then the first.
func (g *grant) pickDevices(a *ask, n *nodeState, m *matcher) string {
	if len(a.devices) == 0 {
		return ""
	}
	g.cell = partlyTaken
	g.devices = make(map[string][]*structs.AllocatedDeviceResource, len(a.devices))
	cells := n.cells
	g.use.devices = make([]heldDevice, 0, a.held)
	for i := range a.devices {
		want := &a.devices[i]
		c := a.choose(n, want, cells, m)
		if c.tree == nil {
			return a.lacksOf(want, n, cells, m)
		}
		g.cell = max(g.cell, c.class())
		g.like += c.like
		ids := make([]string, len(c.Devices))
		for k, number := range c.Devices {
			ids[k] = c.tree.ids[number]
			g.use.devices = append(g.use.devices, heldDevice{ids[k], int32(want.share)}) //nolint:gosec // at most 1000
		}
		got := &structs.AllocatedDeviceResource{
			Vendor: c.group.Vendor, Type: c.group.Type, Name: c.group.Name, DeviceIDs: ids, Level: c.Level,
		}
		if want.share < wholeDevice {
			got.Share = want.share
		}
		g.devices[want.task] = append(g.devices[want.task], got)
		if i+1 < len(a.devices) {
			cells = c.taken(cells, want.share)
		}
	}
	return ""
}

// choice is the devices that an ask would get of a node.
type choice struct {
	cell.Choice
	at    int // which of the node's trees
	tree  *deviceTree
	group *structs.NodeDeviceResource
	like  int
	// partly: a part of a device that others hold parts of.
	partly bool
}

// class is the class of the cell that the devices were cut from.
func (c *choice) class() int {
	switch {
	case c.Cell > 0:
		return cellClass(c.Cell)
	case c.partly:
		return partlyTaken
	}
	return scattered
}

// better compares two choices for one ask.
func (c *choice) better(o *choice) bool {
	if o.tree == nil || c.like != o.like {
		return o.tree == nil || c.like > o.like
	}
	return c.class() < o.class()
}

// taken gives the trees as they are with the choice taken.
func (c *choice) taken(cells []*cell.State, share int) []*cell.State {
	cells = slices.Clone(cells)
	cells[c.at] = cells[c.at].Clone()
	for _, number := range c.Devices {
		cells[c.at].Take(number, share)
	}
	return cells
}

// choose finds the devices for one of the ask's; its tree is nil if there are none.
func (a *ask) choose(n *nodeState, want *deviceAsk, cells []*cell.State, m *matcher) (best choice) {
	for at, t := range n.has.trees {
		if (want.vendor != "" && want.vendor != t.vendor) || want.kind != t.kind {
			continue
		}
		for i, group := range t.groups {
			if slices.Index(t.groups, group) != i || !want.matches(m, group) {
				continue
			}
			ask := want.find
			ask.Allowed = want.allowed(t, group)
			if a.frag != nil && want.share < wholeDevice {
				ask.Allowed = a.frag.narrow(n, cells[at], pool{at, t, group}, ask.Allowed)
			}
			found, ok := cells[at].Find(ask)
			partly := want.share < wholeDevice
			if c := (choice{found, at, t, group, want.liking(m, group), partly}); ok && c.better(&best) {
				best = c
			}
			if t.single {
				break
			}
		}
	}
	return best
}

// lacksOf says what is missing of one of the ask's: devices, or a cell of its level.
func (a *ask) lacksOf(want *deviceAsk, n *nodeState, cells []*cell.State, m *matcher) string {
	anywhere := *want
	if anywhere.within = nil; want.within != nil && a.choose(n, &anywhere, cells, m).tree != nil {
		return "devices: no room for " + strconv.Itoa(want.count) + " under " + want.within.String()
	}
	if !want.find.Required {
		return lacksDevices
	}
	anywhere.find.Required, anywhere.find.Level = false, ""
	if c := a.choose(n, &anywhere, cells, m); c.tree != nil {
		return fmt.Sprintf("devices: no free cell of level %s for %d", want.find.Level, want.count)
	}
	return lacksDevices
}

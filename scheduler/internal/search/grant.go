package search

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/random"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Grant is what an instance gets of a node: its use, and the names in the form
// that a placement carries.
type Grant struct {
	Usage    *world.Usage
	Ports    []structs.PortMapping
	Networks []*structs.NetworkResource
	Cores    map[string][]uint16
	CoreMHz  map[string]int64
	Devices  map[string][]*structs.AllocatedDeviceResource
	// cell is the class of the largest free cell that was cut for the devices, or
	// scattered if they are not of one: what phases go by.
	cell int
	// like sums the weights of the devices' affinities that are met.
	like int
}

// Grant finds what an instance would get of a node, without taking it. The second
// answer is what the node lacks; "" if it fits. The same node and the same state
// of rng return the same grant.
func (a *Request) Grant(n *world.NodeState, m *feasible.Matcher, rng *random.Numbers) (Grant, string) {
	if what := n.Lacks(a.Amount, &a.By); what != "" {
		return Grant{}, what
	}
	if a.Plain {
		return Grant{Usage: &a.common}, ""
	}
	g := Grant{Usage: &world.Usage{NodeID: n.ID, Owner: a.common.Owner, Amount: a.Amount, Ends: a.By.Ends}}
	if what := g.pickCores(a, n); what != "" {
		return Grant{}, what
	}
	if what := g.pickOwnDevices(a, n, m); what != "" {
		return Grant{}, what
	}
	if what := g.pickPorts(a, n, rng); what != "" {
		return Grant{}, what
	}
	g.Usage.Sort()
	if !n.Spares(g.Usage, &a.By) {
		return Grant{}, world.LacksReserved
	}
	return g, ""
}

// pickCores takes the lowest free cores.
func (g *Grant) pickCores(a *Request, n *world.NodeState) string {
	if len(a.Cores) == 0 {
		return ""
	}
	g.Cores, g.CoreMHz = map[string][]uint16{}, map[string]int64{}
	next := 0
	for _, want := range a.Cores {
		var got []uint16
		for ; next < len(n.Capacity.Cores) && len(got) < want.n; next++ {
			if id := n.Capacity.Cores[next]; !n.CoreTaken(id) {
				got = append(got, id)
			}
		}
		if len(got) < want.n {
			return world.LacksCores
		}
		mhz := int64(want.n) * n.Capacity.MHzPerCore
		g.Cores[want.task], g.CoreMHz[want.task] = got, mhz
		g.Usage.Cores = append(g.Usage.Cores, got...)
		g.Usage.Amount.CPU += mhz
	}
	return n.Lacks(g.Usage.Amount, &a.By)
}

// pickOwnDevices takes devices as pickDevices does; for a system or sysbatch instance those that nobody owns.
func (g *Grant) pickOwnDevices(a *Request, n *world.NodeState, m *feasible.Matcher) string {
	if a.beside == nil {
		return g.pickDevices(a, n, m)
	}
	free := *g
	if what := free.pickDevices(a, n, m); what != "" {
		return what
	}
	among := a.copy()
	for _, set := range world.SpareDevices(a.beside, n) {
		for i := range among.Devices {
			among.Devices[i].Within = &feasible.Domain{Level: structs.LevelNode, NodeID: n.ID, Name: n.Node.Name, Devices: set}
		}
		usage := *g.Usage
		trial := *g
		trial.Usage = &usage
		if trial.pickDevices(among, n, m) == "" && world.ClaimLacks(a.beside, trial.Usage) == "" {
			*g = trial
			return ""
		}
	}
	return world.LacksUnowned
}

// pickDevices takes, for each request, free devices of one kind: the kind that is liked best, then
// the one whose cell fits best, then the first.
func (g *Grant) pickDevices(a *Request, n *world.NodeState, m *feasible.Matcher) string {
	if len(a.Devices) == 0 {
		return ""
	}
	if a.together != nil {
		return g.pickTogether(a, n, m)
	}
	g.cell = partlyTaken
	g.Devices = make(map[string][]*structs.AllocatedDeviceResource, len(a.Devices))
	cells := n.Cells
	g.Usage.Devices = make([]world.DeviceUsage, 0, a.Reserved)
	for i := range a.Devices {
		want := &a.Devices[i]
		c := a.Choose(n, want, cells, m)
		if c.Tree == nil {
			return a.lacksOf(want, n, cells, m)
		}
		g.cell = max(g.cell, c.class())
		g.like += c.like
		g.Devices[want.Task] = append(g.Devices[want.Task], g.take(want, &c))
		if i+1 < len(a.Devices) {
			cells = c.Taken(cells, want.Share)
		}
	}
	return ""
}

// take adds the devices that were chosen for a request to the use, and returns them by their names.
func (g *Grant) take(want *feasible.DeviceRequest, c *Choice) *structs.AllocatedDeviceResource {
	ids := make([]string, len(c.Devices))
	for k, number := range c.Devices {
		ids[k] = c.Tree.IDs[number]
		g.Usage.Devices = append(g.Usage.Devices, world.DeviceUsage{ID: ids[k], Share: int32(want.Share)}) // at most 1000
	}
	got := &structs.AllocatedDeviceResource{
		Vendor: c.group.Vendor, Type: c.group.Type, Name: c.group.Name, DeviceIDs: ids, Level: c.Level,
	}
	if want.Share < world.WholeDevice {
		got.Share = want.Share
	}
	return got
}

// pickTogether takes devices for all requests as for one, and gives each its own of these.
func (g *Grant) pickTogether(a *Request, n *world.NodeState, m *feasible.Matcher) string {
	all := a.Choose(n, a.together, n.Cells, m)
	if all.Tree == nil {
		return a.lacksOf(a.together, n, n.Cells, m)
	}
	chosen := &feasible.Domain{Level: all.Level, NodeID: n.ID, Name: n.Node.Name, Devices: map[string]bool{}}
	for _, number := range all.Devices {
		chosen.Devices[all.Tree.IDs[number]] = true
	}
	g.cell = all.class()
	g.Usage.Devices = make([]world.DeviceUsage, 0, a.Reserved)
	cells, got := n.Cells, make([]*structs.AllocatedDeviceResource, len(a.Devices))
	parts, at := a.together.Among(chosen)
	for i := range parts {
		want := &parts[i]
		c := a.Choose(n, want, cells, m)
		if c.Tree == nil {
			return a.lacksOf(want, n, cells, m)
		}
		g.like += c.like
		got[at[i]] = g.take(want, &c)
		cells = c.Taken(cells, want.Share)
	}
	g.Devices = make(map[string][]*structs.AllocatedDeviceResource, len(a.Devices))
	for i, one := range got { // as the job file has them
		g.Devices[a.Devices[i].Task] = append(g.Devices[a.Devices[i].Task], one)
	}
	return ""
}

// Choice is the devices that a request would get of a node.
type Choice struct {
	cell.Choice
	At    int // which of the node's trees
	Tree  *world.DeviceTree
	group *structs.NodeDeviceResource
	like  int
	// partly: a part of a device that others hold parts of.
	partly bool
}

// class is the class of the cell that the devices were cut from.
func (c *Choice) class() int {
	switch {
	case c.Cell > 0:
		return world.CellClass(c.Cell)
	case c.partly:
		return partlyTaken
	}
	return scattered
}

// better compares two choices for one request.
func (c *Choice) better(o *Choice) bool {
	if o.Tree == nil || c.like != o.like {
		return o.Tree == nil || c.like > o.like
	}
	return c.class() < o.class()
}

// Taken returns the trees as they are with the choice taken.
func (c *Choice) Taken(cells []*cell.State, share int) []*cell.State {
	cells = slices.Clone(cells)
	cells[c.At] = cells[c.At].Clone()
	for _, number := range c.Devices {
		cells[c.At].Take(number, share)
	}
	return cells
}

// Choose finds the devices for one of the request's; its tree is nil if there are none.
func (a *Request) Choose(n *world.NodeState, want *feasible.DeviceRequest, cells []*cell.State, m *feasible.Matcher) (best Choice) {
	for at, t := range n.Capacity.Trees {
		if (want.Vendor != "" && want.Vendor != t.Vendor) || want.Kind != t.Kind {
			continue
		}
		for i, group := range t.Groups {
			if slices.Index(t.Groups, group) != i || !want.Matches(m, group) {
				continue
			}
			request := want.Find
			request.Allowed = a.allowed(n, t, want.Allowed(t, group))
			if a.frag != nil && want.Share < world.WholeDevice {
				request.Allowed = a.frag.narrow(n, cells[at], world.Pool{At: at, Tree: t, Group: group}, request.Allowed)
			}
			found, ok := cells[at].Find(request)
			partly := want.Share < world.WholeDevice
			if c := (Choice{found, at, t, group, want.Liking(m, group), partly}); ok && c.better(&best) {
				best = c
			}
			if t.Single {
				break
			}
		}
	}
	return best
}

// allowed returns which devices of a tree may be taken: those of some, nil for all, that no reservation keeps from the taker.
func (a *Request) allowed(n *world.NodeState, t *world.DeviceTree, of func(device int) bool) func(device int) bool {
	if !slices.ContainsFunc(n.Parts(), func(p world.Part) bool { return !p.Pending && p.Named() }) {
		return of
	}
	return func(device int) bool { return (of == nil || of(device)) && !n.Bars(t.IDs[device], &a.By) }
}

// lacksOf returns what is missing of one of the request's: devices, or a cell of its level.
func (a *Request) lacksOf(want *feasible.DeviceRequest, n *world.NodeState, cells []*cell.State, m *feasible.Matcher) string {
	anywhere := *want
	if anywhere.Within = nil; want.Within != nil && a.Choose(n, &anywhere, cells, m).Tree != nil {
		return "devices: no room for " + strconv.Itoa(want.Count) + " under " + want.Within.String()
	}
	if !want.Find.Required {
		return world.LacksDevices
	}
	anywhere.Find.Required, anywhere.Find.Level = false, ""
	if c := a.Choose(n, &anywhere, cells, m); c.Tree != nil {
		return fmt.Sprintf("devices: no free cell of level %s for %d", want.Find.Level, want.Count)
	}
	return world.LacksDevices
}

package scheduler

import (
	"slices"

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
}

// grant finds what an instance would get of a node, without taking it. The second
// answer is what the node lacks; "" if it fits. The same node and the same state
// of rng give the same grant.
func (a *ask) grant(n *nodeState, m *matcher, rng *random) (grant, string) {
	if what := n.lacks(a.amount); what != "" {
		return grant{}, what
	}
	if a.plain {
		return grant{use: &a.common}, ""
	}
	g := grant{use: &use{nodeID: n.id, amount: a.amount}}
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
	return n.lacks(g.use.amount)
}

// pickDevices takes, for each ask, free devices of one kind: the kind that is
// liked best, then the one with the fewest free, then the first.
func (g *grant) pickDevices(a *ask, n *nodeState, m *matcher) string {
	for i := range a.devices {
		want := &a.devices[i]
		var best []string
		var from *structs.NodeDeviceResource
		liking := 0
		for _, d := range n.node.NodeResources.Devices {
			if !want.matches(m, d) {
				continue
			}
			free := g.freeDevices(n, d)
			if len(free) < want.count {
				continue
			}
			like := want.liking(m, d)
			if from == nil || like > liking || (like == liking && len(free) < len(best)) {
				from, best, liking = d, free, like
			}
		}
		if from == nil {
			return lacksDevices
		}
		ids := best[:want.count]
		for _, id := range ids {
			g.use.devices = append(g.use.devices, deviceKey(from.Vendor, from.Type, from.Name, id))
		}
		if g.devices == nil {
			g.devices = map[string][]*structs.AllocatedDeviceResource{}
		}
		g.devices[want.task] = append(g.devices[want.task], &structs.AllocatedDeviceResource{
			Vendor: from.Vendor, Type: from.Type, Name: from.Name, DeviceIDs: ids,
		})
	}
	return ""
}

func (g *grant) freeDevices(n *nodeState, d *structs.NodeDeviceResource) []string {
	var free []string
	for _, one := range d.Instances {
		key := deviceKey(d.Vendor, d.Type, d.Name, one.ID)
		if !n.deviceTaken(key) && !slices.Contains(g.use.devices, key) {
			free = append(free, one.ID)
		}
	}
	return free
}

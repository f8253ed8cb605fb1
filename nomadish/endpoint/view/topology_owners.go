package view

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// owners adds to the topology who owns what (semantics part 2, "Virtual clusters").
type owners struct {
	world *scheduler.World // nil: nobody owns anything, and nothing is added
}

// ownersIn returns the owners in a snapshot, and the index that last changed them. A watch set is given what changes them: while
// nobody owns anything that is the tables of virtual clusters and of calendars, and the time up to which they count; else all that is bound, as a node shows that of the cells above it.
func ownersIn(ws *state.WatchSet, snap *state.Snapshot) (o owners, index uint64) {
	if world := snap.World(); world.AnyOwner() {
		return owners{world}, snap.ClaimsIndex(ws)
	}
	_, _ = snap.VirtualClusters(ws).List("", false), snap.ClaimsEdge(ws) // to be watched
	return owners{}, max(snap.TableIndex(state.TableVirtualClusters), snap.TableIndex(state.TableProjectWeeks), snap.TableIndex(state.TableClaimsTime))
}

// all returns what everybody owns, without numbers of nodes.
func (o owners) all() (list []structs.OwnerCounts) {
	if o.world == nil {
		return nil
	}
	for _, name := range o.world.Owners() {
		list = append(list, structs.OwnerCounts{Owner: name, Owned: o.world.DevicesOwned(name)})
	}
	return list
}

// stated adds what they own to the owners in a list.
func (o owners) stated(list []structs.OwnerCounts) {
	for i := range list {
		list[i].Owned = o.world.DevicesOwned(list[i].Owner)
	}
}

// mark adds to a node which of its cells and devices are bound, and by what right devices are used. It returns the node's part of
// bound cells above it.
func (o owners) mark(n *structs.TopologyNode) (above []sitePart) {
	if o.world == nil {
		return nil
	}
	m := &ownerMarks{bindings: o.world.BindingsOn(n.ID), of: map[string]int{}, node: n}
	for i := range m.bindings {
		for _, id := range m.bindings[i].Devices {
			m.of[id] = i
		}
	}
	m.cell(n.Cells)
	for i, b := range m.bindings {
		devices := 0
		for _, id := range b.Devices {
			if m.of[id] == i {
				devices++
			}
		}
		if b.Site && devices > 0 {
			above = append(above, sitePart{ownerOf(&m.bindings[i]), b.Level, devices})
		}
	}
	return above
}

// sitePart is a node's part of a bound cell above nodes.
type sitePart struct {
	structs.CellOwner
	level   string
	devices int
}

// siteOwners are the owners of cells above nodes by the cells' IDs, with how many devices are bound so.
type siteOwners map[string]*sitePart

// add adds the part of a node that is in a cell.
func (s siteOwners) add(site *structs.TopologySite, above []sitePart) {
	for _, part := range above {
		switch sum := s[site.ID]; {
		case part.level != site.Level:
		case sum == nil:
			s[site.ID] = &part
		case sum.CellOwner == part.CellOwner:
			sum.devices += part.devices
		default:
			sum.CellOwner = structs.CellOwner{} // of several kinds of devices, with an owner each
		}
	}
}

// mark marks the cells of which all devices are bound so.
func (s siteOwners) mark(sites []*structs.TopologySite) {
	for _, site := range sites {
		if sum := s[site.ID]; sum != nil && sum.devices == site.Devices {
			site.CellOwner = sum.CellOwner
		}
	}
}

// ownerMarks marks the cells of a node.
type ownerMarks struct {
	bindings []scheduler.NodeBinding
	of       map[string]int // the binding that a device is of
	node     *structs.TopologyNode
}

// What the devices of a cell are of, beside the number of a binding.
const (
	noDevices = -1
	various   = -2 // of several bindings, or some of none
)

func (m *ownerMarks) add(more structs.OwnerCounts) {
	m.node.Owners = structs.MergeOwner(m.node.Owners, more)
}

// cell marks a cell with all that is in it. It returns the binding that all of its devices are of.
func (m *ownerMarks) cell(c *structs.CellView) int {
	all := noDevices
	join := func(one int) {
		switch {
		case one == noDevices || one == all:
		case all == noDevices:
			all = one
		default:
			all = various
		}
	}
	for _, kid := range c.Cells {
		join(m.cell(kid))
	}
	for _, d := range c.Members {
		one := m.device(d)
		if d.Device != "" { // else the node does not report it any more
			join(one)
		}
	}
	if all < 0 {
		return all
	}
	if b := &m.bindings[all]; b.Level == c.Level || b.Site && c == m.node.Cells {
		c.CellOwner = ownerOf(b)
	}
	return all
}

func ownerOf(b *scheduler.NodeBinding) structs.CellOwner {
	return structs.CellOwner{Owner: b.Owner, Pinned: b.Pinned, Away: b.Away}
}

// device marks a device. It returns the binding that it is of.
func (m *ownerMarks) device(d *structs.DeviceView) int {
	guaranteed := map[string]bool{}
	for _, u := range d.Usages {
		if u.Class == "" {
			u.Class = structs.ClassOpportunistic
		}
		if u.Class == structs.ClassGuaranteed && !guaranteed[u.Namespace] {
			guaranteed[u.Namespace] = true
			m.add(structs.OwnerCounts{Owner: u.Namespace, Guaranteed: 1})
		}
	}
	i, bound := m.of[d.ID]
	if !bound {
		return various
	}
	d.CellOwner = ownerOf(&m.bindings[i])
	if d.Away {
		return i
	}
	count := structs.OwnerCounts{Owner: d.Owner, Bound: 1}
	if slices.ContainsFunc(d.Usages, func(u *structs.DeviceUsage) bool { return u.Namespace != d.Owner }) {
		d.Lent, count.Lent = true, 1
	}
	m.add(count)
	return i
}

// Package domain finds the cells that a gang may be kept under: those of a level above nodes, a node, or one within it (docs/design/semantics.md, part 2,
// "topology"). It must never place anything.
package domain

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/devicetree"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// OfSite returns the cell of a level that a node is under.
func OfSite(n *structs.Node, level structs.TopologyLevel) *feasible.Domain {
	v := n.Meta[level.Meta]
	return feasible.NewDomain(feasible.Domain{Level: level.Name, Key: level.Meta, Value: v, Name: v})
}

// OfNode returns a node as a domain.
func OfNode(n *structs.Node) *feasible.Domain {
	return feasible.NewDomain(feasible.Domain{Level: structs.LevelNode, NodeID: n.ID, Name: cmp.Or(n.Name, structs.ShortID(n.ID))})
}

// At returns the domains of a node under which a gang may be that is to be under one cell of a level there.
func At(e *world.Edit, gw *reconcile.GangWork, id, level string) []*feasible.Domain {
	n, known := world.StateOf(e, id)
	if !known || n.Node == nil {
		return nil
	}
	if KeptInCells(gw, level) {
		return CellsOf(n, level)
	}
	return []*feasible.Domain{OfNode(n.Node)}
}

// OfParts returns the domains, one after the other, under which a gang may be in the reservation of its workflow, that of the node which is assigned to
// its next instance first; nil is anywhere. With each, the input's assigned nodes are as they were, since a try uses them up.
func OfParts(e *world.Edit, in *search.Input, gw *reconcile.GangWork, own *structs.WorkflowClaim) iter.Seq[*feasible.Domain] {
	assigned := in.Assigned
	return func(yield func(*feasible.Domain) bool) {
		for _, d := range ofParts(e, in, gw, own) {
			if in.Assigned = maps.Clone(assigned); !yield(d) {
				return
			}
		}
	}
}

func ofParts(e *world.Edit, in *search.Input, gw *reconcile.GangWork, own *structs.WorkflowClaim) (list []*feasible.Domain) {
	want := gw.Spec.Topology
	if want == nil {
		return []*feasible.Domain{nil}
	}
	level, _, site := SiteLevel(&in.Config, want.Level)
	for _, id := range assignedFirst(in, gw, own) {
		n, known := world.StateOf(e, id)
		switch {
		case !site:
			list = append(list, leastLacking(n, gw, At(e, gw, id, want.Level))...)
		case known && n.Node != nil:
			d := OfSite(n.Node, level)
			if !slices.ContainsFunc(list, func(o *feasible.Domain) bool { return o.Value == d.Value }) {
				list = append(list, d)
			}
		}
	}
	if !want.Required {
		list = append(list, nil)
	}
	return list
}

// leastLacking orders cells within a node: where the members of a gang lack the fewest devices first, so that the fewest leave for them.
func leastLacking(n *world.NodeState, gw *reconcile.GangWork, cells []*feasible.Domain) []*feasible.Domain {
	if len(cells) < 2 {
		return cells
	}
	need := int64(0)
	for _, work := range gw.Works {
		need += int64(len(work.Place) * feasible.NeedsOf(work.Group).Devices)
	}
	requests, m := DeviceRequests(gw), feasible.NewMatcher()
	lacks := map[*feasible.Domain]int64{} // looked up only
	for _, d := range cells {
		lacks[d] = max(0, need-FreeIn(d, n, requests, m))
	}
	slices.SortStableFunc(cells, func(a, b *feasible.Domain) int { return cmp.Compare(lacks[a], lacks[b]) })
	return cells
}

// assignedFirst returns the nodes of a reservation in its order, after that which is assigned to the next instance of a gang.
func assignedFirst(in *search.Input, gw *reconcile.GangWork, own *structs.WorkflowClaim) (nodes []string) {
	for i := range own.Parts {
		nodes = append(nodes, own.Parts[i].NodeID)
	}
	for _, work := range gw.Works {
		if of := in.Assigned[work.Group.Name]; len(of) > 0 {
			if at := slices.Index(nodes, of[0]); at >= 0 {
				return slices.Insert(slices.Delete(nodes, at, at+1), 0, of[0])
			}
		}
	}
	return nodes
}

// NewCell makes the domain of a cell within a node.
func NewCell(level, id string, n *structs.Node, devices map[string]bool) *feasible.Domain {
	above := OfNode(n)
	return feasible.NewDomain(feasible.Domain{Level: level, NodeID: n.ID, Name: id + " of " + above.Name, Devices: devices, Above: above})
}

// CellsOf returns the cells of a level within a node, in the order in which it reports them.
func CellsOf(n *world.NodeState, level string) (out []*feasible.Domain) {
	if n.Node == nil || n.Capacity == nil || n.Node.NodeResources == nil {
		return nil
	}
	b := devicetree.NewBuilder(n.Node.NodeResources)
	var collect func(c *structs.TopologyCell, into map[string]bool)
	collect = func(c *structs.TopologyCell, into map[string]bool) {
		for _, id := range c.Devices {
			into[id] = true
		}
		for _, kid := range b.Kids[c.ID] {
			collect(kid, into)
		}
	}
	seen := map[string]bool{}
	for _, c := range b.Cells {
		if c.Level != level {
			continue
		}
		devices := map[string]bool{}
		collect(c, devices)
		for id := range devices { // into a set: the order cannot show
			seen[id] = true
		}
		out = append(out, NewCell(level, c.ID, n.Node, devices))
	}
	for _, t := range n.Capacity.Trees { // a device may be a cell of the level itself
		for i, id := range t.IDs {
			if !seen[id] && t.Layout.Common([]int{i}) == level {
				out = append(out, NewCell(level, id, n.Node, map[string]bool{id: true}))
			}
		}
	}
	return out
}

// DeviceRequests returns the device requests of the members of a gang that are to be placed.
func DeviceRequests(gw *reconcile.GangWork) (requests []feasible.DeviceRequest) {
	for _, work := range gw.Works {
		if len(work.Place) == 0 {
			continue
		}
		for _, t := range work.Group.Tasks {
			requests = append(requests, feasible.DeviceRequests(t)...)
		}
	}
	return requests
}

// KeptInCells reports whether a level is one that the devices of the gang are kept under, below
// that of nodes.
func KeptInCells(gw *reconcile.GangWork, level string) bool {
	return level != structs.LevelNode && len(DeviceRequests(gw)) > 0
}

// FreeIn counts the free devices under a cell that the gang may request.
func FreeIn(d *feasible.Domain, n *world.NodeState, requests []feasible.DeviceRequest, m *feasible.Matcher) (free int64) {
	for at, t := range n.Capacity.Trees {
		for i, id := range t.IDs {
			matches := func(a feasible.DeviceRequest) bool {
				return (a.Vendor == "" || a.Vendor == t.Vendor) && a.Kind == t.Kind && a.Matches(m, t.Groups[i])
			}
			if d.Devices[id] && n.Cells[at].FreeShare(i) >= world.WholeDevice && slices.ContainsFunc(requests, matches) {
				free++
			}
		}
	}
	return free
}

// CellRoom is a cell with how many devices of it are free.
type CellRoom struct {
	*feasible.Domain
	Free int64
}

// RoomsOf returns the cells of a level within a node: those with least room first, so that large
// ones survive.
func RoomsOf(gw *reconcile.GangWork, n *world.NodeState, level string, m *feasible.Matcher) (out []CellRoom) {
	requests := DeviceRequests(gw)
	for _, d := range CellsOf(n, level) {
		out = append(out, CellRoom{d, FreeIn(d, n, requests, m)})
	}
	slices.SortStableFunc(out, func(a, b CellRoom) int { return cmp.Compare(a.Free, b.Free) })
	return out
}

package claim

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// View is what has become of what an owner owns.
type View struct {
	Cells []*structs.CellStatus
	// Bound are the bound cells, only if they were requested.
	Bound             []*structs.BoundCell
	GuaranteedGPUs    int
	OpportunisticGPUs int
}

// Views returns what has become of what owners own, by owner; of one alone if it is named. Bound cells are listed if details
// are requested.
func Views(w *world.World, owner string, details bool) map[string]*View {
	v := claimViews{w: w, owner: owner, details: details, of: map[string]*View{}}
	if owner != "" {
		v.of[owner] = &View{Cells: []*structs.CellStatus{}} // it may own nothing
	}
	v.claims()
	for _, u := range world.Usages(w).All {
		of := v.of[u.Owner.Namespace]
		switch {
		case of == nil || len(u.Devices) == 0:
		case u.Claims():
			of.GuaranteedGPUs += len(u.Devices)
		case u.Guaranteed(): // by slots of a project
		default:
			of.OpportunisticGPUs += len(u.Devices)
		}
	}
	for _, c := range world.Workflows(w).All {
		if of := v.of[c.Namespace]; of != nil && c.Posted {
			for i := range c.Parts {
				if p := &c.Parts[i]; !p.Lost { // in cells of the namespace or beside them
					of.GuaranteedGPUs += p.Devices
				}
			}
		}
	}
	return v.of
}

// Given returns what an owner was given, a line for each kind, without who uses it.
func Given(w *world.World, owner string) []*structs.CellStatus {
	v := claimViews{w: w}
	return v.given(owner, w.Quotas(owner))
}

// claims shows what is owned and bound.
func (v *claimViews) claims() {
	for _, name := range v.w.Owners() {
		if v.owner == "" || v.owner == name {
			v.of[name] = &View{Cells: v.given(name, v.w.Quotas(name))}
		}
	}
	for key, c := range v.w.Chains {
		c.Bindings(func(b cells.Binding, away bool) bool {
			if of := v.of[b.Owner]; of != nil {
				v.bound(of, key, c, b, away)
			}
			return true
		})
	}
}

type claimViews struct {
	w       *world.World
	owner   string
	details bool
	of      map[string]*View
}

// given lists what an owner was given, a line for each kind.
func (v *claimViews) given(owner string, quotas []world.Quota) (list []*structs.CellStatus) {
	for _, d := range world.QuotaSums(quotas) {
		line := &structs.CellStatus{Kind: d.Chain.Kind(), NodePool: d.Chain.Pool, Level: d.Level, Size: d.Size, Given: d.Count}
		c, known := v.w.Chain(d.Chain)
		if !known {
			line.Doomed = d.Count
			list = append(list, line)
			continue
		}
		k, ok := c.KindOf(d.Level, d.Size)
		if ok {
			a := c.Account(owner, k)
			line.Bound, line.Doomed = a.Bound, a.Doomed+a.Away
			line.GPUs = d.Count * c.Devices(k)
		}
		list = append(list, line)
	}
	return list
}

// bound adds a bound cell.
func (v *claimViews) bound(of *View, key world.ChainKey, c *cells.Chain, b cells.Binding, away bool) {
	is := &structs.BoundCell{Kind: key.Kind(), Level: c.LevelName(b.Kind), NodeID: b.Cell.Node, Pinned: b.Pinned, Away: away}
	name := ""
	c.NodesOf(b.Cell, func(id string) bool {
		n, known := v.w.State(id)
		if !known || n.Node == nil {
			return true
		}
		name = n.Node.Name
		for _, t := range n.Capacity.Trees {
			if chain, ok := world.ChainOf(n.Node, t); ok && chain == key {
				v.uses(is, n, t, c, b)
			}
		}
		return true
	})
	is.Cell = c.CellName(b.Cell, b.Kind, name)
	for _, line := range of.Cells {
		if line.Kind == is.Kind && line.NodePool == key.Pool && line.Level == is.Level && line.Size == b.Kind.Size {
			line.GPUsUsed += is.Used
			line.Lent += is.Lent
			if is.Bad && !away {
				line.Bad++
			}
		}
	}
	if v.details {
		of.Bound = append(of.Bound, is)
	}
}

// uses adds who uses the part of a bound cell that is on a node.
func (v *claimViews) uses(is *structs.BoundCell, n *world.NodeState, t *world.DeviceTree, c *cells.Chain, b cells.Binding) {
	mask := c.Mask(len(c.Levels())-1, 0)
	if b.Cell.Site == "" {
		mask = c.Mask(b.Kind.Level, b.Cell.Index)
	}
	for _, i := range t.Sick {
		is.Bad = is.Bad || mask&(1<<i) != 0
	}
	level, lent := c.LevelName(b.Kind), uint64(0)
	for _, u := range n.Usages {
		part := world.DeviceMask(t, u) & mask
		terms := &u.Owner.Terms
		switch {
		case part == 0:
		case u.UsesCells() && u.CellOwner() != b.Owner, !u.UsesCells() && u.Owner.Namespace != b.Owner:
			lent |= part
			is.Borrowers = append(is.Borrowers, u.ID)
		case u.UsesCells() && terms.CellLevel == level && terms.CellSize == b.Kind.Size:
			is.Used += world.Count(part)
			is.Allocs = append(is.Allocs, u.ID)
		}
	}
	is.Lent += world.Count(lent)
	v.reserved(is, n, t, mask, b)
}

// reserved adds which workflows have reserved the part of a bound cell that is on a node.
func (v *claimViews) reserved(is *structs.BoundCell, n *world.NodeState, t *world.DeviceTree, mask uint64, b cells.Binding) {
	for _, p := range n.Parts() {
		c := v.w.Workflow(p.Workflow)
		if level, size := p.Cells(); c == nil || level != is.Level || size != b.Kind.Size || c.Namespace != b.Owner {
			continue
		}
		part := world.DeviceMask(t, &world.Usage{Devices: world.WholeDevices(p.Devices)}) & mask
		if part == 0 {
			continue
		}
		is.Used += world.Count(part)
		if !slices.Contains(is.Workflows, c.ID) {
			is.Workflows = append(is.Workflows, c.ID)
		}
	}
}

// Uses returns how many allocations of an owner use its cells, and the one of them with the first ID.
func Uses(w *world.World, owner string) (n int, first string) {
	for id, u := range world.Usages(w).All { // by ID
		if u.Claims() && u.Owner.Namespace == owner {
			if n++; first == "" {
				first = id
			}
		}
	}
	return n, first
}

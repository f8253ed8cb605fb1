package world

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// ClaimView is what has become of what an owner owns.
type ClaimView struct {
	Cells []*structs.CellStatus
	// Bound are the bound cells, only if they were requested.
	Bound             []*structs.BoundCell
	GuaranteedGPUs    int
	OpportunisticGPUs int
}

// ClaimViews returns what has become of what owners own, by owner; of one alone if it is named. Bound cells are listed if details
// are requested.
func (w *World) ClaimViews(owner string, details bool) map[string]*ClaimView {
	v := claimViews{w: w, owner: owner, details: details, of: map[string]*ClaimView{}}
	if owner != "" {
		v.of[owner] = &ClaimView{Cells: []*structs.CellStatus{}} // it may own nothing
	}
	v.claims()
	for _, u := range w.allocs.All {
		of := v.of[u.Owner.Namespace]
		switch {
		case of == nil || len(u.Devices) == 0:
		case u.claimed():
			of.GuaranteedGPUs += len(u.Devices)
		default:
			of.OpportunisticGPUs += len(u.Devices)
		}
	}
	return v.of
}

// claims shows what is owned and bound.
func (v *claimViews) claims() {
	if v.w.claims == nil {
		return
	}
	for name, quotas := range v.w.claims.quotas.All {
		if v.owner == "" || v.owner == name {
			v.of[name] = &ClaimView{Cells: v.given(name, quotas)}
		}
	}
	for key, c := range v.w.claims.chains.All {
		c.Bindings(func(b cells.Binding, away bool) bool {
			if of := v.of[b.Owner]; of != nil {
				v.bound(of, key, c, b, away)
			}
			return true
		})
	}
}

type claimViews struct {
	w       *World
	owner   string
	details bool
	of      map[string]*ClaimView
}

// given lists what an owner was given, a line for each kind.
func (v *claimViews) given(owner string, quotas []Quota) (list []*structs.CellStatus) {
	for _, d := range quotaChanges(nil, quotas) {
		line := &structs.CellStatus{Kind: d.Chain.kind(), NodePool: d.Chain.Pool, Level: d.Level, Size: d.Size, Given: d.Count}
		c, known := v.w.claims.chains.Get(d.Chain)
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

// kind returns the key's kind as files have it, without the tree.
func (k ChainKey) kind() string { return k.Vendor + "/" + k.Type + "/" + k.Model }

// bound adds a bound cell.
func (v *claimViews) bound(of *ClaimView, key ChainKey, c *cells.Chain, b cells.Binding, away bool) {
	is := &structs.BoundCell{Kind: key.kind(), Level: c.LevelName(b.Kind), NodeID: b.Cell.Node, Pinned: b.Pinned, Away: away}
	name := ""
	c.NodesOf(b.Cell, func(id string) bool {
		n, known := v.w.nodes.Get(id)
		if !known || n.Node == nil {
			return true
		}
		name = n.Node.Name
		for _, t := range n.Capacity.Trees {
			if chain, ok := ChainOf(n.Node, t); ok && chain == key {
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
func (v *claimViews) uses(is *structs.BoundCell, n *NodeState, t *DeviceTree, c *cells.Chain, b cells.Binding) {
	mask := c.Mask(len(c.Levels())-1, 0)
	if b.Cell.Site == "" {
		mask = c.Mask(b.Kind.Level, b.Cell.Index)
	}
	for _, i := range t.Sick {
		is.Bad = is.Bad || mask&(1<<i) != 0
	}
	level, lent := c.LevelName(b.Kind), uint64(0)
	for _, u := range n.Usages {
		part := DeviceMask(t, u) & mask
		terms := &u.Owner.Terms
		switch {
		case part == 0:
		case u.Owner.Namespace != b.Owner:
			lent |= part
			is.Borrowers = append(is.Borrowers, u.ID)
		case u.claimed() && terms.CellLevel == level && terms.CellSize == b.Kind.Size:
			is.Used += Count(part)
			is.Allocs = append(is.Allocs, u.ID)
		}
	}
	is.Lent += Count(lent)
}

// GuaranteedUses returns how many allocations of an owner use its cells, and one of them.
func (w *World) GuaranteedUses(owner string) (n int, first string) {
	if w.claims == nil {
		return 0, ""
	}
	for id, u := range w.allocs.All {
		if u.claimed() && u.Owner.Namespace == owner {
			if n++; first == "" || strings.Compare(id, first) < 0 {
				first = id
			}
		}
	}
	return n, first
}

// AllocLacksClaim returns why an allocation cannot use the claim that it names; "" if it can, or names none.
func (e *Edit) AllocLacksClaim(a *structs.Allocation) string {
	of := NewOwner(RequestName{a.Namespace, a.JobID, a.TaskGroup}, a.AllocatedResources)
	return ClaimLacks(e, NewUse(a.ID, a.NodeID, of, a.AllocatedResources, a.CreateTime))
}

// Owners returns who owns cells, in the order of their names.
func (w *World) Owners() (names []string) {
	if w.claims != nil {
		for name := range w.claims.quotas.All {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// claimedUse is what an allocation uses of what its namespace owns.
type claimedUse struct {
	alloc   *structs.Allocation
	terms   *structs.AllocTerms
	devices []claimedDevice
}

// claimedDevice is a device and its vendor/type/model.
type claimedDevice struct{ id, model string }

// ownedKind names the cells of an owner that count together. Nodes of one model with several trees are not distinguished.
type ownedKind struct {
	owner, pool, model, level string
	size                      int
}

// claim adds what an allocation uses by a claim on cells.
func (n *node) claim(a *structs.Allocation) {
	r := a.AllocatedResources
	if r == nil || r.Shared.Terms == nil || r.Shared.Terms.Claim != structs.ClaimCells {
		return
	}
	use := claimedUse{alloc: a, terms: r.Shared.Terms}
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		for _, d := range r.Tasks[name].Devices {
			for _, id := range d.DeviceIDs {
				use.devices = append(use.devices, claimedDevice{id, d.Vendor + "/" + d.Type + "/" + d.Name})
			}
		}
	}
	n.claimed = append(n.claimed, use)
}

// checkClaims counts the cells in guaranteed use from the rows alone: no owner uses more cells of a kind than it owns, and no device
// lies in cells that two owners use. Cells with a node that is not ready are left out, and so are those above nodes that have not the size
// that is claimed: they are unbound, and the allocations on all of their nodes run on.
func (c *checker) checkClaims() {
	c.findSites()
	used := map[ownedKind]map[string]bool{} // the cells' names
	for _, id := range c.nodeIDs {
		n := c.nodes[id]
		if n.spec == nil || n.spec.NodeResources == nil || !n.spec.Ready() {
			continue
		}
		owners := map[string]string{} // by device
		for _, u := range n.claimed {
			for _, d := range u.devices {
				kind := ownedKind{u.alloc.Namespace, cmp.Or(n.spec.NodePool, structs.DefaultNodePool), d.model, u.terms.CellLevel, u.terms.CellSize}
				name, devices := c.cellOf(n.spec, d.id, u.terms)
				if name == "" {
					continue
				}
				if used[kind] == nil {
					used[kind] = map[string]bool{}
				}
				used[kind][name] = true
				for _, in := range devices {
					if other := cmp.Or(owners[in], kind.owner); other != kind.owner {
						c.fault(structs.CheckClaims, "node", id, "device %s lies in cells that %s and %s use by their claims", in, other, kind.owner)
					}
					owners[in] = kind.owner
				}
			}
		}
	}
	for v := range c.snap.VirtualClusters(nil).List("", false) {
		for i := range v.Claims {
			claim := &v.Claims[i]
			if claim.Waits {
				continue
			}
			kind := ownedKind{v.Name, claim.NodePool, claim.Kind(), claim.Level, claim.Size}
			for _, name := range slices.Sorted(maps.Keys(used[kind]))[:min(claim.Count, len(used[kind]))] {
				delete(used[kind], name)
			}
		}
	}
	order := func(a, b ownedKind) int {
		return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.pool, b.pool), strings.Compare(a.model, b.model), strings.Compare(a.level, b.level), cmp.Compare(a.size, b.size))
	}
	for _, kind := range slices.SortedFunc(maps.Keys(used), order) {
		if n := len(used[kind]); n > 0 {
			c.fault(structs.CheckClaims, "virtual cluster", kind.owner, "%d cells of level %s of %s more are in guaranteed use than it owns in node pool %s", n, kind.level, kind.model, kind.pool)
		}
	}
}

// siteNodes counts the nodes of a cell above nodes.
type siteNodes struct{ ready, others int }

// findSites counts the nodes of all cells above nodes.
func (c *checker) findSites() {
	config := c.snap.SchedulerConfig(nil)
	c.levels, c.sites = config.SiteLevels(), map[string]siteNodes{}
	for _, id := range c.nodeIDs {
		n := c.nodes[id].spec
		if n == nil || n.NodeResources == nil {
			continue
		}
		for at := range c.levels {
			if name := siteName(n, c.levels[at:]); name != "" {
				of := c.sites[name]
				if n.Ready() {
					of.ready++
				} else {
					of.others++
				}
				c.sites[name] = of
			}
		}
	}
}

// siteName returns the name of the cell of the first of some levels that a node lies in; "": of none. Only nodes of one pool whose
// devices stand in equal trees lie in one cell.
func siteName(n *structs.Node, levels []structs.TopologyLevel) string {
	if n.Meta[levels[0].Meta] == "" {
		return ""
	}
	var b strings.Builder
	for _, l := range levels {
		fmt.Fprintf(&b, "%s:%q ", l.Name, n.Meta[l.Meta])
	}
	fmt.Fprintf(&b, "in pool %s of", cmp.Or(n.NodePool, structs.DefaultNodePool))
	place := map[string]int{} // of a device
	for _, g := range n.NodeResources.Devices {
		fmt.Fprintf(&b, " %s/%s/%s", g.Vendor, g.Type, g.Name)
		for _, d := range g.Instances {
			place[d.ID] = len(place)
			if d.Locality != nil {
				fmt.Fprintf(&b, " %d.%d", d.Locality.Socket, d.Locality.Switch)
			} else {
				b.WriteString(" -")
			}
		}
	}
	if tree := n.NodeResources.Topology; tree != nil {
		for _, cell := range tree.Cells {
			parent := slices.IndexFunc(tree.Cells, func(o *structs.TopologyCell) bool { return o.ID == cell.Parent })
			fmt.Fprintf(&b, " %s in %d", cell.Level, parent)
			for _, d := range cell.Devices {
				fmt.Fprintf(&b, " %d", place[d])
			}
		}
		for _, l := range tree.Links {
			fmt.Fprintf(&b, " %d-%d %d", place[l.A], place[l.B], l.Lanes)
		}
	}
	return b.String()
}

// cellOf returns the name of the cell that a device lies in, of the level that its allocation uses, and the node's devices in it. The
// name is empty if there is none, or it is not bound as it is now.
func (c *checker) cellOf(n *structs.Node, device string, terms *structs.AllocTerms) (name string, devices []string) {
	switch {
	case terms.CellLevel == structs.LevelMIG:
		return device, []string{device}
	case terms.CellSize > 0:
		if at := slices.IndexFunc(c.levels, func(l structs.TopologyLevel) bool { return l.Name == terms.CellLevel }); at >= 0 {
			if name := siteName(n, c.levels[at:]); c.sites[name] == (siteNodes{ready: terms.CellSize}) {
				return name, allDevices(n)
			}
		}
		return "", nil
	case terms.CellLevel == structs.LevelNode:
		return n.ID, allDevices(n)
	}
	tree := n.NodeResources.Topology
	if tree == nil {
		tree = &structs.NodeTopology{}
	}
	for _, leaf := range tree.Cells {
		if !slices.Contains(leaf.Devices, device) {
			continue
		}
		for at := leaf; at != nil; at = cellNamed(tree, at.Parent) {
			if at.Level == terms.CellLevel {
				return n.ID + "/" + at.ID, devicesBelow(tree, at)
			}
		}
	}
	if terms.CellLevel == structs.LevelGPU { // a GPU that is not divided has no vertex of its own
		return device, []string{device}
	}
	return "", nil
}

func cellNamed(tree *structs.NodeTopology, id string) *structs.TopologyCell {
	if i := slices.IndexFunc(tree.Cells, func(c *structs.TopologyCell) bool { return c.ID == id }); id != "" && i >= 0 {
		return tree.Cells[i]
	}
	return nil
}

func devicesBelow(tree *structs.NodeTopology, cell *structs.TopologyCell) []string {
	devices := slices.Clone(cell.Devices)
	for _, c := range tree.Cells {
		if c.Parent == cell.ID {
			devices = append(devices, devicesBelow(tree, c)...)
		}
	}
	return devices
}

func allDevices(n *structs.Node) (devices []string) {
	for _, g := range n.NodeResources.Devices {
		for _, d := range g.Instances {
			devices = append(devices, d.ID)
		}
	}
	return devices
}

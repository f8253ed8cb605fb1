package world

import (
	"math/bits"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
)

// NodeBinding is the part of a bound cell that is on one node.
type NodeBinding struct {
	Owner   string
	Level   string // of the cell
	Site    bool   // the cell is above nodes
	Pinned  bool
	Away    bool     // the cell is not ready, and not bound until it is
	Devices []string // IDs
}

// BindingsOn returns the bound cells that a node has a part in. Those that are away come first: another binding may be of the same
// devices meanwhile.
func (w *World) BindingsOn(nodeID string) (list []NodeBinding) {
	n, known := w.nodes.Get(nodeID)
	if w.claims == nil || !known {
		return nil
	}
	keys, trees := NodeChains(n.Node, n.Capacity)
	for i, key := range keys {
		c, found := w.claims.chains.Get(key)
		if !found {
			continue
		}
		add := func(b cells.Binding, devices uint64, away bool) {
			is := NodeBinding{Owner: b.Owner, Level: c.LevelName(b.Kind), Site: b.Cell.Site != "", Pinned: b.Pinned, Away: away}
			for at, id := range trees[i].IDs {
				if devices&(1<<at) != 0 {
					is.Devices = append(is.Devices, id)
				}
			}
			list = append(list, is)
		}
		c.AwayOn(nodeID, func(b cells.Binding, devices uint64) { add(b, devices, true) })
		c.BoundOn(nodeID, func(b cells.Binding, devices uint64) { add(b, devices, false) })
	}
	return list
}

// DevicesOwned returns how many devices the cells of an owner have, those included that the hardware cannot hold at present. Cells
// of a kind that no node is of count as none.
func (w *World) DevicesOwned(owner string) (devices int) {
	for _, q := range w.Quotas(owner) {
		if c, known := w.Chain(q.Chain); known {
			if k, ok := c.KindOf(q.Level, q.Size); ok {
				devices += q.Count * c.Devices(k)
			}
		}
	}
	return devices
}

// OwnerKind is an owner with a kind of devices of a pool.
type OwnerKind struct {
	Owner    string
	NodePool string
	Kind     string // vendor/type/model
}

// OpportunisticDevices returns how many devices of each kind those who own cells use without a claim, in whole or in part. It walks all nodes.
func (w *World) OpportunisticDevices() map[OwnerKind]int {
	out := map[OwnerKind]int{}
	if w.claims == nil {
		return out
	}
	for _, n := range w.nodes.All {
		if n.Node == nil || n.Capacity == nil {
			continue
		}
		for _, t := range n.Capacity.Trees {
			for owner, mask := range n.opportunisticOn(w, t) { // order does not matter: each is added by itself
				for ; mask != 0; mask &= mask - 1 {
					d := t.Groups[bits.TrailingZeros64(mask)]
					out[OwnerKind{owner, n.Node.NodePool, strings.Join([]string{d.Vendor, d.Type, d.Name}, "/")}]++
				}
			}
		}
	}
	return out
}

// opportunisticOn returns which devices of a tree owners use without a claim, by owner.
func (n *NodeState) opportunisticOn(w *World, t *DeviceTree) (used map[string]uint64) {
	for _, u := range n.Usages {
		if len(u.Devices) == 0 || u.Guaranteed() || !w.Owns(u.Owner.Namespace) {
			continue
		}
		if mask := DeviceMask(t, u); mask != 0 {
			if used == nil {
				used = map[string]uint64{}
			}
			used[u.Owner.Namespace] |= mask
		}
	}
	return used
}

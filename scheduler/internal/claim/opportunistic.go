package claim

import (
	"math/bits"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// OwnerKind is an owner with a kind of devices of a pool.
type OwnerKind struct {
	Owner    string
	NodePool string
	Kind     string // vendor/type/model
}

// OpportunisticDevices returns how many devices of each kind those who own cells use without a claim, in whole or in part. It walks all nodes.
func OpportunisticDevices(w *world.World) map[OwnerKind]int {
	out := map[OwnerKind]int{}
	if len(w.Owners()) == 0 {
		return out
	}
	for _, n := range world.NodeStates(w).All {
		if n.Node == nil || n.Capacity == nil {
			continue
		}
		for _, t := range n.Capacity.Trees {
			for owner, mask := range opportunisticOn(w, n, t) { // order does not matter: each is added by itself
				for ; mask != 0; mask &= mask - 1 {
					d := t.Groups[bits.TrailingZeros64(mask)]
					out[OwnerKind{owner, n.Node.NodePool, strings.Join([]string{d.Vendor, d.Type, d.Name}, "/")}]++
				}
			}
		}
	}
	return out
}

// opportunisticOn returns which devices of a tree of a node owners use without a claim, by owner.
func opportunisticOn(w *world.World, n *world.NodeState, t *world.DeviceTree) (used map[string]uint64) {
	for _, u := range n.Usages {
		if len(u.Devices) == 0 || u.Guaranteed() || !w.Owns(u.Owner.Namespace) {
			continue
		}
		if mask := world.DeviceMask(t, u); mask != 0 {
			if used == nil {
				used = map[string]uint64{}
			}
			used[u.Owner.Namespace] |= mask
		}
	}
	return used
}

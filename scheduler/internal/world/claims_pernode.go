package world

import (
	"errors"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
)

// System and sysbatch instances (semantics part 0, rule 7) use no claim, and no claim takes from them. The devices that they use are
// subtracted from their nodes before cells are counted, as bad devices are: a cell around them is not complete. They are not a loss of
// hardware, though: nothing is doomed for a new one. It takes, as "anything guaranteed outside a quota", only what is left when
// all that is owned has been embedded, and none of a bound cell, used or not: else it waits.

// PerNode reports whether a usage is of a system or sysbatch job, and known to be: what was placed while nobody owned anything is not.
func (u *Usage) PerNode() bool { return u.Owner.Terms.PerNode }

// Subtracted returns the devices of a tree that system and sysbatch instances use, and those that workflows have reserved beside all that is owned.
func (n *NodeState) Subtracted(t *DeviceTree) (mask uint64) {
	for _, u := range n.Usages {
		if u.PerNode() {
			mask |= DeviceMask(t, u)
		}
	}
	return mask | n.reservedBeside(t)
}

// Claimable returns what a node has for claims on cells, and how many devices: its capacity less its system and sysbatch instances and the
// processor and memory of the slots that it states, so that cells and slots never overlap.
func (w *World) Claimable(n *NodeState) (has Vector, devices int) {
	has = n.Capacity.Amount
	for _, t := range n.Capacity.Trees {
		devices += len(t.IDs) - Count(n.Subtracted(t))
	}
	for _, u := range n.Usages {
		if u.PerNode() {
			has = has.Minus(u.Amount)
		}
	}
	if n.Node != nil && n.Node.NodeResources != nil && len(n.Node.NodeResources.Slots) > 0 {
		mhz, memory := w.rules.slots.VolumeOfAll(n.Node.NodeResources)
		left := has.Minus(Vector{CPU: mhz, MemoryMB: memory})
		has.CPU, has.MemoryMB = max(left.CPU, 0), max(left.MemoryMB, 0)
	}
	return has, devices
}

// subtract moves the chains of a node on when a system or sysbatch instance came. When it went, they are moved on later, by
// ReturnDevices: until then its successor, or who preempted it, may take what it had, as that is nobody's to own yet.
func (l ledger) subtract(u *Usage) {
	if l.e.w.claims == nil || !u.PerNode() || len(u.Devices) == 0 {
		return
	}
	n, known := StateOf(l.e, u.NodeID)
	if !known || n.Node == nil {
		return
	}
	l.ownClaims()
	keys, trees := NodeChains(n.Node, n.Capacity)
	for i, key := range keys {
		if ed := ChainEdit(l.e, key); ed != nil {
			mask := notOwnable(n, trees[i])
			if was := ed.View().Bad(n.ID); was&^mask != 0 {
				mask |= was
				PutInto(&l.e.claims.freed, n.ID, true)
			}
			ed.SetBad(n.ID, mask)
		}
	}
	l.markClaims(u.NodeID)
}

// ReturnDevices counts the devices as such that can be owned that system and sysbatch instances have left.
func ReturnDevices(e *Edit) {
	if len(e.claims.freed) == 0 || e.w.claims == nil {
		return
	}
	ids := slices.Sorted(maps.Keys(e.claims.freed))
	clear(e.claims.freed)
	for _, id := range ids {
		n, known := StateOf(e, id)
		if !known || n.Node == nil {
			continue
		}
		keys, trees := NodeChains(n.Node, n.Capacity)
		for i, key := range keys {
			if ed := ChainEdit(e, key); ed != nil {
				ed.SetBad(id, notOwnable(n, trees[i]))
			}
		}
		ledger{e}.markClaims(id)
	}
}

// notOwnable returns the devices of a tree that no claim may have: bad ones, and those of system and sysbatch instances.
func notOwnable(n *NodeState, t *DeviceTree) uint64 {
	mask := n.Subtracted(t)
	for _, i := range t.Sick {
		mask |= 1 << i
	}
	return mask
}

// perNodeLacks returns why a system or sysbatch instance must not use its devices; "" if it may.
func (l ledger) perNodeLacks(u *Usage) string {
	n, known := StateOf(l.e, u.NodeID)
	if l.e.w.claims == nil || !known || n.Node == nil {
		return ""
	}
	keys, trees := NodeChains(n.Node, n.Capacity)
	for i, key := range keys {
		mask, ed := DeviceMask(trees[i], u), ChainEdit(l.e, key)
		if mask == 0 || ed == nil {
			continue
		}
		if err := ed.View().Spare(n.ID, mask); errors.Is(err, cells.ErrBound) || errors.Is(err, cells.ErrUnsafe) {
			return LacksUnowned
		}
	}
	return ""
}

// SpareDevices returns sets of a node's devices of which a system or sysbatch instance may take some, to be tried in this order: those that
// such instances use parts of, then the cells that nothing bound is in, the smallest first, so that large ones stay complete, then all of
// these. Whether what it takes leaves what all own is for ClaimLacks to say.
func SpareDevices(e *Edit, n *NodeState) (sets []map[string]bool) {
	type part struct {
		tree *DeviceTree
		mask uint64
	}
	keys, trees := NodeChains(n.Node, n.Capacity)
	var used, free, beside []part
	for i, key := range keys {
		ed := ChainEdit(e, key)
		if ed == nil {
			continue
		}
		mask := ed.View().Bad(n.ID)
		used, free = append(used, part{trees[i], mask}), append(free, part{trees[i], mask | ed.View().Available(n.ID)})
		ed.View().Maximal(ed.View().Available(n.ID), func(level, index int) {
			beside = append(beside, part{trees[i], mask | ed.View().Mask(level, index)})
		})
	}
	slices.SortStableFunc(beside, func(a, b part) int { return Count(a.mask) - Count(b.mask) })
	add := func(parts ...part) {
		set := map[string]bool{}
		for _, t := range n.Capacity.Trees {
			if slices.Contains(trees, t) {
				continue
			}
			for _, id := range t.IDs { // devices that nobody can own
				set[id] = true
			}
		}
		for _, p := range parts {
			for i, id := range p.tree.IDs {
				if p.mask&(1<<i) != 0 {
					set[id] = true
				}
			}
		}
		sets = append(sets, set)
	}
	add(used...)
	for _, p := range beside {
		add(p)
	}
	add(free...)
	return sets
}

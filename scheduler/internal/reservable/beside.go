package reservable

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Beside is what a workflow may reserve of devices beside all that is owned: as anything guaranteed outside a quota (semantics part 2, S.6) it takes from what is
// left only. A reservation lasts as long as a run, so that it must not keep what is doomed from being had again. What it takes must be left
//
//   - as everything is,
//   - if all nodes of the chain that are not ready were, and all bad devices well, and
//   - if nothing was bound then, either, where something would be doomed because it is.
//
// So no cell is doomed because of a reservation while all hardware is there and what was bound meanwhile has ended: it is as if the reservation had been made
// then. What some of the nodes alone would bring back is not looked at: a cell may be doomed until the last of them is back, as it would be if they were lost after
// the reservation was made.
type Beside struct {
	e     *world.Edit
	key   string                           // of the workflow
	keeps func(nodeID string) bool         // whether the reservation keeps the part that it has of a node
	as    map[world.ChainKey][]*cells.Edit // looked up only
}

// NewBeside returns what may be reserved on an edit by the workflow of a key. keeps reports whether its reservation keeps the part that it has of a node which is
// not ready: else that is returned with the node.
func NewBeside(e *world.Edit, key string, keeps func(nodeID string) bool) *Beside {
	return &Beside{e, key, keeps, map[world.ChainKey][]*cells.Edit{}}
}

// of returns a chain as it is, then as it would be; none: nobody owns anything of it.
func (b *Beside) of(key world.ChainKey) []*cells.Edit {
	list, known := b.as[key]
	if known {
		return list
	}
	if open := world.ChainEdit(b.e, key); open != nil {
		last := open.View().Edit()
		list = append(list, last)
		if whole := last.View().Whole(func(id string) uint64 { return b.stays(key, id) }); whole != nil {
			list, last = append(list, whole), whole
		}
		if idle := last.View().Idle(); idle != nil {
			list = append(list, idle)
		}
	}
	b.as[key] = list
	return list
}

// stays returns the devices of a node of a chain that nobody could own if all of its hardware was there.
func (b *Beside) stays(key world.ChainKey, id string) (mask uint64) {
	n, _ := world.StateOf(b.e, id) // a chain's nodes are known
	keys, trees := world.NodeChains(n.Node, n.Capacity)
	at := slices.Index(keys, key)
	if at < 0 {
		return 0
	}
	mask = n.Subtracted(trees[at])
	if p, has := n.Part(b.key); has && !p.Pending && !n.Node.Ready() && !b.keeps(id) {
		mask &^= world.DeviceMask(trees[at], &world.Usage{Devices: world.WholeDevices(p.Devices)})
	}
	return mask
}

// Free returns the devices of a node of a chain that are in no bound cell, in their maximal cells, the smallest first.
func (b *Beside) Free(key world.ChainKey, nodeID string) (list []uint64) {
	as := b.of(key)
	if len(as) == 0 {
		return nil
	}
	now := as[0].View()
	now.Maximal(now.Available(nodeID), func(level, index int) { list = append(list, now.Mask(level, index)) })
	slices.Reverse(list)
	return list
}

// Take reserves devices of a node of a chain, and reports whether they are left beside all that is owned, and would be: else nothing changes.
func (b *Beside) Take(key world.ChainKey, nodeID string, devices uint64) bool {
	as := b.of(key)
	for _, ed := range as {
		if ed.View().Spare(nodeID, devices) != nil {
			return false
		}
	}
	for _, ed := range as {
		ed.SetBad(nodeID, ed.View().Bad(nodeID)|devices)
	}
	return true
}

// takes reserves the devices of a node that are named, and returns why that cannot be; "": it can.
func (b *Beside) takes(n *world.NodeState, ids []string) string {
	keys, trees := world.NodeChains(n.Node, n.Capacity)
	for i, key := range keys {
		mask := world.DeviceMask(trees[i], &world.Usage{Devices: world.WholeDevices(ids)})
		if mask != 0 && !b.Take(key, n.ID, mask) {
			return world.LacksUnowned
		}
	}
	return ""
}

package world

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/internal/idle"
	"github.com/nomadish/nomadish/structs"
)

// OnePool is the devices of a node that are all of one tree and kind.
type OnePool struct {
	Idle idle.Devices // of Count 0: it has no such devices, or too many
	Kind uint64       // what they are; see DeviceTree.KindKey
}

func (n *NodeState) onePool() (o OnePool) {
	if n.Capacity == nil || len(n.Capacity.Trees) != 1 {
		return o
	}
	t := n.Capacity.Trees[0]
	if !t.Single || len(t.IDs) > idle.Words*idle.PerWord {
		return o
	}
	var room [idle.Words * idle.PerWord]int32
	p := Pool{0, t, t.Groups[0]}
	o.Idle.Pack(p.Idle(n.Cells[0], room[:0]))
	o.Kind = t.KindKey
	return o
}

// Pool is the devices of one tree of a node that requests cannot distinguish.
type Pool struct {
	At    int // which of the node's trees
	Tree  *DeviceTree
	Group *structs.NodeDeviceResource
}

// Pools returns the pools of a node, in order.
func (n *NodeState) Pools(yield func(Pool) bool) {
	for at, t := range n.Capacity.Trees {
		for i, group := range t.Groups {
			if !t.Single && slices.Index(t.Groups, group) != i {
				continue
			}
			if !yield(Pool{at, t, group}) {
				return
			}
			if t.Single {
				break
			}
		}
	}
}

// Idle appends what is idle of each device of a pool, most first.
func (p *Pool) Idle(cells *cell.State, to []int32) []int32 {
	for d := range p.Tree.IDs {
		if p.Tree.Single || p.Tree.Groups[d] == p.Group {
			to = append(to, int32(max(0, cells.FreeShare(d)))) // at most 1000
		}
	}
	idle.SortDescending(to)
	return to
}

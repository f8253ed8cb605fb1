package world

import (
	"hash/fnv"
	"slices"

	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/structs"
)

// What is idle of a node's devices is kept as a few numbers beside where the indexes have
// the node: least-fragmentation weighs many nodes, most of which are not in any cache.

// IdleWords of IdlePerWord devices each are kept, of idleBits each; what larger nodes have is read anew.
const (
	IdleWords   = 3
	IdlePerWord = 6
	idleBits    = 10 // 0 to 1000
)

// IdleDevices is what is idle of each of some devices, most first, in thousandths.
type IdleDevices struct {
	Count int
	Words [IdleWords]uint64
}

// OnePool is the devices of a node that are all of one tree and kind.
type OnePool struct {
	Idle IdleDevices // of Count 0: it has no such devices, or too many
	Kind uint64      // what they are; see DeviceTree.KindKey
}

func (n *NodeState) onePool() (o OnePool) {
	if n.Capacity == nil || len(n.Capacity.Trees) != 1 {
		return o
	}
	t := n.Capacity.Trees[0]
	if !t.Single || len(t.IDs) > IdleWords*IdlePerWord {
		return o
	}
	var room [IdleWords * IdlePerWord]int32
	p := Pool{0, t, t.Groups[0]}
	o.Idle.Pack(p.Idle(n.Cells[0], room[:0]))
	o.Kind = t.kindKey
	return o
}

// KindKey is the same for devices that typical requests cannot distinguish.
func KindKey(vendor, kind, name string) uint64 {
	h := fnv.New64a()
	for _, part := range [...]string{vendor, kind, name} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Pack takes what is idle, most first.
func (d *IdleDevices) Pack(idle []int32) {
	d.Count = len(idle)
	for i, share := range idle {
		d.Words[i/IdlePerWord] |= uint64(share) << (idleBits * (i % IdlePerWord)) // 0 to 1000
	}
}

// AppendTo appends what was packed.
func (d *IdleDevices) AppendTo(idle []int32) []int32 {
	for i := range d.Count {
		idle = append(idle, int32(d.Words[i/IdlePerWord]>>(idleBits*(i%IdlePerWord))&(1<<idleBits-1))) // 10 bits
	}
	return idle
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
	SortDescending(to)
	return to
}

// SortDescending sorts a few numbers that are mostly in order.
func SortDescending(list []int32) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && list[k] > list[k-1]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

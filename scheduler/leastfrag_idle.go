package scheduler

import "hash/fnv"

// What is idle of a node's devices is kept as a few numbers beside where the indexes have
// the node: least-fragmentation weighs many nodes, most of which are not in any cache.

const (
	// idleWords of idlePerWord devices each are kept; those of larger nodes are read anew.
	idleWords   = 3
	idlePerWord = 6
	idleBits    = 10 // 0 to 1000
)

// idleDevices is what is idle of each of some devices, most first, in thousandths.
type idleDevices struct {
	n     int
	words [idleWords]uint64
}

// onePool is the devices of a node that are all of one tree and kind.
type onePool struct {
	idle idleDevices // n is 0: it has no such devices, or too many
	kind uint64      // what they are; see deviceTree.kindKey
}

func (n *nodeState) onePool() (o onePool) {
	if n.has == nil || len(n.has.trees) != 1 {
		return o
	}
	t := n.has.trees[0]
	if !t.single || len(t.ids) > idleWords*idlePerWord {
		return o
	}
	var room [idleWords * idlePerWord]int32
	p := pool{0, t, t.groups[0]}
	o.idle.pack(p.idle(n.cells[0], room[:0]))
	o.kind = t.kindKey
	return o
}

// kindKey is the same for devices that typical asks cannot tell apart.
func kindKey(vendor, kind, name string) uint64 {
	h := fnv.New64a()
	for _, part := range [...]string{vendor, kind, name} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// pack takes what is idle, most first.
func (d *idleDevices) pack(idle []int32) {
	d.n = len(idle)
	for i, share := range idle {
		d.words[i/idlePerWord] |= uint64(share) << (idleBits * (i % idlePerWord)) //nolint:gosec // 0 to 1000
	}
}

// appendTo gives what was packed.
func (d *idleDevices) appendTo(idle []int32) []int32 {
	for i := range d.n {
		idle = append(idle, int32(d.words[i/idlePerWord]>>(idleBits*(i%idlePerWord))&(1<<idleBits-1))) //nolint:gosec // 10 bits
	}
	return idle
}

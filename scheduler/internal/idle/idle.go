// Package idle is what is idle of a node's devices, in a few numbers: the policy least-fragmentation weighs many nodes, most of which are
// not in any cache.
package idle

import "hash/fnv"

// Words of PerWord devices each are kept, of shareBits each; what larger nodes have is read anew.
const (
	Words     = 3
	PerWord   = 6
	shareBits = 10 // 0 to 1000
)

// Devices is what is idle of each of some devices, most first, in thousandths.
type Devices struct {
	Count int
	Words [Words]uint64
}

// Pack takes what is idle, most first.
func (d *Devices) Pack(idle []int32) {
	d.Count = len(idle)
	for i, share := range idle {
		d.Words[i/PerWord] |= uint64(share) << (shareBits * (i % PerWord)) // 0 to 1000
	}
}

// AppendTo appends what was packed.
func (d *Devices) AppendTo(idle []int32) []int32 {
	for i := range d.Count {
		idle = append(idle, int32(d.Words[i/PerWord]>>(shareBits*(i%PerWord))&(1<<shareBits-1))) // 10 bits
	}
	return idle
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

// SortDescending sorts a few numbers that are mostly in order.
func SortDescending(list []int32) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && list[k] > list[k-1]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

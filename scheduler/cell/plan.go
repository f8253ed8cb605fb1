package cell

import (
	"iter"
	"math/bits"
	"slices"
)

// A cell that is wholly free is always cut in the same way: what is taken of it depends on its
// subtree alone. So for up to wordDevices devices all cuts are made once, with the Layout, and
// finding devices only looks them up. Larger trees are cut on each call.

// tryAll is up to how many devices a vertex' cuts are found by trying all of them.
// Real switches, sockets and nodes have at most 8. Trying 2^12 takes about a
// millisecond, once.
const tryAll = 12

// within is what all devices of a choice must share.
type within struct {
	level int  // they lie under one vertex of this level or a lower one
	exact bool // and above them all is a vertex of this very level
}

// members returns the devices of a word, in order.
func members(devices uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; devices != 0; devices &= devices - 1 {
			if !yield(bits.TrailingZeros64(devices)) {
				return
			}
		}
	}
}

// rest is how many maximal cells of each size a cell leaves when cut: the measure
// of a cut. More of the largest size is better, then more of the next one.
type rest [wordDevices + 1]uint8

func (s *Layout) restOf(v int32, taken uint64) (r rest) {
	end := s.vs[v].end
	for v < end {
		if s.mask[v]&taken == 0 {
			r[s.vs[v].size()]++
			v = s.vs[v].end
		} else {
			v++
		}
	}
	return r
}

// cut is one way to cut a cell, with all that ranks it.
type cut struct {
	taken uint64
	rest  rest
	level uint8 // the lowest vertex that holds what is taken
	lanes int
}

func (s *Layout) cutOf(v int32, taken uint64) cut {
	low := s.leaf[bits.TrailingZeros64(taken)]
	for s.mask[low]&taken != taken {
		low = s.vs[low].parent
	}
	return cut{taken, s.restOf(v, taken), s.vs[low].level, s.maskLanes(taken)}
}

// better reports whether a cut ranks before another of the same cell and count: larger cells are
// left, then what is taken is closer, then more lanes join it, then its numbers are lower.
func (c *cut) better(o *cut) bool {
	if o.taken == 0 {
		return true
	}
	for size := wordDevices; size > 0; size-- {
		if c.rest[size] != o.rest[size] {
			return c.rest[size] > o.rest[size]
		}
	}
	if c.level != o.level {
		return c.level < o.level
	}
	if c.lanes != o.lanes {
		return c.lanes > o.lanes
	}
	differ := c.taken ^ o.taken
	return c.taken&(differ&-differ) != 0
}

// makePlan makes all cuts of all vertices. The rows of a vertex are one for each
// level up to its own, twice; each has its size in words.
func (s *Layout) makePlan() {
	s.mask = make([]uint64, len(s.vs))
	words := 0
	for i := range s.vs {
		v := &s.vs[i]
		s.mask[i] = (^uint64(0) >> (wordDevices - v.size())) << v.lo
		v.plan = int32(words)
		words += 2 * (int(v.level) + 1) * v.size()
	}
	s.plan = make([]uint64, words)
	for v := int32(len(s.vs)) - 1; v >= 0; v-- { // children before parents
		if s.vs[v].size() <= tryAll {
			s.planByTrying(v)
		} else {
			s.planByCarving(v)
		}
		for level := range int(s.vs[v].level) {
			s.planWithin(v, within{level, false})
			s.planWithin(v, within{level, true})
		}
	}
}

// row returns the cuts of v: row[k-1] is what k devices take, 0 if that cannot be.
func (s *Layout) row(v int32, w within) []uint64 {
	at := &s.vs[v]
	n := 2 * int(at.level) // at its own level and above, a vertex sets no limit
	if w.level < int(at.level) {
		n = 2 * w.level
		if w.exact {
			n++
		}
	}
	from := int(at.plan) + n*at.size()
	return s.plan[from : from+at.size()]
}

func (s *Layout) freely(v int32) []uint64 {
	return s.row(v, within{level: int(s.vs[v].level)})
}

func (s *Layout) planByTrying(v int32) {
	size, lo := s.vs[v].size(), s.vs[v].lo
	var best [tryAll + 1]cut
	for set := uint64(1); set < 1<<size; set++ {
		c := s.cutOf(v, set<<lo)
		if b := &best[bits.OnesCount64(set)]; c.better(b) {
			*b = c
		}
	}
	row := s.freely(v)
	for k := range row {
		row[k] = best[k+1].taken
	}
}

func (s *Layout) planByCarving(v int32) {
	row := s.freely(v)
	var devices []int
	for k := range row {
		devices = s.carve(v, k+1, devices[:0])
		for _, d := range devices {
			row[k] |= 1 << d
		}
	}
}

// planWithin plans the cuts of a vertex that lies above a level: under which of the
// vertices of that level the devices are best taken.
func (s *Layout) planWithin(v int32, w within) {
	row := s.row(v, w)
	for k := range row {
		var best cut
		for _, top := range s.topsIn(v, w) {
			if s.vs[top].size() <= k || w.exact && int(s.vs[top].level) != w.level {
				continue
			}
			if c := s.cutOf(v, s.freely(top)[k]); c.better(&best) {
				best = c
			}
		}
		row[k] = best.taken
	}
}

// topsIn returns where a level cuts the tree below v.
func (s *Layout) topsIn(v int32, w within) []int32 {
	all := s.tops[w.level].vs
	from, _ := slices.BinarySearch(all, v)
	to, _ := slices.BinarySearch(all, s.vs[v].end)
	return all[from:to]
}

// contains reports whether k devices can be cut from a wholly free v.
func (s *Layout) contains(v int32, k int, w within) bool {
	at := &s.vs[v]
	switch {
	case at.size() < k:
		return false
	case int(at.level) <= w.level:
		return !w.exact || at.above>>w.level&1 == 1
	case s.inWord():
		return s.row(v, w)[k-1] != 0
	}
	return s.topFor(v, k, w) >= 0
}

// take appends the k devices that are cut from a wholly free v, in order.
func (s *Layout) take(v int32, k int, w within, devices []int) []int {
	if s.inWord() {
		for set := s.row(v, w)[k-1]; set != 0; set &= set - 1 {
			devices = append(devices, bits.TrailingZeros64(set))
		}
		return devices
	}
	if int(s.vs[v].level) > w.level {
		v = s.topFor(v, k, w)
	}
	return s.carve(v, k, devices)
}

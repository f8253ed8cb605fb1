package bucket

import (
	"math"
	"math/bits"
)

// filter is a request made ready for columns: what it wants of the dimensions that it looks at.
type filter struct {
	n      int
	dim    [MaxDims]int
	need   [MaxDims]int64  // above 0
	lift   [MaxDims]uint64 // what lifts the lane of need to 1<<31, for two lanes
	cut    bool            // lanes cannot show whether it has what is needed
	beyond bool            // it wants of a dimension that all entries have nothing of
}

func newFilter(need *Vector, width int) (f filter) {
	for d, n := range need {
		switch {
		case n <= 0:
		case d >= width:
			f.beyond = true
		default:
			f.add(d, n)
		}
	}
	return f
}

func (f *filter) add(d int, need int64) {
	f.dim[f.n], f.need[f.n], f.lift[f.n] = d, need, lift(need)
	f.n++
	f.cut = f.cut || need > math.MaxInt32
}

// lift holds, in each half, what is added to a lane so that its highest bit shows
// whether it has what is needed, which is above 0. The sum is below 1<<32: the
// lanes of both halves are added to at once.
func lift(need int64) uint64 { return (1<<31 - uint64(lane(need))) * (1<<32 + 1) }

// without returns a filter that does not look at dimension d.
func (f *filter) without(d int) (g filter) {
	for k := range f.n {
		if f.dim[k] != d {
			g.add(f.dim[k], f.need[k])
		}
	}
	return g
}

// raise makes the filter want at least need of a dimension.
func (f *filter) raise(d int, need int64) {
	if need <= 0 {
		return // lanes do not distinguish values below 0
	}
	for k := range f.n {
		if f.dim[k] == d {
			f.need[k] = max(f.need[k], need)
			f.lift[k] = lift(f.need[k])
			f.cut = f.cut || need > math.MaxInt32
			return
		}
	}
	f.add(d, need)
}

// fits decides on exact values of dimensions whose columns start at a place.
func (f *filter) fits(c *columns, start, i int) bool {
	for k := range f.n {
		if c.at(start+f.dim[k]*fan+i) < f.need[k] {
			return false
		}
	}
	return true
}

// places is a set of places of a page, a bit each.
type places uint32

func (s places) any() bool { return s != 0 }

func (s places) has(i int) bool { return s>>i&1 != 0 }

// first is the lowest of a set that is not empty.
func (s places) first() int { return bits.TrailingZeros32(uint32(s)) }

// last is the highest of a set that is not empty.
func (s places) last() int { return bits.Len32(uint32(s)) - 1 }

// rest is the set without its first.
func (s places) rest() places { return s & (s - 1) }

// from leaves out the places below i.
func (s places) from(i int) places { return s >> i << i }

// below leaves out the places from i on.
func (s places) below(i int) places { return s & (1<<i - 1) }

// upTo leaves out the places where a column has more than limit, if its lanes show it.
func (s places) upTo(c *columns, start int, limit int64) places {
	switch {
	case limit < 0 || limit >= math.MaxInt32-1:
		return s
	default:
		return s &^ enough1((*[fan]int32)(c.lanes[start:]), lift(limit+1))
	}
}

// used returns the places of a page that are in use.
func (p *cells) used() places { return 1<<p.n - 1 }

// places returns the places whose lanes fit, of a page with the dimensions' columns from a place
// on. What does not fit is not among them; whether the others fit is to be decided on exact values.
func (f *filter) places(p *cells, start int) places {
	s := p.used()
	k := 0
	for ; k+1 < f.n; k += 2 {
		a, b := f.lanes(p, start, k), f.lanes(p, start, k+1)
		if s &= enough2(a, b, f.lift[k], f.lift[k+1]); s == 0 {
			return 0
		}
	}
	if k < f.n {
		s &= enough1(f.lanes(p, start, k), f.lift[k])
	}
	return s
}

func (f *filter) lanes(p *cells, start, k int) *[fan]int32 {
	return (*[fan]int32)(p.lanes[start+f.dim[k]*fan:])
}

// high are the bits that show of two lanes whether they are enough.
const high = 1<<31 | 1<<63

// run is eight lanes that follow each other.
type run = [8]int32

// two puts two neighbours into one number. Where they stand is constant: so they
// are read at once.
func two(a *run, i int) uint64 {
	return uint64(uint32(a[i])) | uint64(uint32(a[i+1]))<<32
}

// enough1 returns where a column has enough.
func enough1(a *[fan]int32, na uint64) places {
	var bits uint64
	for i := 0; i < fan; i += 8 {
		a := (*run)(a[i : i+8])
		bits = bits>>4 | (two(a, 0)+na)&high>>3 | (two(a, 2)+na)&high>>2 | (two(a, 4)+na)&high>>1 | (two(a, 6)+na)&high
	}
	return spreadOut(bits)
}

// enough2 returns where two columns have enough.
func enough2(a, b *[fan]int32, na, nb uint64) places {
	a0, a1, a2, a3 := (*run)(a[:8]), (*run)(a[8:16]), (*run)(a[16:24]), (*run)(a[24:])
	b0, b1, b2, b3 := (*run)(b[:8]), (*run)(b[8:16]), (*run)(b[16:24]), (*run)(b[24:])
	// The k-th bit of a group of four, of even and of odd places.
	k0 := (two(a0, 0)+na)&(two(b0, 0)+nb)&high>>12 | (two(a1, 0)+na)&(two(b1, 0)+nb)&high>>8 |
		(two(a2, 0)+na)&(two(b2, 0)+nb)&high>>4 | (two(a3, 0)+na)&(two(b3, 0)+nb)&high
	k1 := (two(a0, 2)+na)&(two(b0, 2)+nb)&high>>12 | (two(a1, 2)+na)&(two(b1, 2)+nb)&high>>8 |
		(two(a2, 2)+na)&(two(b2, 2)+nb)&high>>4 | (two(a3, 2)+na)&(two(b3, 2)+nb)&high
	k2 := (two(a0, 4)+na)&(two(b0, 4)+nb)&high>>12 | (two(a1, 4)+na)&(two(b1, 4)+nb)&high>>8 |
		(two(a2, 4)+na)&(two(b2, 4)+nb)&high>>4 | (two(a3, 4)+na)&(two(b3, 4)+nb)&high
	k3 := (two(a0, 6)+na)&(two(b0, 6)+nb)&high>>12 | (two(a1, 6)+na)&(two(b1, 6)+nb)&high>>8 |
		(two(a2, 6)+na)&(two(b2, 6)+nb)&high>>4 | (two(a3, 6)+na)&(two(b3, 6)+nb)&high
	bits := k0>>3 | k1>>2 | k2>>1 | k3
	if bits == 0 {
		return 0
	}
	return spreadOut(bits)
}

// spreadOut puts the bits of even places, which are the upper 16 of the lower half,
// and those of odd places, which are the upper 16, in order.
func spreadOut(x uint64) places {
	x = x >> 16 & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	x = (x | x<<1) & 0x5555555555555555
	return places(uint32(x) | uint32(x>>32)<<1)
}

// in returns the places of a leaf that fit, as far as lanes show.
func (f *filter) in(p *cells) places { return f.places(p, 0) }

// firstOf returns the first of a set of places that fits exactly, or n.
func (f *filter) firstOf(s places, c *columns, start, n int) int {
	for ; s.any(); s = s.rest() {
		if i := s.first(); f.fits(c, start, i) {
			return i
		}
	}
	return n
}

// lastOf returns the last of a set of places that fits exactly, or -1.
func (f *filter) lastOf(s places, c *columns, start int) int {
	for s.any() {
		i := s.last()
		if f.fits(c, start, i) {
			return i
		}
		s = s.below(i)
	}
	return -1
}

package bucket

import "math"

// filter is an ask made ready for columns: what it wants of the dimensions that
// it looks at.
type filter struct {
	n      int
	dim    [MaxDims]int
	need   [MaxDims]int64 // above 0
	lane   [MaxDims]int32 // need, cut to what a lane holds
	beyond bool           // it wants of a dimension that all entries have nothing of
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
	f.dim[f.n], f.need[f.n], f.lane[f.n] = d, need, lane(need)
	f.n++
}

// lane cuts a value to what a lane holds. An ask that fits fits also when both are cut.
func lane(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// without gives a filter that does not look at dimension d.
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
		return // a difference of numbers of unlike sign could overflow
	}
	for k := range f.n {
		if f.dim[k] == d {
			f.need[k] = max(f.need[k], need)
			f.lane[k] = lane(f.need[k])
			return
		}
	}
	f.add(d, need)
}

// fits decides on exact values. cols are the columns of dimensions 0, 1, …
func (f *filter) fits(cols []int64, i int) bool {
	for k := range f.n {
		if cols[f.dim[k]*fan+i] < f.need[k] {
			return false
		}
	}
	return true
}

// first gives the first place in [i, n) of an inner page whose maxima fit, n when
// none does. cols are the columns of maxima.
func (f *filter) first(cols []int64, i, n int) int {
	for ; i < n; i++ {
		if f.fits(cols, i) { // as most do where maxima do not help
			return i
		}
		i = firstOf(f.n, &f.dim, &f.need, cols, i, n)
		if i == n || f.fits(cols, i) {
			return i
		}
	}
	return n
}

// firstIn gives the first place in [i, n) of a leaf that fits, n when none does. It
// reads lanes, and exact values only of what fits there.
func (f *filter) firstIn(p *cells, i, n int) int {
	for ; i < n; i++ {
		i = firstOf(f.n, &f.dim, &f.lane, p.lanes, i, n)
		if i == n || f.fits(p.cols, i) {
			return i
		}
	}
	return n
}

// firstOf gives the first place in [i, n) that may fit. It looks at up to four
// columns at once without a branch each: a value below its need makes a difference
// below zero, and one such sign bit stays when differences are or-ed. A difference
// that overflows only looks like a fit: needs are above 0, so it is one of a value
// far below zero.
func firstOf[T int32 | int64](looks int, dim *[MaxDims]int, need *[MaxDims]T, cols []T, i, n int) int {
	if looks == 0 {
		return i
	}
	a := cols[dim[0]*fan+i : dim[0]*fan+n]
	if looks == 1 {
		return n - short1(a, need[0])
	}
	b := cols[dim[1]*fan+i : dim[1]*fan+n]
	if looks == 2 {
		return n - short2(a, b, need[0], need[1])
	}
	c := cols[dim[2]*fan+i : dim[2]*fan+n]
	if looks == 3 {
		return n - short3(a, b, c, need[0], need[1], need[2])
	}
	return n - short4(a, b, c, cols[dim[3]*fan+i:dim[3]*fan+n], need)
}

// short1 and the like leave out the places from the start on that are short, and
// tell how many are left. Four that are all short go at a time: their and-ed sign
// bit stays.
func short1[T int32 | int64](a []T, na T) int {
	for j, v := range a {
		if v >= na {
			return len(a) - j
		}
	}
	return 0
}

func short2[T int32 | int64](a, b []T, na, nb T) int {
	for len(a) >= 4 && len(b) >= 4 {
		w, x := (a[0]-na)|(b[0]-nb), (a[1]-na)|(b[1]-nb)
		y, z := (a[2]-na)|(b[2]-nb), (a[3]-na)|(b[3]-nb)
		if w&x&y&z >= 0 {
			break
		}
		a, b = a[4:], b[4:]
	}
	b = b[:len(a)]
	for j, v := range a {
		if (v-na)|(b[j]-nb) >= 0 {
			return len(a) - j
		}
	}
	return 0
}

func short3[T int32 | int64](a, b, c []T, na, nb, nc T) int {
	for len(a) >= 4 && len(b) >= 4 && len(c) >= 4 {
		w, x := (a[0]-na)|(b[0]-nb)|(c[0]-nc), (a[1]-na)|(b[1]-nb)|(c[1]-nc)
		y, z := (a[2]-na)|(b[2]-nb)|(c[2]-nc), (a[3]-na)|(b[3]-nb)|(c[3]-nc)
		if w&x&y&z >= 0 {
			break
		}
		a, b, c = a[4:], b[4:], c[4:]
	}
	b, c = b[:len(a)], c[:len(a)]
	for j, v := range a {
		if (v-na)|(b[j]-nb)|(c[j]-nc) >= 0 {
			return len(a) - j
		}
	}
	return 0
}

func short4[T int32 | int64](a, b, c, d []T, need *[MaxDims]T) int {
	na, nb, nc, nd := need[0], need[1], need[2], need[3]
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	for j, v := range a {
		if (v-na)|(b[j]-nb)|(c[j]-nc)|(d[j]-nd) >= 0 {
			return len(a) - j
		}
	}
	return 0
}

// firstUpTo is first, of those that have at most limit of dimension d.
func (f *filter) firstUpTo(cols []int64, i, n, d int, limit int64) int {
	for j, v := range cols[d*fan+i : d*fan+n] {
		if v <= limit && f.fits(cols, i+j) {
			return i + j
		}
	}
	return n
}

// last gives the last place in [0, n) of an inner page whose maxima fit, -1 when
// none does.
func (f *filter) last(cols []int64, n int) int {
	for n--; n >= 0 && !f.fits(cols, n); n-- {
	}
	return n
}

// lastIn gives the last place in [0, n) of a leaf that fits, -1 when none does.
func (f *filter) lastIn(p *cells, n int) int {
	if f.firstIn(p, 0, n) == n {
		return -1
	}
	return f.last(p.cols, n)
}

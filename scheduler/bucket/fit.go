package bucket

// filter is an ask made ready for columns: what it wants of the dimensions that
// it looks at.
type filter struct {
	n      int
	dim    [MaxDims]int
	need   [MaxDims]int64 // above 0
	beyond bool           // it wants of a dimension that all entries have nothing of
}

func newFilter(need *Vector, width int) (f filter) {
	for d, n := range need {
		switch {
		case n <= 0:
		case d >= width:
			f.beyond = true
		default:
			f.dim[f.n], f.need[f.n] = d, n
			f.n++
		}
	}
	return f
}

// without gives a filter that does not look at dimension d.
func (f *filter) without(d int) (g filter) {
	for k := range f.n {
		if f.dim[k] != d {
			g.dim[g.n], g.need[g.n] = f.dim[k], f.need[k]
			g.n++
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
			return
		}
	}
	f.dim[f.n], f.need[f.n] = d, need
	f.n++
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

// first gives the first place in [i, n) that fits, n when none does. It looks at
// up to four columns at once without a branch each: a value below its need makes
// a difference below zero, and one such sign bit stays when differences are
// or-ed. A difference that overflows only looks like a fit: needs are above 0, so
// it is one of a value far below zero. What passes is checked exactly.
func (f *filter) first(cols []int64, i, n int) int {
	for i < n {
		switch f.n {
		case 0:
			return i
		case 1:
			i = f.first1(cols, i, n)
		case 2:
			i = f.first2(cols, i, n)
		case 3:
			i = f.first3(cols, i, n)
		default:
			i = f.first4(cols, i, n)
		}
		if i >= n || f.fits(cols, i) {
			return i
		}
		i++
	}
	return n
}

// part gives the places [i, n) of the k-th column that the filter looks at.
func (f *filter) part(cols []int64, k, i, n int) []int64 {
	at := f.dim[k] * fan
	return cols[at+i : at+n]
}

func (f *filter) first1(cols []int64, i, n int) int {
	a, na := f.part(cols, 0, i, n), f.need[0]
	for j, v := range a {
		if v >= na {
			return i + j
		}
	}
	return n
}

// first2 and first3 leave out four places at a time that are all short: of those
// the and-ed sign bit stays.
func (f *filter) first2(cols []int64, i, n int) int {
	a, na := f.part(cols, 0, i, n), f.need[0]
	b, nb := f.part(cols, 1, i, n), f.need[1]
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
			return n - len(a) + j
		}
	}
	return n
}

func (f *filter) first3(cols []int64, i, n int) int {
	a, na := f.part(cols, 0, i, n), f.need[0]
	b, nb := f.part(cols, 1, i, n), f.need[1]
	c, nc := f.part(cols, 2, i, n), f.need[2]
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
			return n - len(a) + j
		}
	}
	return n
}

func (f *filter) first4(cols []int64, i, n int) int {
	a, na := f.part(cols, 0, i, n), f.need[0]
	b, nb := f.part(cols, 1, i, n)[:len(a)], f.need[1]
	c, nc := f.part(cols, 2, i, n)[:len(a)], f.need[2]
	d, nd := f.part(cols, 3, i, n)[:len(a)], f.need[3]
	for j, v := range a {
		if (v-na)|(b[j]-nb)|(c[j]-nc)|(d[j]-nd) >= 0 {
			return i + j
		}
	}
	return n
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

// last gives the last place in [0, n) that fits, -1 when none does.
func (f *filter) last(cols []int64, n int) int {
	found := -1
	for i := n - 1; i >= 0 && found < 0; i-- {
		if f.fits(cols, i) {
			found = i
		}
	}
	return found
}

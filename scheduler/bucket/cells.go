package bucket

import (
	"math"
	"slices"
)

// fan is how many entries or children a page holds at most. Pages of 32 keep both a
// copy (one page a level) and a search (five comparisons a page) small.
const fan = 32

// columns are numbers, fan places a column, one column after the other. A lane is
// a number cut to 31 bits, half its size. As long as all numbers are such, they
// are the lanes; else the exact ones stand beside.
type columns struct {
	lanes []int32
	wide  []int64 // nil: lanes are exact
}

// lane cuts a value to what a lane holds. A request that fits fits also when both are cut.
func lane(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// at returns a number by its column's start and its place.
func (c *columns) at(i int) int64 {
	if c.wide != nil {
		return c.wide[i]
	}
	return int64(c.lanes[i])
}

func (c *columns) set(i int, v int64) {
	l := lane(v)
	c.lanes[i] = l
	if int64(l) != v {
		c.spread()
	}
	if c.wide != nil {
		c.wide[i] = v
	}
}

// spread makes exact numbers beside the lanes.
func (c *columns) spread() {
	if c.wide != nil {
		return
	}
	c.wide = make([]int64, len(c.lanes))
	for i, l := range c.lanes {
		c.wide[i] = int64(l)
	}
}

// copy makes c, which has as many columns or more and only zeroes, a copy of q, when
// n places of each column are in use. Exact numbers that are not needed any more
// stay behind.
func (c *columns) copy(q *columns, n int) {
	copy(c.lanes, q.lanes)
	for at := 0; at < len(q.wide) && c.wide == nil; at += fan {
		for i, v := range q.wide[at : at+n] {
			if int64(q.lanes[at+i]) != v {
				c.wide = make([]int64, len(c.lanes))
				copy(c.wide, q.wide)
				break
			}
		}
	}
}

// open makes room at place i of n.
func (c *columns) open(i, n int) {
	for at := 0; at < len(c.lanes); at += fan {
		copy(c.lanes[at+i+1:at+n+1], c.lanes[at+i:at+n])
	}
	for at := 0; at < len(c.wide); at += fan {
		copy(c.wide[at+i+1:at+n+1], c.wide[at+i:at+n])
	}
}

// shut takes place i of n out.
func (c *columns) shut(i, n int) {
	for at := 0; at < len(c.lanes); at += fan {
		copy(c.lanes[at+i:at+n-1], c.lanes[at+i+1:at+n])
	}
	for at := 0; at < len(c.wide); at += fan {
		copy(c.wide[at+i:at+n-1], c.wide[at+i+1:at+n])
	}
}

// take puts count places of q, from a place on, at place to.
func (c *columns) take(to int, q *columns, from, count int) {
	if q.wide != nil {
		c.spread()
	}
	for at := 0; at < len(c.lanes); at += fan {
		copy(c.lanes[at+to:at+to+count], q.lanes[at+from:at+from+count])
	}
	for at := 0; at < len(c.wide); at += fan {
		for i := range count {
			c.wide[at+to+i] = q.at(at + from + i)
		}
	}
}

// most is the maximum of the first n places, 1 or more, of the column that starts at a place.
func (c *columns) most(at, n int) int64 {
	if c.wide != nil {
		return slices.Max(c.wide[at : at+n])
	}
	return int64(slices.Max(c.lanes[at : at+n]))
}

// mostUpTo is most, where no number is above limit.
func (c *columns) mostUpTo(at, n int, limit int64) int64 {
	if c.wide != nil {
		if slices.Contains(c.wide[at:at+n], limit) {
			return limit
		}
		return c.most(at, n)
	}
	most := int32(0)
	for _, v := range c.lanes[at : at+n] {
		if int64(v) == limit {
			return limit
		}
		most = max(most, v)
	}
	return int64(most)
}

// cells are what leaves and inner pages have in common: numbers and keys.
//
// A leaf has one column for each dimension: the exact availability. An inner page
// has one of the sizes of its children, then, for each dimension, the exact maxima
// below each child; and separators.
type cells struct {
	n int
	columns
	*names
	seps *separators // of an inner page
}

// names are the IDs of keys, with their prefixes.
type names struct {
	prefixes [fan]uint64
	ids      [fan]string
}

// separators are the keys of an inner page. Most edits change none, and so pages
// share them with their copies. There is a column for each coordinate (any value
// of that coordinate). The separator of child i is at most the keys in it, and
// above all keys in child i-1; that of child 0 is not looked at.
type separators struct {
	columns
	owner *Token
	names
	near [3 * fan]int32 // the lanes, if that is enough
}

func newSeparators(t *Token, count int) *separators {
	s := &separators{owner: t}
	if s.lanes = s.near[:0]; count*fan > cap(s.lanes) {
		s.lanes = make([]int32, 0, count*fan)
	}
	s.lanes = s.lanes[:count*fan]
	return s
}

// The columns of an inner page.
const (
	sizes  = 0
	maxima = fan // the first of them
)

// compare returns how the i-th key stands to k: below it -1, above it +1. Its coordinates stand in
// columns that start at some places.
func (p *cells) compare(c *columns, starts *[MaxDims]int, i int, k *key) int {
	for j := range k.n {
		v := c.at(starts[j] + i)
		if v < k.lo[j] {
			return -1
		}
		if v > k.hi[j] {
			return 1
		}
	}
	if k.edge != exact {
		return -int(k.edge)
	}
	return p.compareID(i, k)
}

func (p *cells) compareID(i int, k *key) int {
	if a := p.prefixes[i]; a != k.prefix {
		if a < k.prefix {
			return -1
		}
		return 1
	}
	switch id := p.ids[i]; { // strings.Compare would have the compiler think that k is kept
	case id == k.id:
		return 0
	case id < k.id:
		return -1
	}
	return 1
}

// inLeaf compares the i-th key of a leaf.
func (p *cells) inLeaf(cfg *config, i int, k *key) int {
	return p.compare(&p.columns, &cfg.leafKey, i, k)
}

// inInner compares the i-th separator of an inner page.
func (p *cells) inInner(cfg *config, i int, k *key) int {
	return p.compare(&p.seps.columns, &cfg.innerKey, i, k)
}

// above returns the first place from from on whose key is above k, n when none is. It is where an
// edit spends most of its time, and so it compares by itself.
func (p *cells) above(c *columns, starts *[MaxDims]int, from int, k *key) int {
	to := p.n
search:
	for from < to {
		mid := int(uint(from+to) / 2)
		for j := range k.n {
			v := c.at(starts[j] + mid)
			if v < k.lo[j] {
				from = mid + 1
				continue search
			}
			if v > k.hi[j] {
				to = mid
				continue search
			}
		}
		above := k.edge == before
		if k.edge == exact {
			above = p.prefixes[mid] > k.prefix || p.prefixes[mid] == k.prefix && p.ids[mid] > k.id
		}
		if above {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return from
}

// place returns the first place of a leaf whose key is above k.
func (p *cells) place(cfg *config, k *key) int {
	return p.above(&p.columns, &cfg.leafKey, 0, k)
}

// child returns the child of an inner page that k belongs to.
func (p *cells) child(cfg *config, k *key) int {
	return p.above(&p.seps.columns, &cfg.innerKey, 1, k) - 1
}

// readAhead reads a number of each line of the cache that an edit of a leaf may
// need, so that they all come at once, and not one after the other when each is
// needed. What it returns is of no use.
func (p *cells) readAhead() (sum int) {
	for at := 0; at < len(p.lanes); at += fan / 2 {
		sum += int(p.lanes[at])
	}
	for i := 0; i < p.n; i += 4 {
		sum += len(p.ids[i]) + int(p.prefixes[i])
	}
	return sum
}

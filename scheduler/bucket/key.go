package bucket

import "math"

// config is a Config made ready: checked, with the places of the columns.
type config struct {
	order  []int
	grain  Vector // at least 1
	budget int

	leafKey  [MaxDims]int // where in a leaf's cells the column of the j-th coordinate starts
	innerKey [MaxDims]int // the same in an inner page
	sizes    int          // where in an inner page the column of sizes starts
	maxima   int          // where in an inner page the columns of maxima start
}

func newConfig(c Config) *config {
	cfg := &config{order: dims(c.Order), grain: c.Granularity, budget: c.PageBudget}
	for d, g := range cfg.grain {
		cfg.grain[d] = max(1, g)
	}
	if cfg.budget <= 0 {
		cfg.budget = DefaultPageBudget
	}
	for j, d := range cfg.order {
		cfg.leafKey[j] = d * fan
		cfg.innerKey[j] = j * fan
	}
	cfg.sizes = len(cfg.order) * fan
	cfg.maxima = cfg.sizes + fan
	return cfg
}

// dims gives the dimensions of an order that exist, each once.
func dims(order []int) []int {
	out := make([]int, 0, min(len(order), MaxDims))
	var seen [MaxDims]bool
	for _, d := range order {
		if d >= 0 && d < MaxDims && !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}

// width is how many dimensions a page has columns for at least: those that keys
// are made of.
func (c *config) width() int {
	w := 0
	for _, d := range c.order {
		w = max(w, d+1)
	}
	return w
}

// coordinate divides and rounds up.
func coordinate(v, grain int64) int64 {
	c := v / grain
	if v%grain > 0 { // of a negative value the quotient is rounded up already
		c++
	}
	return c
}

// coordinates gives the coordinates of a vector, in the order of the index.
func (c *config) coordinates(at *Vector) []int64 {
	out := make([]int64, len(c.order))
	for j, d := range c.order {
		out[j] = coordinate(at[d], c.grain[d])
	}
	return out
}

// bounds gives the least and the largest value of the same coordinate as v.
func bounds(v, grain int64) (lo, hi int64) {
	if grain == 1 {
		return v, v
	}
	over := v % grain // v = k·grain + over; the coordinate's values end at a multiple
	if over > 0 {
		hi = v - over
		if hi > math.MaxInt64-grain {
			return hi + 1, math.MaxInt64
		}
		return hi + 1, hi + grain
	}
	hi = v - over
	if hi < math.MinInt64+grain-1 {
		return math.MinInt64, hi
	}
	return hi - grain + 1, hi
}

// edge says on which side of the entries with its coordinates a key stands.
type edge int8

const (
	before edge = -1
	exact  edge = 0 // at its ID
	behind edge = 1
)

// key is a place in the order. Its coordinates are kept as the values that they
// stand for, so that entries are compared with it without a division.
type key struct {
	n      int // how many coordinates it states; after fewer than all, edge is not exact
	lo, hi [MaxDims]int64
	edge   edge
	prefix uint64 // of id
	id     string
}

// key fills k for an entry's place.
func (c *config) key(k *key, at *Vector, id string) {
	c.keyIn(c.order, k, at)
	k.edge, k.id, k.prefix = exact, id, prefix(id)
}

// keyIn fills the coordinates of k in an order.
func (c *config) keyIn(order []int, k *key, at *Vector) {
	k.n = len(order)
	for j, d := range order {
		k.lo[j], k.hi[j] = bounds(at[d], c.grain[d])
	}
}

// covers tells whether a vector has the coordinates of the key.
func (k *key) covers(order []int, at *Vector) bool {
	for j, d := range order[:k.n] {
		if at[d] < k.lo[j] || at[d] > k.hi[j] {
			return false
		}
	}
	return true
}

// prefix packs the first digits of an ID into a number, so that most comparisons
// of IDs need not read the IDs themselves. It follows the order of strings: a < b
// has prefix(a) ≤ prefix(b), for any strings. It tells UUIDs apart by their first
// 16 digits; of a string that is no UUID, it packs what comes before the first
// byte that no UUID has there.
func prefix(id string) (p uint64) {
	left := 64
	for i := 0; i < len(id) && left > 0; i++ {
		c := id[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c == '-' {
				continue
			}
			if c < '-' {
				return p
			}
			return p | (1<<left - 1)
		}
		var digit uint64
		switch {
		case c < '0':
			return p
		case c <= '9':
			digit = uint64(c - '0')
		case c < 'a':
			return p | 9<<(left-4) | (1<<(left-4) - 1)
		case c <= 'f':
			digit = uint64(c-'a') + 10
		default:
			return p | (1<<left - 1)
		}
		left -= 4
		p |= digit << left
	}
	return p
}

// fan is how many entries or children a page holds at most. Pages of 32 keep both a
// copy (one page a level) and a search (five comparisons a page) small.
const fan = 32

// cells are what leaves and inner pages have in common: keys, and columns of
// numbers packed one after the other, fan places each.
//
// A leaf has one column for each dimension: the exact availability. An inner page
// has one for each coordinate of its separators (any value of that coordinate),
// then the sizes of its children, then, for each dimension, the exact maxima below
// each child. The separator of child i is at most the keys in it, and above all
// keys in child i-1; that of child 0 is not looked at.
//
// A leaf has lanes beside: the availability cut to 31 bits, which a scan reads
// instead of the exact values. They lie close together, apart from all else.
type cells struct {
	n     int
	lanes []int32
	*names
	cols []int64
}

// names are the IDs of keys, with their prefixes.
type names struct {
	prefixes [fan]uint64
	ids      [fan]string
}

// compare tells how the i-th key stands to k: below it -1, above it +1. columns
// are those of the key's coordinates.
func (p *cells) compare(columns *[MaxDims]int, i int, k *key) int {
	for j := range k.n {
		v := p.cols[columns[j]+i]
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

// above gives the first place from from on whose key is above k, n when none is.
func (p *cells) above(columns *[MaxDims]int, from int, k *key) int {
	to := p.n
	for from < to {
		mid := int(uint(from+to) / 2)
		if p.compare(columns, mid, k) > 0 {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return from
}

// child gives the child of an inner page that k belongs to.
func (p *cells) child(cfg *config, k *key) int {
	return p.above(&cfg.innerKey, 1, k) - 1
}

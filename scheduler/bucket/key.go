package bucket

import "math"

// config is a Config made ready: checked, with the places of the columns.
type config struct {
	order  []int
	grain  Vector // at least 1
	budget int

	leafKey  [MaxDims]int // where in a leaf the column of the j-th coordinate starts
	innerKey [MaxDims]int // the same in separators
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
	return cfg
}

// dims returns the dimensions of an order that exist, each once.
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

// coordinates returns the coordinates of a vector, in the order of the index.
func (c *config) coordinates(at *Vector) []int64 {
	out := make([]int64, len(c.order))
	for j, d := range c.order {
		out[j] = coordinate(at[d], c.grain[d])
	}
	return out
}

// bounds returns the least and the largest value of the same coordinate as v.
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

// edge is on which side of the entries with its coordinates a key stands.
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
	k.exactly(id, prefix(id))
}

func (k *key) exactly(id string, prefix uint64) { k.edge, k.id, k.prefix = exact, id, prefix }

// keyIn fills the coordinates of k in an order.
func (c *config) keyIn(order []int, k *key, at *Vector) {
	k.n = len(order)
	for j, d := range order {
		k.lo[j], k.hi[j] = bounds(at[d], c.grain[d])
	}
}

// covers reports whether a vector has the coordinates of the key.
func (k *key) covers(order []int, at *Vector) bool {
	for j, d := range order[:k.n] {
		if at[d] < k.lo[j] || at[d] > k.hi[j] {
			return false
		}
	}
	return true
}

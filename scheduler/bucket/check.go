package bucket

import (
	"cmp"
	"errors"
	"fmt"
)

// Check proves the invariants of the index, and names the first that does not
// hold: all entries in order, separators between the pages, no empty or over-full
// page, all leaves at one depth, sizes and maxima exact. O(D n).
func Check[V any](x *Index[V]) error {
	if x.root == nil {
		if x.count != 0 {
			return fmt.Errorf("index without a page counts %d entries", x.count)
		}
		return nil
	}
	c := checker[V]{cfg: x.config(), width: x.width}
	if err := c.page(x.root, 0, nil, nil); err != nil {
		return err
	}
	if c.seen != x.count {
		return fmt.Errorf("index counts %d entries and holds %d", x.count, c.seen)
	}
	if x.root.kids != nil && x.root.n == 1 {
		return errors.New("root has one child only")
	}
	return nil
}

type checker[V any] struct {
	cfg   *config
	width int
	depth int // of the leaves; 0: not known yet
	seen  int
	last  *Entry[V]
}

// page checks a page whose keys must be at least low and below high.
func (c *checker[V]) page(p *page[V], depth int, low, high *key) error {
	switch {
	case p.n < 1 || p.n > fan:
		return fmt.Errorf("page at depth %d holds %d", depth, p.n)
	case p.kids == nil:
		return c.leaf(p, depth, low, high)
	case !p.sound(1+c.width, p.n) || !p.seps.sound(len(c.cfg.order), p.n) || p.names != &p.seps.names:
		return fmt.Errorf("inner page at depth %d has other columns than it must", depth)
	}
	for i := range p.n {
		kid := p.kids[i]
		lo, hi := low, high
		if i > 0 {
			lo = c.separator(p, i)
		}
		if i+1 < p.n {
			hi = c.separator(p, i+1)
		}
		if err := c.page(kid, depth+1, lo, hi); err != nil {
			return err
		}
		if size := kid.size(); p.at(sizes+i) != size {
			return fmt.Errorf("child %d at depth %d has %d entries, not %d", i, depth, size, p.at(sizes+i))
		}
		for d := range c.width {
			if most := kid.most(d); p.at(maxima+d*fan+i) != most {
				return fmt.Errorf("child %d at depth %d has at most %d of dimension %d, not %d",
					i, depth, most, d, p.at(maxima+d*fan+i))
			}
		}
	}
	return nil
}

func (c *checker[V]) separator(p *page[V], i int) *key {
	k := key{n: len(c.cfg.order), id: p.ids[i], prefix: p.prefixes[i]}
	for j, d := range c.cfg.order {
		k.lo[j], k.hi[j] = bounds(p.seps.at(c.cfg.innerKey[j]+i), c.cfg.grain[d])
	}
	return &k
}

func (c *checker[V]) leaf(p *page[V], depth int, low, high *key) error {
	if c.depth == 0 {
		c.depth = depth + 1
	}
	if c.depth != depth+1 {
		return fmt.Errorf("leaves at depths %d and %d", c.depth-1, depth)
	}
	if !p.sound(c.width, p.n) {
		return fmt.Errorf("leaf has other columns than %d dimensions need", c.width)
	}
	for i := range p.n {
		e := p.entry(i, c.width)
		c.seen++
		switch {
		case p.prefixes[i] != prefix(e.ID):
			return fmt.Errorf("entry %s has another one's prefix", e.ID)
		case low != nil && p.inLeaf(c.cfg, i, low) < 0:
			return fmt.Errorf("entry %s is below its page's separator", e.ID)
		case high != nil && p.inLeaf(c.cfg, i, high) >= 0:
			return fmt.Errorf("entry %s is not below the next page's separator", e.ID)
		case c.last != nil && c.order(c.last, &e) >= 0:
			return fmt.Errorf("entry %s stands before %s", c.last.ID, e.ID)
		}
		c.last = &e
	}
	return nil
}

// sound reports whether there are so many columns, with lanes that are cut from the exact numbers
// beside them, where they stand.
func (c *columns) sound(count, n int) bool {
	if len(c.lanes) != count*fan || c.wide != nil && len(c.wide) != len(c.lanes) {
		return false
	}
	for at := range c.lanes {
		if at%fan < n && c.lanes[at] != lane(c.at(at)) {
			return false
		}
	}
	return true
}

// order compares two entries by the definition: coordinates, then ID.
func (c *checker[V]) order(a, b *Entry[V]) int {
	for _, d := range c.cfg.order {
		ca, cb := coordinate(a.At[d], c.cfg.grain[d]), coordinate(b.At[d], c.cfg.grain[d])
		if ca != cb {
			return cmp.Compare(ca, cb)
		}
	}
	return cmp.Compare(a.ID, b.ID)
}

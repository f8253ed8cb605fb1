package persist

import (
	"errors"
	"fmt"
)

// Check proves the invariants of the tree, and returns an error that names the first
// that does not hold. O(n).
func Check[K Key[K], V any](t *Tree[K, V]) error {
	if t.root == nil {
		if t.size != 0 {
			return fmt.Errorf("tree without a page counts %d keys", t.size)
		}
		return nil
	}
	c := treeChecker[K, V]{}
	if err := c.page(t.root, 1, nil, nil); err != nil {
		return err
	}
	if c.size != t.size {
		return fmt.Errorf("tree counts %d keys and holds %d", t.size, c.size)
	}
	if len(t.root.kids) == 1 {
		return errors.New("root has one child only")
	}
	return nil
}

type treeChecker[K Key[K], V any] struct {
	leaves int // depth of the leaves; 0: not known yet
	size   int
}

// page checks a page whose keys must be at least low and below high; nil is no bound.
func (c *treeChecker[K, V]) page(p *page[K, V], depth int, low, high *K) error {
	switch {
	case len(p.keys) < 1 || len(p.keys) > treePage || cap(p.keys) > 2*treePage:
		return fmt.Errorf("page at depth %d holds %d keys and has room for %d", depth, len(p.keys), cap(p.keys))
	case p.kids == nil:
		return c.leaf(p, depth, low, high)
	case len(p.kids) != len(p.keys) || p.vals != nil:
		return fmt.Errorf("inner page at depth %d holds %d keys, %d children and %d values", depth, len(p.keys), len(p.kids), len(p.vals))
	}
	// The first key has no meaning, so the order begins with the second.
	if err := inOrder(p.keys[1:], low, high); err != nil {
		return fmt.Errorf("inner page at depth %d: %w", depth, err)
	}
	for i, kid := range p.kids {
		from, to := low, high
		if i > 0 {
			from = &p.keys[i]
		}
		if i+1 < len(p.keys) {
			to = &p.keys[i+1]
		}
		if err := c.page(kid, depth+1, from, to); err != nil {
			return err
		}
	}
	return nil
}

func (c *treeChecker[K, V]) leaf(p *page[K, V], depth int, low, high *K) error {
	if len(p.vals) != len(p.keys) {
		return fmt.Errorf("leaf holds %d keys and %d values", len(p.keys), len(p.vals))
	}
	if c.leaves != 0 && c.leaves != depth {
		return fmt.Errorf("leaves at depths %d and %d", c.leaves, depth)
	}
	c.leaves = depth
	c.size += len(p.keys)
	if err := inOrder(p.keys, low, high); err != nil {
		return fmt.Errorf("leaf: %w", err)
	}
	return nil
}

// inOrder returns an error unless keys ascend, from low on and below high.
func inOrder[K Key[K]](keys []K, low, high *K) error {
	for i, k := range keys {
		if i > 0 && keys[i-1].Compare(k) >= 0 || low != nil && k.Compare(*low) < 0 || high != nil && k.Compare(*high) >= 0 {
			return fmt.Errorf("key %v is out of order", k)
		}
	}
	return nil
}

// Check proves the invariants of the vector, and returns an error that names the first
// that does not hold. It visits every page.
func (v *Vector[T]) Check() error {
	if v.root == nil {
		return nil
	}
	return v.root.check(v.depth)
}

func (p *vectorPage[T]) check(depth int) error {
	used := 0
	switch {
	case (depth == 0) != (p.elems != nil) || (depth == 0) != (p.kids == nil):
		return fmt.Errorf("page %d levels above the leaves is of the wrong kind", depth)
	case depth == 0:
		for _, e := range p.elems {
			if e != nil {
				used++
			}
		}
	default:
		for _, kid := range p.kids {
			if kid == nil {
				continue
			}
			used++
			if err := kid.check(depth - 1); err != nil {
				return err
			}
		}
	}
	if used == 0 || used != p.used {
		return fmt.Errorf("page %d levels above the leaves counts %d entries and holds %d", depth, p.used, used)
	}
	return nil
}

package cells

import "slices"

// Spare returns why devices of a node must not be taken from all claims, as SetBad does: ErrUnknown if the node is not known or not
// ready, ErrBound if one of them is in a bound cell, ErrUnsafe if Invariant S would not hold without them; nil if they may. Those that no
// claim may have already are no loss.
func (c *Chain) Spare(id string, devices uint64) error {
	n, ok := c.nodes.get(id)
	if !ok || !n.Ready {
		return ErrUnknown
	}
	devices &^= n.Bad
	switch {
	case devices == 0:
		return nil
	case devices&^n.avail != 0:
		return ErrBound
	}
	after := slices.Clone(c.lines)
	add := func(k Kind, by int) {
		if at, found := after.search(k); found {
			after[at].free += by
		}
	}
	if n.free {
		c.breakSites(n.parent, after, add)
	}
	c.maximal(n.avail, func(level, _ int) { add(Kind{Level: level}, -1) })
	c.maximal(n.avail&^devices, func(level, _ int) { add(Kind{Level: level}, 1) })
	if _, short := after.lacking(after.left(counted)); short > 0 {
		return ErrUnsafe
	}
	return nil
}

// Whole returns the chain as it would be if all of its nodes were ready, with those devices of each bad that bad returns for it: what was bound before a node
// ceased to be ready is bound again. nil: it is so already.
func (c *Chain) Whole(bad func(id string) uint64) (e *Edit) {
	for id, n := range c.nodes.all {
		is := bad(id)
		if n.Ready && n.Bad == is {
			continue
		}
		if e == nil {
			e = c.Edit()
		}
		back := n.Node
		back.Ready, back.Bad = true, is
		e.PutNode(back)
	}
	return e
}

// Idle returns the chain as it would be if nothing was bound but what is pinned; nil: nothing is doomed, so that what is bound is in the way of nothing that is owned.
func (c *Chain) Idle() *Edit {
	if !slices.ContainsFunc(c.lines, func(l line) bool { return l.doomed > 0 }) {
		return nil
	}
	e := c.Edit()
	for b := range c.Bindings {
		for range b.Uses {
			_ = e.Release(b.Cell, b.Kind) // it is bound
		}
	}
	return e
}

// breakSites counts the free site cells around a node as their parts, the nodes at last.
func (c *Chain) breakSites(parent string, after lines, add func(k Kind, by int)) {
	for _, in := range c.around(parent) {
		add(in, -1)
		if at, found := after.search(in); found {
			for _, p := range after[at].parts {
				add(p.kind, p.count)
			}
		}
	}
}

// Bad returns the devices of a node that must not be used, or may be had by no claim.
func (c *Chain) Bad(id string) uint64 {
	n, ok := c.nodes.get(id)
	if !ok {
		return 0
	}
	return n.Bad
}

// Available returns the devices of a node that are healthy, in no bound cell, and not without a claim; none of a node that is not ready.
func (c *Chain) Available(id string) uint64 {
	n, ok := c.nodes.get(id)
	if !ok {
		return 0
	}
	return n.avail
}

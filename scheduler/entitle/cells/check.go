package cells

import (
	"fmt"
	"maps"
	"slices"
)

// Check proves that the accounts, the index and the bindings agree with a sweep over all nodes and site cells, and that no
// two bound cells overlap. It returns an error that names the first thing that does not hold.
func (c *Chain) Check() error {
	if err := c.checkBindings(); err != nil {
		return err
	}
	if err := c.checkFree(); err != nil {
		return err
	}
	if err := c.checkQuotas(); err != nil {
		return err
	}
	return c.checkIndex()
}

// checkBindings proves that bound cells are there, ready and disjoint, and that the owners' accounts count them.
func (c *Chain) checkBindings() error {
	type right struct {
		owner string
		kind  Kind
	}
	bound, away := map[right]int{}, map[right]int{}
	for b, isAway := range c.Bindings {
		if isAway {
			if b.Pinned {
				away[right{b.Owner, b.Kind}]++
			}
			continue
		}
		bound[right{b.Owner, b.Kind}]++
		if b.Uses == 0 && !b.Pinned {
			return fmt.Errorf("%s is bound to %s, which does not use it", c.name(b.Cell, b.Kind), b.Owner)
		}
		if !c.ready(b.Cell) {
			return fmt.Errorf("%s is bound, and not ready", c.name(b.Cell, b.Kind))
		}
	}
	for id, n := range c.nodes.all {
		var taken uint64
		for _, b := range n.bound {
			m := c.mask(b.Kind.Level, b.Cell.Index)
			if taken&m != 0 || n.under {
				return fmt.Errorf("node %s: %s is bound twice", id, c.name(b.Cell, b.Kind))
			}
			taken |= m
		}
	}
	for name, o := range c.owners.all {
		for _, a := range o.accounts {
			r := right{name, a.Kind}
			if a.Bound != bound[r] || a.Away != away[r] || a.Unbound() < 0 {
				return fmt.Errorf("%s has %+v, but %d cells are bound and %d away", name, a, bound[r], away[r])
			}
			delete(bound, r)
			delete(away, r)
		}
	}
	if len(bound)+len(away) > 0 {
		return fmt.Errorf("cells are bound to owners without an account: %v %v", slices.Collect(maps.Keys(bound)), slices.Collect(maps.Keys(away)))
	}
	return nil
}

// checkFree proves that the counts of free cells are those of a walk from above.
func (c *Chain) checkFree() error {
	free := map[Kind]int{}
	var whole func(key string) bool
	whole = func(key string) bool {
		s, _ := c.groups.get(key)
		ok := s.bound == nil
		for _, id := range s.nodes {
			n, _ := c.nodes.get(id)
			ok = ok && n.free
		}
		for _, in := range s.sites {
			ok = ok && whole(in)
		}
		return ok
	}
	covered := map[string]bool{}
	var take func(key string)
	take = func(key string) {
		s, _ := c.groups.get(key)
		if whole(key) && !c.mixed(s.kind) {
			free[s.kind]++
			c.nodesIn(s, func(id string) bool { covered[id] = true; return true })
			return
		}
		for _, in := range s.sites {
			take(in)
		}
	}
	for key, s := range c.groups.all {
		if s.free != whole(key) {
			return fmt.Errorf("%s: counted as free: %v, which is wrong", s.name, s.free)
		}
		if s.parent == "" {
			take(key)
		}
	}
	for id, n := range c.nodes.all {
		under := false
		for _, k := range c.keysOf(n.Sites) {
			s, ok := c.groups.get(k.key)
			under = under || ok && s.bound != nil
		}
		if n.under != under || n.avail != n.available(c) {
			return fmt.Errorf("node %s: its available devices are %b, not %b", id, n.available(c), n.avail)
		}
		if !covered[id] {
			c.maximal(n.avail, func(level, _ int) { free[Kind{Level: level}]++ })
		}
	}
	for i := range c.lines {
		l := &c.lines[i]
		if l.free != free[l.kind] {
			return fmt.Errorf("%d cells of %s are counted as free, but %d are", l.free, c.LevelName(l.kind), free[l.kind])
		}
		delete(free, l.kind)
	}
	for k, n := range free {
		return fmt.Errorf("%d free cells of %s %d are not counted", n, c.LevelName(k), k.Size)
	}
	return nil
}

func (c *Chain) mixed(k Kind) bool {
	at, found := c.lines.search(k)
	return found && c.lines[at].mixed
}

// checkQuotas proves that the accounts of the kinds are the sums of the owners', and that Invariant S holds.
func (c *Chain) checkQuotas() error {
	quota, doomed := map[Kind]int{}, map[Kind]int{}
	for _, o := range c.owners.all {
		for _, a := range o.accounts {
			quota[a.Kind] += a.Given - a.Bound - a.Away
			doomed[a.Kind] += a.Doomed
		}
	}
	for i := range c.lines {
		l := &c.lines[i]
		if l.quota != quota[l.kind] || l.doomed != doomed[l.kind] {
			return fmt.Errorf("%s: %d quota cells, %d of them doomed, but the owners have %d and %d", c.LevelName(l.kind), l.quota, l.doomed, quota[l.kind], doomed[l.kind])
		}
	}
	if kind, short := c.lines.lacking(c.lines.left(counted)); short > 0 {
		return fmt.Errorf("invariant S: level %s (%d): %d short", c.LevelName(kind), kind.Size, short)
	}
	given := map[Kind]int{}
	for _, l := range c.lots {
		given[l.kind] += l.count
	}
	for _, o := range c.owners.all {
		for _, a := range o.accounts {
			given[a.Kind] -= a.Given
		}
	}
	for k, n := range given {
		if n != 0 {
			return fmt.Errorf("%s: the quotas admitted are %d more than what owners were given", c.LevelName(k), n)
		}
	}
	return nil
}

// checkIndex proves that the index has every node where it belongs, and no other.
func (c *Chain) checkIndex() error {
	entries := 0
	for id, n := range c.nodes.all {
		want := c.entriesOf(n)
		if !slices.Equal(want, n.entries) {
			return fmt.Errorf("node %s is indexed as %v, not as %v", id, n.entries, want)
		}
		for _, x := range want {
			in, _ := c.index.get(x.way)
			if v, ok := in.get(id); !ok || v.own != x.own {
				return fmt.Errorf("node %s: the index has %v, not %v", id, v.own, x.own)
			}
		}
		entries += len(want)
	}
	for _, in := range c.index.all {
		entries -= in.size
	}
	if entries != 0 {
		return fmt.Errorf("the index has %d entries too few", entries)
	}
	return nil
}

// name names a cell as users see it.
func (c *Chain) name(cell Cell, k Kind) string {
	if cell.Site != "" {
		if s, ok := c.groups.get(cell.Site); ok {
			return s.name
		}
		return cell.Site
	}
	if k.Level == len(c.levels)-1 {
		return cell.Node
	}
	return fmt.Sprintf("%s/%s-%d", cell.Node, c.LevelName(k), cell.Index)
}

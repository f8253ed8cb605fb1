package cells

import (
	"cmp"
	"container/heap"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Loss is what binding a cell would cost those who use it without a right: 0 if nobody does, else less the lower the highest
// priority among them is, then the fewer they are.
type Loss uint32

const never Loss = math.MaxUint32

// Plus returns the loss of two cells together, at most.
func (l Loss) Plus(o Loss) Loss {
	return max(l>>16, o>>16)<<16 | min(l&math.MaxUint16+o&math.MaxUint16, math.MaxUint16)
}

// lossOf returns the loss of some devices of a node.
func lossOf(users []User, devices uint64) Loss {
	highest, count := -1, 0
	for i := range users {
		if users[i].Devices&devices != 0 {
			highest = max(highest, users[i].Priority)
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return Loss(min(highest, math.MaxUint16-1)+1)<<16 | Loss(min(count, math.MaxUint16)) // bounded by min
}

// entry is a node as the index has it: what binding one of its cells costs at least, by level.
type entry struct {
	own, best [MaxNodeLevels]Loss
}

func (v *entry) sum(left, right *entry) {
	v.best = v.own
	for _, o := range []*entry{left, right} {
		if o == nil {
			continue
		}
		for l, loss := range o.best {
			v.best[l] = min(v.best[l], loss)
		}
	}
}

// indexed is where the index has a node: by a way, which is the free cells around one from the maximal one down to what lies within
// the node, as a string of kinds.
type indexed struct {
	way string
	own [MaxNodeLevels]Loss
}

// way encodes kinds, from the maximal free cell down.
func way(kinds []Kind) string {
	var b strings.Builder
	for _, k := range kinds {
		b.WriteRune(rune(k.Level + 1))
		b.WriteRune(rune(k.Size))
	}
	return b.String()
}

func kindsOf(way string) (kinds []Kind) {
	runes := []rune(way)
	for i := 0; i+1 < len(runes); i += 2 {
		kinds = append(kinds, Kind{int(runes[i]) - 1, int(runes[i+1])})
	}
	return kinds
}

// around returns the kinds of the free cells around a site cell, from the maximal one down to itself. Those that count as
// their parts are left out.
func (c *Chain) around(key string) (kinds []Kind) {
	for key != "" {
		s, ok := c.groups.get(key)
		if !ok || !s.free {
			break
		}
		if at, found := c.lines.search(s.kind); found && !c.lines[at].mixed {
			kinds = append(kinds, s.kind)
		}
		key = s.parent
	}
	slices.Reverse(kinds)
	return kinds
}

// entriesOf returns where the index should have a node.
func (c *Chain) entriesOf(n *node) (list []indexed) {
	if n.avail == 0 {
		return nil
	}
	if n.free {
		return []indexed{c.entryOf(n, way(append(c.around(n.parent), c.nodeKind())), len(c.levels)-1, 0)}
	}
	at := -1
	c.maximal(n.avail, func(level, index int) {
		more := c.entryOf(n, way([]Kind{{Level: level}}), level, index)
		if at < 0 || list[at].way != more.way {
			list, at = append(list, more), len(list)
			return
		}
		for l := range list[at].own {
			list[at].own[l] = min(list[at].own[l], more.own[l])
		}
	})
	return list
}

func (c *Chain) entryOf(n *node, way string, level, index int) indexed {
	x := indexed{way: way}
	for l := range x.own {
		x.own[l] = never
	}
	cell := c.mask(level, index)
	for l := 0; l <= level; l++ {
		for i := range c.cellsOf(l) {
			if m := c.mask(l, i); m&cell == m {
				x.own[l] = min(x.own[l], lossOf(n.users, m))
			}
		}
	}
	return x
}

// reindex moves the index on to what a node has now.
func (e *Edit) reindex(id string) {
	n, ok := e.c.nodes.get(id)
	if !ok {
		return
	}
	now := e.c.entriesOf(n)
	if slices.Equal(now, n.entries) {
		return
	}
	n = e.ownNode(id)
	for _, old := range n.entries {
		if !slices.ContainsFunc(now, func(x indexed) bool { return x.way == old.way }) {
			e.unindex(old.way, id)
		}
	}
	for _, x := range now {
		if !slices.Contains(n.entries, x) {
			in, _ := e.c.index.get(x.way)
			in.put(e.tok, id, entry{own: x.own})
			e.c.index.put(e.tok, x.way, in)
		}
	}
	n.entries = now
}

func (e *Edit) unindex(way, id string) {
	in, _ := e.c.index.get(way)
	in.remove(e.tok, id)
	if in.size == 0 {
		e.c.index.remove(e.tok, way)
		return
	}
	e.c.index.put(e.tok, way, in)
}

// Safe returns why a cell must not be bound by an owner now: ErrUnknown, ErrBound, ErrQuota or ErrUnsafe; nil if it may.
func (e *Edit) Safe(cell Cell, k Kind, name string) error {
	if err := e.c.bindable(cell, k); err != nil {
		return err
	}
	if a := e.c.Account(name, k); a.Unbound() < 1 {
		return ErrQuota
	}
	kinds := e.c.wayTo(cell, k)
	if kinds == nil || !e.c.safe(kinds, k) {
		return ErrUnsafe
	}
	return nil
}

// wayTo returns the kinds of the free cells around a cell, from the maximal one down; nil if the cell itself is not free.
func (c *Chain) wayTo(cell Cell, k Kind) []Kind {
	if cell.Site != "" {
		kinds := c.around(cell.Site)
		if s, _ := c.groups.get(cell.Site); !s.free {
			return nil
		}
		return kinds
	}
	n, _ := c.nodes.get(cell.Node)
	if n.free {
		return append(c.around(n.parent), c.nodeKind())
	}
	want := c.mask(k.Level, cell.Index)
	var kinds []Kind
	c.maximal(n.avail, func(level, index int) {
		if c.mask(level, index)&want == want {
			kinds = []Kind{{Level: level}}
		}
	})
	return kinds
}

// safe reports whether Invariant S holds when a cell of a kind is bound that lies in free cells of these kinds, from the
// maximal one down.
func (c *Chain) safe(around []Kind, k Kind) bool {
	after := slices.Clone(c.lines)
	move := func(k Kind, by int) {
		if at, ok := after.search(k); ok {
			after[at].free += by
		}
	}
	last := around[len(around)-1]
	for level := last.Level - 1; level >= k.Level && c.within(last); level-- {
		around = append(slices.Clip(around), Kind{Level: level})
	}
	for i, in := range around {
		move(in, -1)
		if in == k {
			break
		}
		if at, ok := after.search(in); ok && i+1 < len(around) {
			for _, p := range after[at].parts {
				move(p.kind, p.count)
			}
		}
	}
	if at, ok := after.search(k); ok {
		after[at].quota--
	}
	_, short := after.lacking(after.left(counted))
	return short == 0
}

// Candidate is a cell that may be bound.
type Candidate struct {
	Cell Cell
	Loss Loss
	From Kind // of the maximal free cell that it would be cut from
}

// Candidates returns the cells of a kind whose binding keeps Invariant S, the best first: those that cost nothing before
// others, cut from the smallest free cell; then those of least loss, cut from the smallest; then in the order of their
// names. It offers one cell of each node and size of free cell. The edit must not change meanwhile.
func (e *Edit) Candidates(k Kind) iter.Seq[Candidate] {
	if !e.c.within(k) {
		return e.c.siteCandidates(k)
	}
	return func(yield func(Candidate) bool) {
		var f frontier
		for key, in := range e.c.index.all {
			kinds := kindsOf(key)
			if kinds[len(kinds)-1].Level < k.Level || !e.c.safe(kinds, k) {
				continue
			}
			f.add(branch{from: kinds[0], way: key, inner: kinds[len(kinds)-1].Level, at: in.root}, k.Level)
		}
		for len(f) > 0 {
			b, _ := heap.Pop(&f).(branch)
			if b.whole {
				f.open(&b, k.Level)
				continue
			}
			n, _ := e.c.nodes.get(b.at.key)
			if cell, ok := e.c.pick(n, b.inner, k.Level, b.loss); ok && !yield(Candidate{cell, b.loss, b.from}) {
				return
			}
		}
	}
}

// CandidatesOn returns the cells of a kind within one node whose binding keeps Invariant S, all of them: those of least loss first,
// then cut from the smallest free cell, then in the order of their indexes.
func (e *Edit) CandidatesOn(id string, k Kind) (list []Candidate) {
	n, ok := e.c.nodes.get(id)
	if !ok || !e.c.within(k) || n.avail == 0 {
		return nil
	}
	cut := func(kinds []Kind, level, index int) {
		if level < k.Level || !e.c.safe(kinds, k) {
			return
		}
		around := e.c.mask(level, index)
		for i := range e.c.cellsOf(k.Level) {
			if m := e.c.mask(k.Level, i); m&around == m {
				list = append(list, Candidate{Cell{Node: id, Index: i}, lossOf(n.users, m), kinds[0]})
			}
		}
	}
	if n.free {
		cut(append(e.c.around(n.parent), e.c.nodeKind()), len(e.c.levels)-1, 0)
	} else {
		e.c.maximal(n.avail, func(level, index int) { cut([]Kind{{Level: level}}, level, index) })
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), a.From.Compare(b.From), cmp.Compare(a.Cell.Index, b.Cell.Index))
	})
	return list
}

// siteCandidates returns the site cells of a kind whose binding keeps Invariant S. It looks at all of that kind.
func (c *Chain) siteCandidates(k Kind) iter.Seq[Candidate] {
	var all []Candidate
	for key, s := range c.groups.all {
		if s.kind != k || !s.free {
			continue
		}
		if kinds := c.around(key); len(kinds) > 0 && c.safe(kinds, k) {
			all = append(all, Candidate{Cell{Site: key}, c.lossOfSite(s), kinds[0]})
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), a.From.Compare(b.From))
	})
	return slices.Values(all)
}

func (c *Chain) lossOfSite(s *site) Loss {
	var highest, count Loss
	c.nodesIn(s, func(id string) bool {
		n, _ := c.nodes.get(id)
		loss := lossOf(n.users, c.mask(len(c.levels)-1, 0))
		highest, count = max(highest, loss>>16), count+loss&math.MaxUint16
		return true
	})
	return highest<<16 | min(count, math.MaxUint16)
}

// pick returns the cell of a level of a node that has a given loss and lies in a maximal free cell of a given level: of several
// the one around which most is used, so that larger cells stay idle, then the first.
func (c *Chain) pick(n *node, inner, level int, loss Loss) (best Cell, ok bool) {
	var bestIdle [MaxNodeLevels]int
	c.maximal(n.avail, func(l, index int) {
		if l != inner {
			return
		}
		free := c.mask(l, index)
		for i := range c.cellsOf(level) {
			m := c.mask(level, i)
			if m&free != m || lossOf(n.users, m) != loss {
				continue
			}
			idle := c.idleAround(n, level, i, inner)
			if !ok || slices.Compare(idle[:], bestIdle[:]) < 0 {
				best, bestIdle, ok = Cell{Node: n.ID, Index: i}, idle, true
			}
		}
	})
	return best, ok
}

// idleAround returns how many devices nobody uses in the cells around one, level by level.
func (c *Chain) idleAround(n *node, level, index, inner int) (idle [MaxNodeLevels]int) {
	var used uint64
	for i := range n.users {
		used |= n.users[i].Devices
	}
	for l := level + 1; l <= inner; l++ {
		around := c.mask(l, index*c.levels[level].Devices/c.levels[l].Devices)
		idle[l] = bits.OnesCount64(around &^ used)
	}
	return idle
}

// branch is a part of the index that is still to be searched, or one node of it.
type branch struct {
	from  Kind // the maximal free cell
	way   string
	inner int // level of the maximal free cell within the node
	at    *twig[entry]
	whole bool   // with all below it
	loss  Loss   // the least in it
	low   uint64 // orders it among those of its tree: the path to it, one bit a step
	depth int
}

// frontier is a heap of branches, the best first.
type frontier []branch

// add adds a whole branch, if it has a cell of the level.
func (f *frontier) add(b branch, level int) {
	if b.at == nil || b.at.val.best[level] == never {
		return
	}
	b.whole, b.loss = true, b.at.val.best[level]
	heap.Push(f, b)
}

// open replaces a branch that was taken by those below it and by the node at its top.
func (f *frontier) open(b *branch, level int) {
	half := uint64(1) << max(62-b.depth, 0) // deeper ones, which chance does not make, would lose the order of their names
	left, right, top := *b, *b, *b
	left.at, left.depth = b.at.left, b.depth+1
	right.at, right.depth, right.low = b.at.right, b.depth+1, b.low+half
	f.add(left, level)
	f.add(right, level)
	if loss := b.at.val.own[level]; loss != never {
		top.whole, top.loss, top.low = false, loss, b.low+half-1
		heap.Push(f, top)
	}
}

// Len, Swap, Less, Push and Pop make a frontier a heap of [container/heap].
func (f frontier) Len() int      { return len(f) }
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

// Push implements [heap.Interface].
func (f *frontier) Push(x any) {
	if b, ok := x.(branch); ok {
		*f = append(*f, b)
	}
}

// Pop implements [heap.Interface].
func (f *frontier) Pop() any {
	last := len(*f) - 1
	b := (*f)[last]
	*f = (*f)[:last]
	return b
}

// Less orders by loss, then by the maximal free cell, then by name.
func (f frontier) Less(i, j int) bool {
	a, b := &f[i], &f[j]
	if c := cmp.Or(cmp.Compare(a.loss, b.loss), a.from.Compare(b.from), strings.Compare(a.way, b.way)); c != 0 {
		return c < 0
	}
	return a.low < b.low
}

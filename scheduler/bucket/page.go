package bucket

// page is a leaf (values) or an inner page (kids). See cells for what its
// columns are.
type page[V any] struct {
	kids *[fan]*page[V] // first, with what a scan reads of cells in one line of the cache
	cells
	values *[fan]V
	owner  *Token
}

// Pages are made in one piece of memory with all that they point to but exact
// numbers, by how many dimensions there are: what an edit or a scan reads lies close.
type (
	leaf2[V any] struct {
		page   page[V]
		_      [3]int64 // lanes begin with a line of the cache
		lanes  [2 * fan]int32
		names  names
		values [fan]V
	}
	leaf4[V any] struct {
		page   page[V]
		_      [3]int64
		lanes  [4 * fan]int32
		names  names
		values [fan]V
	}
	leafMax[V any] struct {
		page   page[V]
		_      [3]int64
		lanes  [MaxDims * fan]int32
		names  names
		values [fan]V
	}
	inner2[V any] struct {
		page  page[V]
		kids  [fan]*page[V]
		lanes [(1 + 2) * fan]int32
	}
	inner4[V any] struct {
		page  page[V]
		kids  [fan]*page[V]
		lanes [(1 + 4) * fan]int32
	}
	innerMax[V any] struct {
		page  page[V]
		kids  [fan]*page[V]
		lanes [(1 + MaxDims) * fan]int32
	}
)

func newLeaf[V any](t *Token, width int) *page[V] {
	switch count := width * fan; {
	case width <= 2:
		b := new(leaf2[V])
		return b.page.leaf(t, b.lanes[:count], &b.names, &b.values)
	case width <= 4:
		b := new(leaf4[V])
		return b.page.leaf(t, b.lanes[:count], &b.names, &b.values)
	default:
		b := new(leafMax[V])
		return b.page.leaf(t, b.lanes[:count], &b.names, &b.values)
	}
}

func (p *page[V]) leaf(t *Token, lanes []int32, names *names, values *[fan]V) *page[V] {
	p.owner, p.lanes, p.names, p.values = t, lanes, names, values
	return p
}

// newInner makes an inner page without separators.
func newInner[V any](t *Token, width int) *page[V] {
	switch count := (1 + width) * fan; {
	case width <= 2:
		b := new(inner2[V])
		return b.page.inner(t, b.lanes[:count], &b.kids)
	case width <= 4:
		b := new(inner4[V])
		return b.page.inner(t, b.lanes[:count], &b.kids)
	default:
		b := new(innerMax[V])
		return b.page.inner(t, b.lanes[:count], &b.kids)
	}
}

func (p *page[V]) inner(t *Token, lanes []int32, kids *[fan]*page[V]) *page[V] {
	p.owner, p.lanes, p.kids = t, lanes, kids
	return p
}

// divide sets the separators of an inner page.
func (p *page[V]) divide(s *separators) { p.seps, p.names = s, &s.names }

// own returns a page that the token may change: the page itself or a copy of it. The separators are
// still shared.
func (p *page[V]) own(t *Token) *page[V] {
	if p.owner == t && t != nil {
		return p
	}
	return p.copied(t, 0)
}

// copied returns a copy of the page, with the same separators and more columns, of zeroes.
func (p *page[V]) copied(t *Token, more int) *page[V] {
	n, width := p.n, len(p.lanes)/fan+more
	if p.kids != nil {
		c := newInner[V](t, width-1)
		c.n = n
		c.copy(&p.columns, n)
		c.divide(p.seps)
		copy(c.kids[:n], p.kids[:n])
		return c
	}
	c := newLeaf[V](t, width)
	c.n = n
	c.copy(&p.columns, n)
	copy(c.prefixes[:n], p.prefixes[:n])
	copy(c.ids[:n], p.ids[:n])
	copy(c.values[:n], p.values[:n])
	return c
}

// ownKeys makes the separators of an owned inner page its own.
func (p *page[V]) ownKeys() {
	if p.kids == nil || p.seps.owner == p.owner && p.owner != nil {
		return
	}
	n := p.n
	s := newSeparators(p.owner, len(p.seps.lanes)/fan)
	s.copy(&p.seps.columns, n)
	copy(s.prefixes[:n], p.prefixes[:n])
	copy(s.ids[:n], p.ids[:n])
	p.divide(s)
}

// widened returns a copy of the page and all below it with more columns, of zeroes.
func (p *page[V]) widened(t *Token, more int) *page[V] {
	c := p.copied(t, more)
	if c.kids != nil {
		for i := range c.n {
			c.kids[i] = c.kids[i].widened(t, more)
		}
	}
	return c
}

// vector returns the availability of a leaf's entry.
func (p *page[V]) vector(i, width int) (at Vector) {
	for d := range width {
		at[d] = p.at(d*fan + i)
	}
	return at
}

func (p *page[V]) entry(i, width int) Entry[V] {
	return Entry[V]{ID: p.ids[i], At: p.vector(i, width), Value: p.values[i]}
}

func (p *page[V]) all(width int, yield func(Entry[V]) bool) bool {
	for i := range p.n {
		if p.kids != nil {
			if !p.kids[i].all(width, yield) {
				return false
			}
		} else if !yield(p.entry(i, width)) {
			return false
		}
	}
	return true
}

// open makes room for one more at place i of an owned page that is not full.
func (p *page[V]) open(i int) {
	p.ownKeys()
	n := p.n
	p.columns.open(i, n)
	copy(p.prefixes[i+1:n+1], p.prefixes[i:n])
	copy(p.ids[i+1:n+1], p.ids[i:n])
	if p.kids != nil {
		p.seps.open(i, n)
		copy(p.kids[i+1:n+1], p.kids[i:n])
	} else {
		copy(p.values[i+1:n+1], p.values[i:n])
	}
	p.n++
}

// shut takes place i out of an owned page.
func (p *page[V]) shut(i int) {
	p.ownKeys()
	n := p.n
	p.columns.shut(i, n)
	copy(p.prefixes[i:n-1], p.prefixes[i+1:n])
	copy(p.ids[i:n-1], p.ids[i+1:n])
	if p.kids != nil {
		p.seps.shut(i, n)
		copy(p.kids[i:n-1], p.kids[i+1:n])
	} else {
		copy(p.values[i:n-1], p.values[i+1:n])
	}
	p.cut(n - 1)
}

// cut leaves the first keep entries, and forgets what the others point to.
func (p *page[V]) cut(keep int) {
	clear(p.ids[keep:p.n])
	if p.kids != nil {
		clear(p.kids[keep:p.n])
	} else {
		clear(p.values[keep:p.n])
	}
	p.n = keep
}

// move puts what stands at from..from+count-1 of q behind the entries of p, which
// is owned.
func (p *page[V]) move(q *page[V], from, count int) {
	p.ownKeys()
	n := p.n
	p.take(n, &q.columns, from, count)
	copy(p.prefixes[n:], q.prefixes[from:from+count])
	copy(p.ids[n:], q.ids[from:from+count])
	if p.kids != nil {
		p.seps.take(n, &q.seps.columns, from, count)
		copy(p.kids[n:], q.kids[from:from+count])
	} else {
		copy(p.values[n:], q.values[from:from+count])
	}
	p.n += count
}

// split leaves the first keep entries in p, which is owned, and returns the others in a page of
// their own.
func (p *page[V]) split(cfg *config, keep, width int) (q *page[V]) {
	if p.kids != nil {
		q = newInner[V](p.owner, width)
		q.divide(newSeparators(p.owner, len(cfg.order)))
	} else {
		q = newLeaf[V](p.owner, width)
	}
	q.move(p, keep, p.n-keep)
	p.ownKeys()
	p.cut(keep)
	return q
}

// separate makes the first key of kid the separator of child i. The page owns its
// separators.
func (p *page[V]) separate(cfg *config, i int, kid *page[V]) {
	for j := range cfg.order {
		if kid.kids == nil {
			p.seps.set(cfg.innerKey[j]+i, kid.at(cfg.leafKey[j]))
		} else {
			p.seps.set(cfg.innerKey[j]+i, kid.seps.at(cfg.innerKey[j]))
		}
	}
	p.prefixes[i], p.ids[i] = kid.prefixes[0], kid.ids[0]
}

// sum counts child i anew: its size and its maxima.
func (p *page[V]) sum(i, width int) {
	kid := p.kids[i]
	p.set(sizes+i, kid.size())
	for d := range width {
		p.set(maxima+d*fan+i, kid.most(d))
	}
}

// size is how many entries stand in and below a page.
func (p *page[V]) size() (n int64) {
	if p.kids == nil {
		return int64(p.n)
	}
	for i := range p.n {
		n += p.at(sizes + i)
	}
	return n
}

// most is the maximum of a dimension in and below a page that is not empty.
func (p *page[V]) most(d int) int64 { return p.columns.most(p.column(d), p.n) }

// mostUpTo is most, where no value is above limit.
func (p *page[V]) mostUpTo(d int, limit int64) int64 {
	return p.columns.mostUpTo(p.column(d), p.n, limit)
}

// column is where a dimension's starts: the availability in a leaf, the maxima of
// the children in an inner page.
func (p *page[V]) column(d int) int {
	if p.kids != nil {
		return maxima + d*fan
	}
	return d * fan
}

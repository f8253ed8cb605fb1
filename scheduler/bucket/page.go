package bucket

// page is a leaf (values) or an inner page (kids). See cells for what its
// columns are.
type page[V any] struct {
	kids []*page[V] // first, with what a scan reads of cells in one line of the cache
	cells
	values []V
	owner  *Token
}

func newLeaf[V any](t *Token, width int) *page[V] {
	p := bare[V](t, false)
	p.cols, p.lanes = make([]int64, width*fan), make([]int32, width*fan)
	return p
}

func newInner[V any](t *Token, cfg *config, width int) *page[V] {
	p := bare[V](t, true)
	p.cols = make([]int64, cfg.maxima+width*fan)
	return p
}

// bare makes a page without columns.
func bare[V any](t *Token, inner bool) *page[V] {
	p := &page[V]{owner: t}
	if inner {
		b := new(struct {
			names
			kids [fan]*page[V]
		})
		p.names, p.kids = &b.names, b.kids[:]
		return p
	}
	b := new(struct {
		names
		values [fan]V
	})
	p.names, p.values = &b.names, b.values[:]
	return p
}

// own gives a page that the token may change: the page itself or a copy of it.
func (p *page[V]) own(t *Token) *page[V] {
	if p.owner == t && t != nil {
		return p
	}
	return p.copied(t)
}

// copied gives a copy of the page.
func (p *page[V]) copied(t *Token) *page[V] {
	c := bare[V](t, p.kids != nil)
	c.n = p.n
	c.cols = append([]int64(nil), p.cols...)
	c.lanes = append([]int32(nil), p.lanes...)
	n := p.n
	copy(c.prefixes[:n], p.prefixes[:n])
	copy(c.ids[:n], p.ids[:n])
	if p.kids != nil {
		copy(c.kids, p.kids[:n])
	} else {
		copy(c.values, p.values[:n])
	}
	return c
}

// widened gives a copy of the page and all below it with more columns, of zeroes.
func (p *page[V]) widened(t *Token, more int) *page[V] {
	c := p.copied(t)
	c.cols = append(c.cols, make([]int64, more*fan)...)
	if c.kids == nil {
		c.lanes = append(c.lanes, make([]int32, more*fan)...)
		return c
	}
	for i := range c.n {
		c.kids[i] = c.kids[i].widened(t, more)
	}
	return c
}

// vector gives the availability of a leaf's entry.
func (p *page[V]) vector(i, width int) (at Vector) {
	for d := range width {
		at[d] = p.cols[d*fan+i]
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

// open makes room for one more at place i of a page that is not full.
func (p *page[V]) open(i int) {
	for c := 0; c < len(p.cols); c += fan {
		copy(p.cols[c+i+1:c+p.n+1], p.cols[c+i:c+p.n])
	}
	for c := 0; c < len(p.lanes); c += fan {
		copy(p.lanes[c+i+1:c+p.n+1], p.lanes[c+i:c+p.n])
	}
	copy(p.prefixes[i+1:p.n+1], p.prefixes[i:p.n])
	copy(p.ids[i+1:p.n+1], p.ids[i:p.n])
	if p.kids != nil {
		copy(p.kids[i+1:p.n+1], p.kids[i:p.n])
	} else {
		copy(p.values[i+1:p.n+1], p.values[i:p.n])
	}
	p.n++
}

// shut takes place i out.
func (p *page[V]) shut(i int) {
	for c := 0; c < len(p.cols); c += fan {
		copy(p.cols[c+i:c+p.n-1], p.cols[c+i+1:c+p.n])
	}
	for c := 0; c < len(p.lanes); c += fan {
		copy(p.lanes[c+i:c+p.n-1], p.lanes[c+i+1:c+p.n])
	}
	copy(p.prefixes[i:p.n-1], p.prefixes[i+1:p.n])
	copy(p.ids[i:p.n-1], p.ids[i+1:p.n])
	if p.kids != nil {
		copy(p.kids[i:p.n-1], p.kids[i+1:p.n])
	} else {
		copy(p.values[i:p.n-1], p.values[i+1:p.n])
	}
	p.n--
	p.clear(p.n, p.n+1)
}

// clear forgets what the places from..to-1, which are not used any more, point to.
func (p *page[V]) clear(from, to int) {
	clear(p.ids[from:to])
	if p.kids != nil {
		clear(p.kids[from:to])
	} else {
		clear(p.values[from:to])
	}
}

// move puts what stands at from..from+count-1 of q behind the entries of p.
func (p *page[V]) move(q *page[V], from, count int) {
	for c := 0; c < len(p.cols); c += fan {
		copy(p.cols[c+p.n:c+p.n+count], q.cols[c+from:c+from+count])
	}
	for c := 0; c < len(p.lanes); c += fan {
		copy(p.lanes[c+p.n:c+p.n+count], q.lanes[c+from:c+from+count])
	}
	copy(p.prefixes[p.n:], q.prefixes[from:from+count])
	copy(p.ids[p.n:], q.ids[from:from+count])
	if p.kids != nil {
		copy(p.kids[p.n:], q.kids[from:from+count])
	} else {
		copy(p.values[p.n:], q.values[from:from+count])
	}
	p.n += count
}

// split leaves the first keep entries in p, which is owned, and gives the others
// in a page of their own.
func (p *page[V]) split(keep int) *page[V] {
	q := bare[V](p.owner, p.kids != nil)
	q.cols, q.lanes = make([]int64, len(p.cols)), make([]int32, len(p.lanes))
	q.move(p, keep, p.n-keep)
	p.clear(keep, p.n)
	p.n = keep
	return q
}

// separate makes the first key of kid the separator of child i.
func (p *page[V]) separate(cfg *config, i int, kid *page[V]) {
	columns := &cfg.innerKey
	if kid.kids == nil {
		columns = &cfg.leafKey
	}
	for j := range cfg.order {
		p.cols[cfg.innerKey[j]+i] = kid.cols[columns[j]]
	}
	p.prefixes[i], p.ids[i] = kid.prefixes[0], kid.ids[0]
}

// sum counts child i anew: its size and its maxima.
func (p *page[V]) sum(cfg *config, i, width int) {
	kid := p.kids[i]
	p.cols[cfg.sizes+i] = kid.size(cfg)
	for d := range width {
		p.cols[cfg.maxima+d*fan+i] = kid.most(cfg, d)
	}
}

// size is how many entries stand in and below a page.
func (p *page[V]) size(cfg *config) (n int64) {
	if p.kids == nil {
		return int64(p.n)
	}
	for _, s := range p.cols[cfg.sizes : cfg.sizes+p.n] {
		n += s
	}
	return n
}

// most is the maximum of a dimension in and below a page that is not empty.
func (p *page[V]) most(cfg *config, d int) int64 {
	column := p.column(cfg, d)
	most := column[0]
	for _, v := range column[1:] {
		most = max(most, v)
	}
	return most
}

// mostUpTo is most, where no value is above limit.
func (p *page[V]) mostUpTo(cfg *config, d int, limit int64) int64 {
	column := p.column(cfg, d)
	most := column[0]
	for _, v := range column {
		if v == limit {
			return v
		}
		most = max(most, v)
	}
	return most
}

// column is the availability in a leaf, the maxima of the children in an inner page.
func (p *page[V]) column(cfg *config, d int) []int64 {
	at := d * fan
	if p.kids != nil {
		at += cfg.maxima
	}
	return p.cols[at : at+p.n]
}

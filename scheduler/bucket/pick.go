package bucket

// picker finds the first entry of an order that is not the index's, by branch and
// bound over the pages.
type picker[V any] struct {
	*search[V]
	order []int
	cols  [MaxDims]int // where the columns of the order start in a leaf
	down  bool         // coordinates descend; IDs ascend all the same
	after *key         // only what comes behind it in this order; nil: all
	until *key         // nothing that comes behind it; nil: no end

	leaf *page[V] // the best so far
	at   int
	best key
}

// known returns the dimensions of an order that have columns: the others are 0 in all entries and
// order nothing.
func (s *search[V]) known(order []int) []int {
	out := order
	for j, d := range order {
		if d >= s.width {
			out = append([]int(nil), order[:j]...)
			for _, d := range order[j:] {
				if d < s.width {
					out = append(out, d)
				}
			}
			break
		}
	}
	return out
}

// lastIn returns the place of the entry given last, in the cursor's own order. In a dimension
// without a column all entries have 0, and are on one side of an entry of an index that had more in
// it.
func (s *search[V]) lastIn(c *Cursor[V]) (k key) {
	k.id, k.prefix = c.id, prefix(c.id)
	for _, d := range c.order {
		lo, hi := bounds(c.at[d], s.cfg.grain[d])
		switch {
		case d < s.width:
			k.lo[k.n], k.hi[k.n] = lo, hi
			k.n++
		case hi < 0 && c.policy == BestFit, lo > 0 && c.policy == LeastFit:
			k.edge = before
			return k
		case hi < 0, lo > 0:
			k.edge = behind
			return k
		}
	}
	return k
}

// pick finds the first suitable entry behind one key and not behind another, in
// an order of dimensions that is not the index's.
func (s *search[V]) pick(order []int, down bool, after, until *key) (*page[V], int) {
	all := s.filter
	defer func() { s.filter = all }()
	k := picker[V]{search: s, order: order, down: down, after: after, until: until}
	for j, d := range k.order {
		k.cols[j] = d * fan
	}
	if after != nil && after.n > 0 && !k.down {
		k.filter.raise(k.order[0], after.lo[0])
	}
	k.walk(s.root)
	return k.leaf, k.at
}

// walk goes through what may hold a better entry than the best so far. Where
// coordinates descend, the child with the largest maximum comes first, as long as
// the page budget lasts: what it holds leaves out most of the others.
func (k *picker[V]) walk(p *page[V]) {
	k.pages++
	if p.kids == nil {
		k.leafWalk(p)
		return
	}
	first := -1
	if k.down && len(k.order) > 0 && k.pages <= k.cfg.budget {
		column := p.column(k.order[0])
		for fit := k.filter.places(&p.cells, maxima); fit.any(); fit = fit.rest() {
			if i := fit.first(); first < 0 || p.at(column+i) > p.at(column+first) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		k.walk(p.kids[first])
	}
	fit := k.filter.places(&p.cells, maxima)
	if !k.down && p.kids[0].kids == nil {
		k.readAhead(p, fit, &k.filter) // most of them are walked
	}
	for ; fit.any(); fit = fit.rest() {
		// What was found below one child may leave out the next.
		if i := fit.first(); i != first && k.filter.fits(&p.columns, maxima, i) {
			k.walk(p.kids[i])
		}
	}
}

// leafWalk considers what fits. Where coordinates ascend, most is passed over
// because it has more of the first dimension than the best so far.
func (k *picker[V]) leafWalk(p *page[V]) {
	ascends := !k.down && len(k.order) > 0
	fit := p.used()
	if ascends && k.leaf != nil {
		if fit = fit.upTo(&p.columns, k.cols[0], k.best.hi[0]); !fit.any() {
			return
		}
	}
	for fit &= k.filter.places(&p.cells, 0); fit.any(); fit = fit.rest() {
		i := fit.first()
		if ascends && k.leaf != nil && p.at(k.cols[0]+i) > k.best.hi[0] {
			continue // since the last was considered
		}
		if k.filter.fits(&p.columns, 0, i) {
			k.consider(p, i)
		}
	}
}

// consider takes an entry that fits when it is better than the best so far. The
// best bounds what is still walked: nothing with less of the first dimension is
// better where coordinates descend.
func (k *picker[V]) consider(p *page[V], i int) {
	switch {
	case k.after != nil && k.compare(p, i, k.after) <= 0:
	case k.until != nil && k.compare(p, i, k.until) > 0:
	case k.leaf != nil && k.compare(p, i, &k.best) >= 0:
	default:
		k.leaf, k.at = p, i
		k.best.n = len(k.order)
		for j, d := range k.order {
			k.best.lo[j], k.best.hi[j] = bounds(p.at(k.cols[j]+i), k.cfg.grain[d])
		}
		k.best.id, k.best.prefix = p.ids[i], p.prefixes[i]
		if k.down && k.best.n > 0 {
			k.filter.raise(k.order[0], k.best.lo[0])
		}
	}
}

// compare returns where an entry stands to a key in the picker's order.
func (k *picker[V]) compare(p *page[V], i int, to *key) int {
	if !k.down {
		return p.compare(&p.columns, &k.cols, i, to)
	}
	for j := range to.n {
		v := p.at(k.cols[j] + i)
		if v > to.hi[j] {
			return -1
		}
		if v < to.lo[j] {
			return 1
		}
	}
	if to.edge != exact {
		return -int(to.edge)
	}
	return p.compareID(i, to)
}

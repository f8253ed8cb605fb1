package bucket

// search is one walk over the pages of an index, in the index's order. A page is
// visited only when, in each dimension that the ask looks at, the exact maximum
// below it is enough: no page without room in some dimension is walked, and so
// none outside the suitable region. When no maxima help, the walk is a scan of
// the packed columns of all leaves from its start on.
type search[V any] struct {
	cfg    *config
	root   *page[V]
	width  int
	filter filter
	rest   filter // filter without the first coordinate's dimension, for what is above enough
	enough int64  // values above it have a first coordinate above the ask's
	until  *key   // up: nothing above it, when not nil
	past   bool   // up: until was passed
	pages  int
}

func newSearch[V any](x *Index[V], need *Vector) (s search[V]) {
	s = search[V]{cfg: x.config(), root: x.root, width: x.width, filter: newFilter(need, x.width)}
	if len(s.cfg.order) > 0 {
		d := s.cfg.order[0]
		s.rest = s.filter.without(d)
		_, s.enough = bounds(max(0, need[d]), s.cfg.grain[d])
	}
	return s
}

// filterFor gives the filter for child i: when its separator is above the ask's
// first coordinate then so are all its keys, and that dimension is not looked at.
func (s *search[V]) filterFor(p *page[V], i int, f *filter) *filter {
	if i > 0 && len(s.cfg.order) > 0 && p.cols[i] > s.enough {
		return &s.rest
	}
	return f
}

// up finds the first entry above k that fits: its leaf and place, nil when there
// is none.
func (s *search[V]) up(k *key) (*page[V], int) {
	s.past = false
	return s.upIn(s.root, k, &s.filter)
}

func (s *search[V]) upIn(p *page[V], k *key, f *filter) (*page[V], int) {
	s.pages++
	if p.kids == nil {
		i := 0
		if k != nil {
			i = p.above(&s.cfg.leafKey, 0, k)
		}
		i = f.firstIn(&p.cells, i, p.n)
		if i == p.n {
			return nil, 0
		}
		if s.until != nil && p.compare(&s.cfg.leafKey, i, s.until) > 0 {
			s.past = true
			return nil, 0
		}
		return p, i
	}
	start := 0
	if k != nil {
		start = p.child(s.cfg, k)
	}
	maxima := p.cols[s.cfg.maxima:]
	for i := f.first(maxima, start, p.n); i < p.n; i = f.first(maxima, i+1, p.n) {
		from := k
		if i > start {
			from = nil
			if s.until != nil && p.compare(&s.cfg.innerKey, i, s.until) > 0 {
				s.past = true
				return nil, 0
			}
		}
		kid, g := p.kids[i], s.filterFor(p, i, f)
		if from == nil && kid.kids == nil && g.firstIn(&kid.cells, 0, kid.n) == kid.n {
			s.pages++ // a leaf with nothing: a scan is mostly these
			continue
		}
		if leaf, at := s.upIn(kid, from, g); leaf != nil || s.past {
			return leaf, at
		}
	}
	return nil, 0
}

// down finds the last entry below k, which is not exact, that fits; of all when k
// is nil.
func (s *search[V]) down(k *key) (*page[V], int) {
	return s.downIn(s.root, k, &s.filter)
}

func (s *search[V]) downIn(p *page[V], k *key, f *filter) (*page[V], int) {
	s.pages++
	end := p.n
	if p.kids == nil {
		if k != nil {
			end = p.above(&s.cfg.leafKey, 0, k)
		}
		if i := f.lastIn(&p.cells, end); i >= 0 {
			return p, i
		}
		return nil, 0
	}
	if k != nil {
		end = p.child(s.cfg, k) + 1
	}
	maxima := p.cols[s.cfg.maxima:]
	for i := f.last(maxima, end); i >= 0; i = f.last(maxima, i) {
		to := k
		if i < end-1 {
			to = nil
		}
		kid, g := p.kids[i], s.filterFor(p, i, f)
		if to == nil && kid.kids == nil && g.firstIn(&kid.cells, 0, kid.n) == kid.n {
			s.pages++
			continue
		}
		if leaf, at := s.downIn(kid, to, g); leaf != nil {
			return leaf, at
		}
	}
	return nil, 0
}

// rank finds the entry with r entries before it, r below the number of entries.
func (s *search[V]) rank(r int64) (*page[V], int) {
	p := s.root
	s.pages++
	for p.kids != nil {
		i := 0
		for sizes := p.cols[s.cfg.sizes:]; r >= sizes[i]; i++ {
			r -= sizes[i]
		}
		p = p.kids[i]
		s.pages++
	}
	return p, int(r)
}

// each gives every entry that fits, in order.
func (s *search[V]) each(p *page[V], visit func(p *page[V], i int)) {
	s.pages++
	if p.kids == nil {
		for i := s.filter.firstIn(&p.cells, 0, p.n); i < p.n; i = s.filter.firstIn(&p.cells, i+1, p.n) {
			visit(p, i)
		}
		return
	}
	maxima := p.cols[s.cfg.maxima:]
	for i := s.filter.first(maxima, 0, p.n); i < p.n; i = s.filter.first(maxima, i+1, p.n) {
		s.each(p.kids[i], visit)
	}
}

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
	until  *key // up: nothing above it, when not nil
	past   bool // up: until was passed
	pages  int
}

// up finds the first entry above k that fits: its leaf and place, nil when there
// is none.
func (s *search[V]) up(p *page[V], k *key) (*page[V], int) {
	s.past = false
	return s.upIn(p, k)
}

func (s *search[V]) upIn(p *page[V], k *key) (*page[V], int) {
	s.pages++
	if p.kids == nil {
		i := 0
		if k != nil {
			i = p.above(&s.cfg.leafKey, 0, k)
		}
		i = s.filter.first(p.cols, i, p.n)
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
	for i := s.filter.first(maxima, start, p.n); i < p.n; i = s.filter.first(maxima, i+1, p.n) {
		from := k
		if i > start {
			from = nil
			if s.until != nil && p.compare(&s.cfg.innerKey, i, s.until) > 0 {
				s.past = true
				return nil, 0
			}
		}
		if leaf, at := s.upIn(p.kids[i], from); leaf != nil || s.past {
			return leaf, at
		}
	}
	return nil, 0
}

// down finds the last entry below k, which is not exact, that fits; of all when k
// is nil.
func (s *search[V]) down(p *page[V], k *key) (*page[V], int) {
	s.pages++
	end := p.n
	if p.kids == nil {
		if k != nil {
			end = p.above(&s.cfg.leafKey, 0, k)
		}
		if i := s.filter.last(p.cols, end); i >= 0 {
			return p, i
		}
		return nil, 0
	}
	if k != nil {
		end = p.child(s.cfg, k) + 1
	}
	maxima := p.cols[s.cfg.maxima:]
	for i := s.filter.last(maxima, end); i >= 0; i = s.filter.last(maxima, i) {
		to := k
		if i < end-1 {
			to = nil
		}
		if leaf, at := s.down(p.kids[i], to); leaf != nil {
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
	cols := p.cols
	if p.kids != nil {
		cols = cols[s.cfg.maxima:]
	}
	for i := s.filter.first(cols, 0, p.n); i < p.n; i = s.filter.first(cols, i+1, p.n) {
		if p.kids != nil {
			s.each(p.kids[i], visit)
		} else {
			visit(p, i)
		}
	}
}

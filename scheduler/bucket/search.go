package bucket

// search is one walk over the pages of an index, in the index's order. A page is visited only when,
// in each dimension that the request looks at, the exact maximum below it is enough: no page
// without room in some dimension is walked, and so none outside the suitable region. When no maxima
// help, the walk is a scan of the packed columns of all leaves from its start on.
type search[V any] struct {
	cfg    *config
	root   *page[V]
	width  int
	filter filter
	rest   filter // filter without the first coordinate's dimension, for what is above enough
	enough int64  // values above it have a first coordinate above the request's
	until  *key   // up: nothing above it, when not nil
	past   bool   // up: until was passed
	pages  int

	window int // how many leaves are read ahead next
	ahead  int // what was read ahead: it is of no use
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

// filterFor returns the filter for child i: when its separator is above the request's first
// coordinate then so are all its keys, and that dimension is not looked at.
func (s *search[V]) filterFor(p *page[V], i int, f *filter) *filter {
	if i > 0 && len(s.cfg.order) > 0 && p.seps.at(i) > s.enough {
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
		return s.upLeaf(p, k, f)
	}
	if k == nil {
		return s.upFrom(p, 0, f)
	}
	start := p.child(s.cfg, k)
	if f.fits(&p.columns, maxima, start) { // where most searches end
		if leaf, at := s.upIn(p.kids[start], k, s.filterFor(p, start, f)); leaf != nil || s.past {
			return leaf, at
		}
	}
	return s.upFrom(p, start+1, f)
}

func (s *search[V]) upLeaf(p *page[V], k *key, f *filter) (*page[V], int) {
	i := 0
	if k != nil {
		i = p.place(s.cfg, k)
	}
	if i < p.n && !f.fits(&p.columns, 0, i) {
		i = f.firstOf(f.in(&p.cells).from(i), &p.columns, 0, p.n)
	}
	if i == p.n {
		return nil, 0
	}
	if s.until != nil && p.inLeaf(s.cfg, i, s.until) > 0 {
		s.past = true
		return nil, 0
	}
	return p, i
}

// upFrom looks below the children of an inner page from one on.
func (s *search[V]) upFrom(p *page[V], from int, f *filter) (*page[V], int) {
	if from == p.n {
		return nil, 0
	}
	var read places
	for fit := f.places(&p.cells, maxima).from(from); fit.any(); fit = fit.rest() {
		i := fit.first()
		if (p.wide != nil || f.cut) && !f.fits(&p.columns, maxima, i) {
			continue
		}
		if i > 0 && s.until != nil && p.inInner(s.cfg, i, s.until) > 0 {
			s.past = true
			return nil, 0
		}
		kid, g := p.kids[i], s.filterFor(p, i, f)
		if kid.kids == nil {
			if !read.has(i) {
				s.window = min(max(2, 2*s.window), fan)
				read = fit.below(i + s.window)
				s.readAhead(p, read, g)
			}
			if !g.in(&kid.cells).any() {
				s.pages++ // a leaf with nothing: a scan is mostly these
				continue
			}
		}
		if leaf, at := s.upIn(kid, nil, g); leaf != nil || s.past {
			return leaf, at
		}
	}
	return nil, 0
}

// readAhead reads a part of what a scan will read of the leaves at some places. A
// scan waits for memory more than for anything else, leaf after leaf. Here nothing
// waits for what was read before, so it all comes at once.
func (s *search[V]) readAhead(p *page[V], set places, f *filter) {
	sum := 0
	for rest := set; rest.any(); rest = rest.rest() {
		sum += p.kids[rest.first()].n
	}
	for rest := set; rest.any(); rest = rest.rest() {
		lanes := p.kids[rest.first()].lanes
		for k := range min(f.n, 3) {
			l := (*[fan]int32)(lanes[f.dim[k]*fan:])
			sum += int(l[0] | l[fan/2])
		}
	}
	s.ahead = sum
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
			end = p.place(s.cfg, k)
		}
		if i := f.lastOf(f.in(&p.cells).below(end), &p.columns, 0); i >= 0 {
			return p, i
		}
		return nil, 0
	}
	if k != nil {
		end = p.child(s.cfg, k) + 1
	}
	var read places
	for fit := f.places(&p.cells, maxima).below(end); fit.any(); {
		i := fit.last()
		fit = fit.below(i)
		if (p.wide != nil || f.cut) && !f.fits(&p.columns, maxima, i) {
			continue
		}
		to := k
		if i < end-1 {
			to = nil
		}
		kid, g := p.kids[i], s.filterFor(p, i, f)
		if to == nil && kid.kids == nil && !read.has(i) {
			s.window = min(max(2, 2*s.window), fan)
			read = fit.from(max(0, i+1-s.window)) | 1<<i
			s.readAhead(p, read, g)
		}
		if to == nil && kid.kids == nil && !g.in(&kid.cells).any() {
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
		for ; r >= p.at(sizes+i); i++ {
			r -= p.at(sizes + i)
		}
		p = p.kids[i]
		s.pages++
	}
	return p, int(r)
}

// each returns every entry that fits, in order.
func (s *search[V]) each(p *page[V], visit func(p *page[V], i int)) {
	s.pages++
	if p.kids == nil {
		for fit := s.filter.in(&p.cells); fit.any(); fit = fit.rest() {
			if i := fit.first(); s.filter.fits(&p.columns, 0, i) {
				visit(p, i)
			}
		}
		return
	}
	for fit := s.filter.places(&p.cells, maxima); fit.any(); fit = fit.rest() {
		if i := fit.first(); s.filter.fits(&p.columns, maxima, i) {
			s.each(p.kids[i], visit)
		}
	}
}

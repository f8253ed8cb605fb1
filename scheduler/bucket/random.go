package bucket

import "math/bits"

// randomTries is how many entries Random draws by rank, of all, before it goes
// through the suitable ones. Where one in ten suits it goes on to that once in 800
// searches.
const randomTries = 64

// random draws one of the suitable entries that were not offered yet, each with
// the same chance.
func (c *Cursor[V]) random(s *search[V]) (*page[V], int) {
	count := int(s.root.size())
	for range randomTries {
		p, i := s.rank(int64(c.draw(count)))
		if s.filter.fits(&p.columns, 0, i) && c.fresh(p.ids[i]) {
			Add(nil, &c.given, p.ids[i], Vector{}, struct{}{})
			return p, i
		}
	}
	var leaf *page[V]
	at, seen := 0, 0
	s.each(s.root, func(p *page[V], i int) {
		if !c.fresh(p.ids[i]) {
			return
		}
		seen++
		if c.draw(seen) == 0 { // the k-th takes the place with chance 1/k
			leaf, at = p, i
		}
	})
	if leaf != nil {
		Add(nil, &c.given, leaf.ids[at], Vector{}, struct{}{})
	}
	return leaf, at
}

// fresh reports whether an entry was not offered yet.
func (c *Cursor[V]) fresh(id string) bool {
	return !c.skipped(id) && !has(&c.given, id)
}

// has reports whether an index ordered by ID holds one.
func has[V any](x *Index[V], id string) bool {
	p := x.root
	if p == nil {
		return false
	}
	cfg := x.config()
	k := key{id: id, prefix: prefix(id)}
	for p.kids != nil {
		p = p.kids[p.child(cfg, &k)]
	}
	i := p.place(cfg, &k) - 1
	return i >= 0 && p.compareID(i, &k) == 0
}

// draw returns a number in [0, n), the next of the sequence that the seed makes (splitmix64).
func (c *Cursor[V]) draw(n int) int {
	c.drawn++
	z := c.seed + c.drawn*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	hi, _ := bits.Mul64(z^z>>31, uint64(n))
	return int(hi)
}

package bucket

import (
	"cmp"
	"slices"
)

// Policy is the order in which a search offers the suitable entries.
type Policy uint8

// The policies. Equal coordinates are offered by ascending ID under each of the
// first two.
const (
	BestFit  Policy = iota // least availability first: coordinates ascend
	LeastFit               // most availability first: coordinates descend
	FirstFit               // by ID
	NextFit                // by ID, from behind Query.After, and round once
	Random                 // uniform over the suitable entries that it has not offered yet, from Query.Seed
)

// Query describes what a search looks for.
type Query[V any] struct {
	// Need is the exact request. Dimensions with nothing or less are not looked at.
	Need   Vector
	Policy Policy
	Seed   uint64 // of Random
	// Order is the requesting job's own order of dimensions, for BestFit and LeastFit.
	// nil: the index's. Not nil and empty: by ID.
	Order []int
	// After is the ID where the last search ended, for NextFit. Empty: from the start.
	After string
	// First are nodes reserved for the request, with their availability for it: those
	// that fit are offered first, in policy order, and none of them is offered again.
	First []Entry[V]
	// Candidates, when not nil, are all that may be offered: with the availability
	// they state, in policy order, those in First first.
	Candidates []Entry[V]
}

// Cursor goes through what suits a query. It is a small value; a copy goes on by
// itself. It holds no page: it goes on behind the entry that it returned last, in the
// index as it is then. It must be given the index of the search, or one that was
// made from it.
type Cursor[V any] struct {
	need   Vector
	policy Policy
	order  []int
	own    bool // order is not the index's
	after  string
	seed   uint64

	listed  []Entry[V] // still to be offered before the index: in policy order, all fit
	only    bool       // the index is not searched
	skip    []string   // never offered from the index; sorted
	started bool       // at, id: the entry given last
	leap    bool       // its coordinates are passed over
	wrapped bool       // NextFit has gone round: id is of the second part
	at      Vector
	id      string
	drawn   uint64
	given   Index[struct{}] // Random: what it has offered
	pages   int
}

// Search prepares a query: it looks at no page. Sorts First and Candidates,
// O(k log k); nothing else to be paid.
func Search[V any](x *Index[V], q Query[V]) Cursor[V] {
	cfg := x.config()
	c := Cursor[V]{need: q.Need, policy: q.Policy, after: q.After, seed: q.Seed}
	switch q.Policy {
	case BestFit, LeastFit:
		c.order = cfg.order
		if q.Order != nil {
			c.order = dims(q.Order)
			c.own = !slices.Equal(c.order, cfg.order)
		}
	default:
		c.own = len(cfg.order) > 0 && q.Policy != Random
	}
	if len(q.First) == 0 && q.Candidates == nil {
		return c
	}
	c.list(cfg, &q)
	return c
}

// list makes the list of what is offered before the index.
func (c *Cursor[V]) list(cfg *config, q *Query[V]) {
	c.only = q.Candidates != nil
	allowed := ids(q.Candidates)
	first := make([]Entry[V], 0, len(q.First))
	for _, e := range q.First {
		if _, ok := slices.BinarySearch(allowed, e.ID); e.At.Fits(&c.need) && (ok || !c.only) {
			first = append(first, e)
		}
	}
	c.skip = ids(q.First)
	c.arrange(cfg, first)
	c.listed = first
	if !c.only {
		return
	}
	others := make([]Entry[V], 0, len(q.Candidates))
	for _, e := range q.Candidates {
		if e.At.Fits(&c.need) && !c.skipped(e.ID) {
			others = append(others, e)
		}
	}
	c.arrange(cfg, others)
	c.listed = append(c.listed, others...)
}

func ids[V any](entries []Entry[V]) []string {
	if len(entries) == 0 {
		return nil
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.ID)
	}
	slices.Sort(out)
	return out
}

func (c *Cursor[V]) skipped(id string) bool {
	_, found := slices.BinarySearch(c.skip, id)
	return found
}

// arrange puts entries in policy order.
func (c *Cursor[V]) arrange(cfg *config, list []Entry[V]) {
	slices.SortStableFunc(list, func(a, b Entry[V]) int {
		switch c.policy {
		case BestFit, LeastFit:
			for _, d := range c.order {
				n := cmp.Compare(coordinate(a.At[d], cfg.grain[d]), coordinate(b.At[d], cfg.grain[d]))
				if c.policy == LeastFit {
					n = -n
				}
				if n != 0 {
					return n
				}
			}
		case FirstFit, Random:
		case NextFit: // what is behind After comes before what is not
			if ra, rb := a.ID > c.after, b.ID > c.after; ra != rb {
				if ra {
					return -1
				}
				return 1
			}
		}
		return cmp.Compare(a.ID, b.ID)
	})
	if c.policy == Random {
		for i := len(list) - 1; i > 0; i-- {
			j := c.draw(i + 1)
			list[i], list[j] = list[j], list[i]
		}
	}
}

// Leap has Next pass over what has the coordinates of the entry that it returned last:
// who has seen one of them has seen all. It is for BestFit and LeastFit.
func (c *Cursor[V]) Leap() { c.leap = c.started }

// Pages is how many pages the cursor has visited so far: inner pages and leaves,
// whether it was led to them or went through them in a scan.
func (c *Cursor[V]) Pages() int { return c.pages }

// Next returns the next suitable entry behind the one it returned last, in the index as it is now;
// false when there is none. What it returns fits exactly. An entry that was moved since is offered
// again if its new place is behind: who has just taken something of a node looks at that node first
// by himself. After false, Next may be called again when the index has changed.
func (c *Cursor[V]) Next(x *Index[V]) (Entry[V], bool) {
	if len(c.listed) > 0 {
		e := c.listed[0]
		c.listed = c.listed[1:]
		return e, true
	}
	if c.only || x.root == nil {
		return Entry[V]{}, false
	}
	s := newSearch(x, &c.need)
	if s.filter.beyond {
		return Entry[V]{}, false
	}
	var p *page[V]
	var i int
	if len(c.skip) == 0 || c.policy == Random {
		p, i = c.seek(&s)
	} else {
		p, i = c.seekPast(&s)
	}
	c.pages += s.pages
	if p == nil {
		return Entry[V]{}, false
	}
	c.keep(p, i, x.width)
	return Entry[V]{ID: c.id, At: c.at, Value: p.values[i]}, true
}

// Offer returns what Next would give of a query that lists nothing, one after the other, and costs
// less: nothing is looked for anew. It passes over what has the coordinates of an entry that take
// took, and ends after so many entries, or so many taken.
func Offer[V any](x *Index[V], q Query[V], entries, taken int, take func(Entry[V]) bool) {
	q.First, q.Candidates = nil, nil
	c := Search(x, q)
	if x.root == nil {
		return
	}
	s := newSearch(x, &c.need)
	if s.filter.beyond {
		return
	}
	for range entries {
		s.until, s.window = nil, 0
		p, i := c.seek(&s)
		if p == nil {
			return
		}
		c.keep(p, i, x.width)
		if !take(Entry[V]{ID: c.id, At: c.at, Value: p.values[i]}) {
			continue
		}
		if taken--; taken == 0 {
			return
		}
		c.Leap()
	}
}

func (c *Cursor[V]) keep(p *page[V], i, width int) {
	c.at, c.id, c.started, c.leap = p.vector(i, width), p.ids[i], true, false
}

// seekPast is seek, but passes over what is not to be offered again.
func (c *Cursor[V]) seekPast(s *search[V]) (*page[V], int) {
	was := *c
	p, i := c.seek(s)
	for p != nil && c.skipped(p.ids[i]) {
		c.keep(p, i, s.width)
		p, i = c.seek(s)
	}
	if p == nil {
		*c = was // it goes on behind what it returned, not behind what it passed over
	}
	return p, i
}

// seek finds the next suitable entry: its leaf and place, nil when there is none.
func (c *Cursor[V]) seek(s *search[V]) (*page[V], int) {
	switch c.policy {
	case Random:
		return c.random(s)
	case NextFit:
		return c.round(s)
	case BestFit, LeastFit, FirstFit:
	}
	if c.own {
		order := s.known(c.order)
		if !c.started {
			return s.pick(order, c.policy == LeastFit, nil, nil)
		}
		after := s.lastIn(c)
		if c.leap && after.edge == exact {
			after.edge = behind
		}
		return s.pick(order, c.policy == LeastFit, &after, nil)
	}
	if c.policy == LeastFit {
		return c.descend(s)
	}
	return c.ascend(s)
}

// ascend goes on in the order of the index.
func (c *Cursor[V]) ascend(s *search[V]) (*page[V], int) {
	var k key
	if c.started {
		s.cfg.key(&k, &c.at, c.id)
		if c.leap {
			k.edge = behind
		}
		return s.up(&k)
	}
	// What is below the request's own coordinates cannot fit. A dimension that is not looked at may
	// be below zero: there the bound ends.
	s.cfg.keyIn(s.cfg.order, &k, &c.need)
	k.n, k.edge = 0, before
	for _, d := range s.cfg.order {
		if c.need[d] <= 0 {
			break
		}
		k.n++
	}
	return s.up(&k)
}

// descend goes on in the reverse order of coordinates, where equal ones are in the
// order of ID: first through those of the coordinates given last, then to the
// largest coordinates below them where something fits.
func (c *Cursor[V]) descend(s *search[V]) (*page[V], int) {
	var k key
	var p *page[V]
	var i int
	if c.started {
		s.cfg.key(&k, &c.at, c.id)
		if !c.leap {
			until := k
			until.edge = behind
			s.until = &until
			if p, i = s.up(&k); p != nil {
				return p, i
			}
			s.until = nil
		}
		k.edge = before
		p, i = s.down(&k)
	} else {
		p, i = s.down(nil)
	}
	if p == nil {
		return nil, 0
	}
	at := p.vector(i, s.width)
	s.cfg.keyIn(s.cfg.order, &k, &at)
	k.edge = before
	if i > 0 && p.inLeaf(s.cfg, i-1, &k) < 0 {
		return p, i // the only one of its coordinates so far
	}
	return s.up(&k)
}

// round goes on by ID from behind After, and once the end is reached from the
// start up to After.
func (c *Cursor[V]) round(s *search[V]) (*page[V], int) {
	if c.wrapped {
		return c.byID(s, c.id, true, true)
	}
	from := c.after
	if c.started {
		from = c.id
	}
	p, i := c.byID(s, from, c.started || c.after != "", false)
	if p == nil && c.after != "" {
		p, i = c.byID(s, "", false, true)
		c.wrapped = p != nil
	}
	return p, i
}

// byID finds the next suitable entry by ID: behind from when that is stated, up
// to After when that ends it.
func (c *Cursor[V]) byID(s *search[V], from string, stated, ends bool) (*page[V], int) {
	var after, until *key
	if stated {
		after = &key{id: from, prefix: prefix(from)}
	}
	if ends {
		until = &key{id: c.after, prefix: prefix(c.after)}
	}
	if c.own {
		return s.pick(nil, false, after, until)
	}
	s.until = until
	return s.up(after)
}

package bucket

// Test is something that an entry's availability must have: at least Min of Dim or, where
// OrMin is above zero, at least OrMin of OrDim instead.
type Test struct {
	Dim   int
	Min   int64
	OrDim int
	OrMin int64
}

// Met reports whether an availability passes.
func (t *Test) Met(at *Vector) bool {
	return at[t.Dim] >= t.Min || t.OrMin > 0 && at[t.OrDim] >= t.OrMin
}

// Sieve counts for each test the entries that fail it and none before it, and visits those
// that pass all, in order. A branch whose maxima fail the first test is only counted. O(n) at
// worst, but for an entry that fails it costs a few comparisons.
func Sieve[V any](x *Index[V], tests []Test, visit func(Entry[V])) []int {
	s := sieve[V]{tests: tests, width: x.width, failed: make([]int, len(tests)), visit: visit}
	if x.root != nil {
		s.page(x.root)
	}
	return s.failed
}

type sieve[V any] struct {
	tests  []Test
	width  int
	failed []int
	visit  func(Entry[V])
}

func (s *sieve[V]) page(p *page[V]) {
	for i := range p.n {
		switch {
		case p.kids == nil:
			if failed := s.first(p, i); failed < 0 {
				s.visit(p.entry(i, s.width))
			} else {
				s.failed[failed]++
			}
		case len(s.tests) > 0 && !s.met(p, i, &s.tests[0]):
			s.failed[0] += int(p.at(sizes + i))
		default:
			s.page(p.kids[i])
		}
	}
}

// first is the first test that an entry fails; -1: none.
func (s *sieve[V]) first(p *page[V], i int) int {
	for k := range s.tests {
		if !s.met(p, i, &s.tests[k]) {
			return k
		}
	}
	return -1
}

// met tests an entry of a leaf, or the maxima of a child.
func (s *sieve[V]) met(p *page[V], i int, t *Test) bool {
	return s.value(p, i, t.Dim) >= t.Min || t.OrMin > 0 && s.value(p, i, t.OrDim) >= t.OrMin
}

func (s *sieve[V]) value(p *page[V], i, dim int) int64 {
	if dim >= s.width {
		return 0
	}
	return p.at(p.column(dim) + i)
}

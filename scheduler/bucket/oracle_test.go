package bucket_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

type entry = bucket.Entry[int]

// oracle is the dumb index: all entries in no order, every question a linear scan.
type oracle struct {
	config  bucket.Config
	entries []entry
}

func (o *oracle) clone() *oracle {
	return &oracle{config: o.config, entries: slices.Clone(o.entries)}
}

func (o *oracle) find(id string) int {
	return slices.IndexFunc(o.entries, func(e entry) bool { return e.ID == id })
}

func (o *oracle) coordinate(at bucket.Vector, d int) int64 {
	g := max(1, o.config.Granularity[d])
	c := at[d] / g
	if at[d] > 0 && at[d]%g != 0 {
		c++
	}
	return c
}

// compare is the order of BestFit, or of LeastFit when down.
func (o *oracle) compare(order []int, down bool, a, b entry) int {
	for _, d := range order {
		if n := cmp.Compare(o.coordinate(a.At, d), o.coordinate(b.At, d)); n != 0 {
			if down {
				return -n
			}
			return n
		}
	}
	return cmp.Compare(a.ID, b.ID)
}

func (o *oracle) sorted() []entry {
	out := slices.Clone(o.entries)
	slices.SortFunc(out, func(a, b entry) int { return o.compare(o.config.Order, false, a, b) })
	return out
}

func fits(at, need bucket.Vector) bool {
	for d := range need {
		if need[d] > 0 && at[d] < need[d] {
			return false
		}
	}
	return true
}

// check compares the whole index with the oracle.
func (o *oracle) check(x *bucket.Index[int]) error {
	if err := bucket.Check(x); err != nil {
		return err
	}
	if x.Len() != len(o.entries) {
		return fmt.Errorf("Len is %d, want %d", x.Len(), len(o.entries))
	}
	var most bucket.Vector
	for d := range most {
		if len(o.entries) > 0 {
			most[d] = math.MinInt64
		}
		for _, e := range o.entries {
			most[d] = max(most[d], e.At[d])
		}
	}
	if got := x.Max(); got != most {
		return fmt.Errorf("Max is %v, want %v", got, most)
	}
	return nil
}

// same compares all entries in order.
func (o *oracle) same(x *bucket.Index[int]) error {
	want := o.sorted()
	i := 0
	for e := range x.All {
		if i >= len(want) || e != want[i] {
			return fmt.Errorf("entry %d is %v, want %v", i, e, want[min(i, len(want)-1)])
		}
		i++
	}
	if i != len(want) {
		return fmt.Errorf("All gives %d entries, want %d", i, len(want))
	}
	first, ok := x.Any()
	if ok != (len(want) > 0) || ok && first != want[0] {
		return fmt.Errorf("Any is %v, %t", first, ok)
	}
	return nil
}

// walk is the dumb cursor.
type walk struct {
	query  bucket.Query[int]
	listed []entry // First and Candidates that fit, still to come
	skip   []string
	last   *entry
	given  map[string]bool
}

func (o *oracle) search(q bucket.Query[int]) *walk {
	w := &walk{query: q, given: map[string]bool{}}
	named := func(list []entry, id string) bool {
		return slices.ContainsFunc(list, func(e entry) bool { return e.ID == id })
	}
	var first, others []entry
	for _, e := range q.First {
		w.skip = append(w.skip, e.ID)
		if fits(e.At, q.Need) && (q.Candidates == nil || named(q.Candidates, e.ID)) {
			first = append(first, e)
		}
	}
	for _, e := range q.Candidates {
		if fits(e.At, q.Need) && !named(q.First, e.ID) {
			others = append(others, e)
		}
	}
	slices.SortFunc(first, func(a, b entry) int { return o.before(w, a, b) })
	slices.SortFunc(others, func(a, b entry) int { return o.before(w, a, b) })
	w.listed = append(first, others...)
	return w
}

// before is the policy's order (that of Random is anybody's guess).
func (o *oracle) before(w *walk, a, b entry) int {
	switch w.query.Policy {
	case bucket.BestFit, bucket.LeastFit:
		order := o.config.Order
		if w.query.Order != nil {
			order = w.query.Order
		}
		return o.compare(order, w.query.Policy == bucket.LeastFit, a, b)
	case bucket.NextFit:
		turn := func(e entry) int {
			if w.query.After != "" && e.ID <= w.query.After {
				return 1
			}
			return 0
		}
		if n := cmp.Compare(turn(a), turn(b)); n != 0 {
			return n
		}
	}
	return cmp.Compare(a.ID, b.ID)
}

// next compares what a cursor gave with what must come.
func (o *oracle) next(w *walk, got entry, ok bool) error {
	if w.query.Policy == bucket.Random {
		return o.nextRandom(w, got, ok)
	}
	want, found := o.due(w)
	if ok != found || ok && got != want {
		return fmt.Errorf("query %+v behind %v gives %v, %t; want %v, %t", w.query, w.last, got, ok, want, found)
	}
	return nil
}

func (o *oracle) due(w *walk) (best entry, found bool) {
	if len(w.listed) > 0 {
		best, w.listed = w.listed[0], w.listed[1:]
		return best, true
	}
	if w.query.Candidates != nil {
		return best, false
	}
	for _, e := range o.entries {
		if !fits(e.At, w.query.Need) || slices.Contains(w.skip, e.ID) {
			continue
		}
		if w.last != nil && o.before(w, e, *w.last) <= 0 {
			continue
		}
		if !found || o.before(w, e, best) < 0 {
			best, found = e, true
		}
	}
	if found {
		w.last = &best
	}
	return best, found
}

func (o *oracle) nextRandom(w *walk, got entry, ok bool) error {
	if len(w.listed) > 0 {
		i := slices.Index(w.listed, got)
		if !ok || i < 0 {
			return fmt.Errorf("random gives %v, %t; want one of %v", got, ok, w.listed)
		}
		// Those of First come first.
		if at := slices.Index(w.skip, got.ID); at < 0 {
			for _, e := range w.listed {
				if slices.Contains(w.skip, e.ID) {
					return fmt.Errorf("random gives %v before the reserved %v", got, e)
				}
			}
		}
		w.listed = slices.Delete(w.listed, i, i+1)
		return nil
	}
	left := func(e entry) bool {
		return fits(e.At, w.query.Need) && !w.given[e.ID] && !slices.Contains(w.skip, e.ID) && w.query.Candidates == nil
	}
	if !ok {
		if slices.ContainsFunc(o.entries, left) {
			return fmt.Errorf("random gives none for %v; some are left", w.query.Need)
		}
		return nil
	}
	if !slices.Contains(o.entries, got) || !left(got) {
		return fmt.Errorf("random gives %v for %v: not left", got, w.query.Need)
	}
	w.given[got.ID] = true
	return nil
}

package search

import (
	"cmp"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// sorter compares nodes as the indexes do.
type sorter struct {
	order []int
	step  bucket.Vector
	most  bool // most room first
}

// newSorter returns the order of nodes by free room: least first, or most; order is a job's own order of dimensions, nil for the World's.
func newSorter(c bucket.Config, order []int, most bool) sorter {
	if order == nil {
		order = c.Order
	}
	return sorter{order, c.Granularity, most}
}

// compare orders two entries of different indexes.
func (s *sorter) compare(a, b *bucket.Entry[*world.NodeState]) int {
	return s.compareAt(&a.At, &b.At, a.ID, b.ID)
}

// compareAt orders two nodes by what they have available, then by ID.
func (s *sorter) compareAt(a, b *bucket.Vector, aID, bID string) int {
	for _, d := range s.order {
		x, y := a[d], b[d]
		if step := s.step[d]; step > 1 {
			x, y = coordinate(x, step), coordinate(y, step)
		}
		if x != y {
			return cmp.Compare(x, y) * s.sign()
		}
	}
	return strings.Compare(aID, bID)
}

func (s *sorter) sign() int {
	if s.most {
		return -1
	}
	return 1
}

// coordinate divides and rounds up.
func coordinate(v, step int64) int64 {
	q := v / step
	if v%step > 0 {
		q++
	}
	return q
}

package rpc

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Created is when something was made: the index, and its ID among those of one index.
type Created struct {
	Index uint64
	ID    string
}

// Token returns it as the token of a page.
func (c Created) Token() string { return strconv.FormatUint(c.Index, 10) + "." + c.ID }

// Compare orders by when things were made.
func (c Created) Compare(o Created) int {
	return cmp.Or(cmp.Compare(c.Index, o.Index), cmp.Compare(c.ID, o.ID))
}

func parseCreated(token string) (Created, error) {
	index, id, ok := strings.Cut(token, ".")
	n, err := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil {
		return Created{}, structs.Errorf(structs.CodeBadRequest, "next_token %q: not a token that this list returned", structs.CutText(token, MaxNamed)).
			WithHint("a list without a prefix has tokens such as 12.9ecffbba-73be-d909-5d7e-ac2694c10e0c; begin again without one")
	}
	return Created{n, id}, nil
}

// Chronological returns items in the order in which they were made, or backwards, from a page's first one on. Of pages, only
// what is requested is sorted.
func Chronological[T any](opts *structs.QueryOptions, items iter.Seq[T], of func(T) Created, compare func(a, b T) int) (iter.Seq[T], error) {
	var from Created
	if opts.NextToken != "" {
		var err error
		if from, err = parseCreated(opts.NextToken); err != nil {
			return nil, err
		}
	}
	order := compare
	if opts.Reverse {
		order = func(a, b T) int { return compare(b, a) }
	}
	h := &sorting[T]{order: order}
	for item := range items {
		if opts.NextToken != "" {
			if c := of(item).Compare(from); c < 0 && !opts.Reverse || c > 0 && opts.Reverse {
				continue
			}
		}
		h.items = append(h.items, item)
	}
	if opts.PerPage <= 0 {
		slices.SortFunc(h.items, order)
		return slices.Values(h.items), nil
	}
	heap.Init(h)
	return func(yield func(T) bool) {
		for h.Len() > 0 {
			if item, _ := heap.Pop(h).(T); !yield(item) {
				return
			}
		}
	}, nil
}

// sorting is a heap of items.
type sorting[T any] struct {
	items []T
	order func(a, b T) int
}

// Len is for heap.
func (s *sorting[T]) Len() int { return len(s.items) }

// Less is for heap.
func (s *sorting[T]) Less(i, j int) bool { return s.order(s.items[i], s.items[j]) < 0 }

// Swap is for heap.
func (s *sorting[T]) Swap(i, j int) { s.items[i], s.items[j] = s.items[j], s.items[i] }

// Push is for heap.
func (s *sorting[T]) Push(item any) {
	if t, ok := item.(T); ok {
		s.items = append(s.items, t)
	}
}

// Pop is for heap.
func (s *sorting[T]) Pop() any {
	last := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return last
}

// Listed is the items of a list from a page's first one on, and their tokens.
type Listed[T any] struct {
	Items func(yield func(T) bool)
	Token func(T) string
}

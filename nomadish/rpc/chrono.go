package rpc

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// created is when something was made: the index, and its ID among those of one index. As a text it is a token of pages.
type created struct {
	index uint64
	id    string
}

func (c created) token() string { return strconv.FormatUint(c.index, 10) + "." + c.id }

func (c created) compare(o created) int {
	return cmp.Or(cmp.Compare(c.index, o.index), cmp.Compare(c.id, o.id))
}

func parseCreated(token string) (created, error) {
	index, id, ok := strings.Cut(token, ".")
	n, err := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil {
		return created{}, structs.Errorf(structs.CodeBadRequest, "next_token %q: not one that this list gave", structs.CutText(token, maxNamed)).
			WithHint("a list without a prefix has tokens such as 12.9ecffbba-73be-d909-5d7e-ac2694c10e0c; begin again without one")
	}
	return created{n, id}, nil
}

// chronological gives items in the order in which they were made, or backwards, from a page's first one on. Of pages, only
// what is asked for is sorted.
func chronological[T any](opts *structs.QueryOptions, items iter.Seq[T], of func(T) created, compare func(a, b T) int) (iter.Seq[T], error) {
	var from created
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
			if c := of(item).compare(from); c < 0 && !opts.Reverse || c > 0 && opts.Reverse {
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

func evalCreated(ev *structs.Evaluation) created { return created{ev.CreateIndex, ev.ID} }

// listed is the items of a list from a page's first one on, and their tokens.
type listed[T any] struct {
	items func(yield func(T) bool)
	token func(T) string
}

// evalsListed gives the evaluations of a list in its order: by ID if a prefix of it is asked for, else as they were made.
func evalsListed(ws *state.WatchSet, snap *state.Snapshot, args *structs.EvalListRequest) (listed[*structs.Evaluation], error) {
	all := matching(ws, snap, args)
	if args.Prefix != "" {
		token := func(ev *structs.Evaluation) string { return ev.ID }
		return listed[*structs.Evaluation]{fromToken(&args.QueryOptions, all, token), token}, nil
	}
	sorted, err := chronological(&args.QueryOptions, all, evalCreated, func(a, b *structs.Evaluation) int {
		return evalCreated(a).compare(evalCreated(b))
	})
	return listed[*structs.Evaluation]{sorted, func(ev *structs.Evaluation) string { return evalCreated(ev).token() }}, err
}

// allocsListed is evalsListed for allocations, of which stub makes lines.
func allocsListed(
	ws *state.WatchSet, snap *state.Snapshot, args *structs.QueryOptions, stub func(*structs.Allocation) *structs.AllocListStub,
) (listed[*structs.AllocListStub], error) {
	ns := namespaceOf(args)
	stubs := func(all iter.Seq[*structs.Allocation]) func(yield func(*structs.AllocListStub) bool) {
		return func(yield func(*structs.AllocListStub) bool) {
			for a := range all {
				if !yield(stub(a)) {
					return
				}
			}
		}
	}
	if args.Prefix != "" {
		token := func(a *structs.AllocListStub) string { return a.ID }
		return listed[*structs.AllocListStub]{fromToken(args, stubs(snap.Allocs(ws, ns, args.Prefix, args.Reverse)), token), token}, nil
	}
	sorted, err := chronological(args, snap.AllocRows(ws, ns),
		func(r *state.AllocRow) created { return created{r.CreateIndex(), r.ID()} }, (*state.AllocRow).CompareCreated)
	if err != nil {
		return listed[*structs.AllocListStub]{}, err
	}
	token := func(a *structs.AllocListStub) string { return created{a.CreateIndex, a.ID}.token() }
	return listed[*structs.AllocListStub]{stubs(snap.WholeAllocs(sorted)), token}, nil
}

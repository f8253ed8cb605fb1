package queue

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeap compares the heap with a list that is sorted each time.
func TestHeap(t *testing.T) {
	type element struct{ key, at int }
	rapid.Check(t, func(t *rapid.T) {
		h := &heap[*element]{before: func(a, b *element) bool { return a.key < b.key }, index: func(e *element) *int { return &e.at }}
		all := make([]*element, 12)
		for i := range all {
			all[i] = &element{}
		}
		var in []*element
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			e := rapid.SampledFrom(all).Draw(t, "element")
			if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				h.remove(e)
				in = slices.DeleteFunc(in, func(x *element) bool { return x == e })
			} else {
				e.key = rapid.IntRange(0, 20).Draw(t, "key")
				h.put(e)
				if !slices.Contains(in, e) {
					in = append(in, e)
				}
			}
			least := 1 << 30
			for _, x := range in {
				least = min(least, x.key)
			}
			if first, ok := h.first(); ok != (len(in) > 0) || ok && first.key != least || h.len() != len(in) {
				t.Fatalf("first %+v of %d, want %d of %d", first, h.len(), least, len(in))
			}
		}
	})
}

// TestFairHeap compares a fairHeap with a list that is sorted each time, while shares of namespaces and users change, and what is open.
func TestFairHeap(t *testing.T) {
	type element struct {
		tenant
		key, at int
		open    bool
	}
	rapid.Check(t, func(t *rapid.T) {
		shares, users := map[string]int{}, map[string]int{}
		before := func(a, b *element) bool {
			return cmp.Or(cmp.Compare(shares[a.namespace], shares[b.namespace]), cmp.Compare(users[a.user], users[b.user]), cmp.Compare(a.key, b.key)) < 0
		}
		h := newFairHeap(before, before, func(e *element) *int { return &e.at }, func(e *element) tenant { return e.tenant })
		h.ok = func(x *element) bool { return x.open }
		names := []string{"a", "b", "c", "d", "e"}
		all := make([]*element, 30)
		for i := range all {
			all[i] = &element{tenant: tenant{names[i%len(names)], []string{"", "ada", "bob"}[i/len(names)%3]}}
		}
		var in []*element
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			e := rapid.SampledFrom(all).Draw(t, "element")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				h.remove(e)
				in = slices.DeleteFunc(in, func(x *element) bool { return x == e })
			case 1:
				shares[e.namespace] = rapid.IntRange(0, 5).Draw(t, "share")
				h.shared(e.namespace)
			case 2:
				users[e.user] = rapid.IntRange(0, 5).Draw(t, "user's share")
				h.userShared(e.user)
			case 3:
				e.open = !e.open
				h.changed(e, e.open)
			default:
				e.key = rapid.IntRange(0, 20).Draw(t, "key")
				h.put(e)
				if !slices.Contains(in, e) {
					in = append(in, e)
				}
			}
			first, ok := h.first()
			if ok != (len(in) > 0) || h.len() != len(in) {
				t.Fatalf("first %+v of %d, want one of %d", first, h.len(), len(in))
			}
			open, some := h.firstOf()
			for _, x := range in {
				if before(x, first) {
					t.Fatalf("first %+v, want %+v", first, x)
				}
				if x.open && (!some || before(x, open)) {
					t.Fatalf("first open %+v (%t), want %+v", open, some, x)
				}
			}
			if some && (!open.open || !slices.Contains(in, open)) {
				t.Fatalf("first open %+v, which is not", open)
			}
		}
	})
}

// TestFirstOpenOfAUser compares what a fairHeap finds first of the many open elements of one user, among others that are not, with a search of all.
func TestFirstOpenOfAUser(t *testing.T) {
	type element struct {
		key, at int
		open    bool
	}
	rapid.Check(t, func(t *rapid.T) {
		before := func(a, b *element) bool { return a.key < b.key }
		h := newFairHeap(before, before, func(e *element) *int { return &e.at }, func(*element) tenant { return tenant{"default", "ada"} })
		h.ok = func(x *element) bool { return x.open }
		var want *element
		for i, key := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}).Draw(t, "keys") {
			e := &element{key: key, open: rapid.IntRange(0, 2).Draw(t, fmt.Sprint("open ", i)) == 0}
			if h.put(e); e.open && (want == nil || key < want.key) {
				want = e
			}
		}
		if got, some := h.firstOf(); some != (want != nil) || got != want {
			t.Fatalf("first open %+v (%t), want %+v", got, some, want)
		}
	})
}

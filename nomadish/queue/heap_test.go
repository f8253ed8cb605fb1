package queue

import (
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

// TestFairHeap compares a fairHeap with a list that is sorted each time, while shares change.
func TestFairHeap(t *testing.T) {
	type element struct {
		namespace string
		key, at   int
	}
	rapid.Check(t, func(t *rapid.T) {
		shares := map[string]int{}
		before := func(a, b *element) bool {
			if a.namespace != b.namespace && shares[a.namespace] != shares[b.namespace] {
				return shares[a.namespace] < shares[b.namespace]
			}
			return a.key < b.key
		}
		h := newFairHeap(before, func(e *element) *int { return &e.at }, func(e *element) string { return e.namespace })
		names := []string{"a", "b", "c", "d", "e"}
		all := make([]*element, 15)
		for i := range all {
			all[i] = &element{namespace: names[i%len(names)]}
		}
		var in []*element
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			e := rapid.SampledFrom(all).Draw(t, "element")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				h.remove(e)
				in = slices.DeleteFunc(in, func(x *element) bool { return x == e })
			case 1:
				shares[e.namespace] = rapid.IntRange(0, 5).Draw(t, "share")
				h.shared(e.namespace)
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
			for _, x := range in {
				if before(x, first) {
					t.Fatalf("first %+v, want %+v", first, x)
				}
			}
		}
	})
}

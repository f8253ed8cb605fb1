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

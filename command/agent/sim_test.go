package agent

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/client/sim"
)

func TestDealAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var layouts []sim.Layout
		all := 0
		for range rapid.IntRange(1, 6).Draw(t, "shapes") {
			n := rapid.IntRange(1, 1000).Draw(t, "n")
			layouts, all = append(layouts, sim.Layout{Name: "s", Count: n}), all+n
		}
		count := rapid.IntRange(1, 5000).Draw(t, "count")
		before := make([]int, len(layouts))
		for i, s := range layouts {
			before[i] = s.Count
		}
		dealt, err := deal(layouts, count)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, s := range dealt {
			if s.Count < 1 {
				t.Fatalf("a shape of %d nodes", s.Count)
			}
			sum += s.Count
		}
		if sum != count {
			t.Fatalf("%v dealt to %d gives %d", before, count, sum)
		}
		for i, s := range layouts {
			if s.Count != before[i] {
				t.Fatalf("shape %d was changed", i)
			}
		}
		if len(dealt) == len(layouts) {
			for i, s := range dealt { // as near to the proportion as whole nodes allow
				if exact := float64(before[i]) * float64(count) / float64(all); float64(s.Count) < exact-1 || float64(s.Count) > exact+1 {
					t.Fatalf("shape %d: %d nodes, its share is %.2f", i, s.Count, exact)
				}
			}
		}
	})
}

func TestDealRefuses(t *testing.T) {
	one := []sim.Layout{{Name: "s", Count: 3}}
	if got, err := deal(one, 0); err != nil || got[0].Count != 3 {
		t.Errorf("0: %v, error %v", got, err)
	}
	for _, count := range []int{-1, sim.MaxNodes + 1} {
		if _, err := deal(one, count); err == nil {
			t.Errorf("%d: no error", count)
		}
	}
	if _, err := deal([]sim.Layout{{Name: "s"}}, 5); err == nil {
		t.Error("no nodes at all: no error")
	}
}

package tree

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What differs between two trees of one history is what differs between the maps that they stand for,
// whichever of them is the older one.
func TestTreeChangesAreThoseOfTheMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := New[int, int](cmp.Compare[int])
		model, tok := map[int]int{}, &Token{}
		type kept struct {
			tr    Tree[int, int]
			model map[int]int
		}
		all := []kept{{tr, map[int]int{}}}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			k := rapid.IntRange(0, 300).Draw(t, "key")
			switch rapid.IntRange(0, 12).Draw(t, "op") {
			case 0, 1, 2, 3, 4, 5, 6:
				v := rapid.IntRange(0, 3).Draw(t, "value")
				Put(tok, &tr, k, v)
				model[k] = v
			case 7, 8:
				Delete(tok, &tr, k)
				delete(model, k)
			case 9: // many at once: pages are split, and heights differ
				for i := range rapid.IntRange(1, 150).Draw(t, "many") {
					Put(tok, &tr, k+i, i)
					model[k+i] = i
				}
			case 10:
				for i := range rapid.IntRange(1, 150).Draw(t, "few") {
					Delete(tok, &tr, k+i)
					delete(model, k+i)
				}
			default:
				all = append(all, kept{tr, maps.Clone(model)})
				tok = &Token{}
			}
		}
		all = append(all, kept{tr, model})
		a, b := rapid.SampledFrom(all).Draw(t, "from"), rapid.SampledFrom(all).Draw(t, "to")
		var got []Change[int, int]
		Changes(&b.tr, &a.tr, func(x, y int) bool { return x == y }, func(c Change[int, int]) { got = append(got, c) })
		if want := changesOf(a.model, b.model); !slices.Equal(got, want) {
			t.Fatalf("changes %v, want %v", got, want)
		}
		if Same(&a.tr, &b.tr) && len(got) > 0 {
			t.Fatalf("the trees are the same, and %v differs", got)
		}
	})
}

// changesOf compares two maps key by key.
func changesOf(was, is map[int]int) (out []Change[int, int]) {
	keys := map[int]bool{}
	for k := range was {
		keys[k] = true
	}
	for k := range is {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		c := Change[int, int]{Key: k}
		c.Was, c.Had = was[k]
		c.Is, c.Has = is[k]
		if c.Was != c.Is || c.Had != c.Has {
			out = append(out, c)
		}
	}
	return out
}

// Pages that two trees share are passed over: one change among 10,000 entries costs a few comparisons.
func TestTreeChangesPassOverWhatIsShared(t *testing.T) {
	compared := 0
	tr := New[int, int](func(a, b int) int { compared++; return cmp.Compare(a, b) })
	for k := range 10_000 {
		Put(&Token{}, &tr, k, k)
	}
	for _, change := range []func(tok *Token){
		func(tok *Token) { Put(tok, &tr, 5000, -1) },
		func(tok *Token) { Delete(tok, &tr, 7000) },
		func(tok *Token) { Put(tok, &tr, 10_001, 1) },
	} {
		old := tr
		change(&Token{})
		compared = 0
		found := 0
		Changes(&tr, &old, func(x, y int) bool { return x == y }, func(Change[int, int]) { found++ })
		if found != 1 || compared > 20*pageMax {
			t.Errorf("%d changes were found by %d comparisons, want 1 by at most %d", found, compared, 20*pageMax)
		}
	}
}

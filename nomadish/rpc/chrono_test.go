package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// TestChronologicalPages: pages of any size, forwards and backwards, are the whole list in the order in which things were made, and a token
// that is none is refused.
func TestChronologicalPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Created
		index, n := uint64(8), 0
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			index += rapid.Uint64Range(0, 2).Draw(t, "step") // past 9 and 10, which texts order otherwise
			n++
			all = append(all, Created{index, idOf(rapid.IntRange(0, 1000).Draw(t, "id")*100 + n)})
		}
		shuffled := rapid.Permutation(all).Draw(t, "order")
		slices.SortFunc(all, func(a, b Created) int {
			if a.Index != b.Index {
				return int(a.Index) - int(b.Index) // small
			}
			return strings.Compare(a.ID, b.ID)
		})
		opts := &structs.QueryOptions{PerPage: rapid.IntRange(0, 5).Draw(t, "page"), Reverse: rapid.Bool().Draw(t, "reverse")}
		if opts.Reverse {
			slices.Reverse(all)
		}
		var got []Created
		for range len(all) + 2 {
			items, err := Chronological(opts, slices.Values(shuffled), func(c Created) Created { return c }, Created.Compare)
			if err != nil {
				t.Fatal(err)
			}
			meta := &structs.QueryMeta{}
			part, err := Take(opts, meta, items, Created.Token)
			if err != nil || opts.PerPage > 0 && len(part) > opts.PerPage {
				t.Fatal(part, err)
			}
			got = append(got, part...)
			if opts.NextToken = meta.NextToken; opts.NextToken == "" {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("got %v, want %v", got, all)
		}
	})
	for _, bad := range []string{"x", "12", ".", "x.y", "-1.a", idOf(1)} {
		if _, err := Chronological(&structs.QueryOptions{NextToken: bad}, slices.Values([]Created(nil)), nil, nil); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("token %q: %v", bad, err)
		}
	}
}

func idOf(n int) string { return fmt.Sprintf("%08d-0000-8000-8000-000000000000", n) }

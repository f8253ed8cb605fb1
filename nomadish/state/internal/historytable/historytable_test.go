package historytable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// The history's table says what a sorted list says.
func TestHistoryAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		have := map[string]*structs.HistoryRecord{}
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			before, were := table, len(have)
			e := table.Edit()
			for range rapid.IntRange(1, 40).Draw(t, "changes") {
				forms := []string{structs.DeriveID("s", uint64(rapid.IntRange(0, 50).Draw(t, "id"))), fmt.Sprint("odd", rapid.IntRange(0, 5).Draw(t, "odd"))} // small
				id := rapid.SampledFrom(forms).Draw(t, "form")
				if h := e.Get(id); h != have[id] {
					t.Fatalf("%s: %v, not %v", id, h, have[id])
				}
				if rapid.Bool().Draw(t, "remove") {
					if have[id] != nil {
						e.Remove(have[id])
						delete(have, id)
					}
					continue
				}
				have[id] = &structs.HistoryRecord{AllocID: id, Ended: rapid.Int64Range(-2, 9).Draw(t, "ended")}
				e.Put(have[id])
			}
			if before.Len() != were {
				t.Fatal("what was taken has changed")
			}
			table = *e.Commit()
		}
		byID := slices.SortedFunc(maps.Values(have), func(a, b *structs.HistoryRecord) int { return cmp.Compare(a.AllocID, b.AllocID) })
		byEnd := slices.SortedStableFunc(slices.Values(byID), func(a, b *structs.HistoryRecord) int { return cmp.Compare(max(0, a.Ended), max(0, b.Ended)) })
		if got := slices.Collect(table.All); !slices.Equal(got, byID) {
			t.Fatalf("by ID: %v, not %v", got, byID)
		}
		if len(byEnd) > 0 && table.Oldest() != byEnd[0] || table.Len() != len(byEnd) {
			t.Fatalf("oldest of %d: %v, not %v", table.Len(), table.Oldest(), byEnd)
		}
		slices.Reverse(byEnd)
		if got := slices.Collect(table.LatestFirst); !slices.Equal(got, byEnd) {
			t.Fatalf("by end: %v, not %v", got, byEnd)
		}
	})
}

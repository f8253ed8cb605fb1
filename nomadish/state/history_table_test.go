package state

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
		var table historyTable
		have := map[string]*structs.HistoryRecord{}
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			before, were := table, len(have)
			e := table.edit()
			for range rapid.IntRange(1, 40).Draw(t, "changes") {
				id := draw(t, "form", structs.DeriveID("s", uint64(rapid.IntRange(0, 50).Draw(t, "id"))), fmt.Sprint("odd", rapid.IntRange(0, 5).Draw(t, "odd"))) //nolint:gosec // small
				if h := e.get(id); h != have[id] {
					t.Fatalf("%s: %v, not %v", id, h, have[id])
				}
				if rapid.Bool().Draw(t, "remove") {
					if have[id] != nil {
						e.remove(have[id])
						delete(have, id)
					}
					continue
				}
				have[id] = &structs.HistoryRecord{AllocID: id, Ended: rapid.Int64Range(-2, 9).Draw(t, "ended")}
				e.put(have[id])
			}
			if before.len() != were {
				t.Fatal("what was taken has changed")
			}
			table = *e.table()
		}
		byID := slices.SortedFunc(maps.Values(have), func(a, b *structs.HistoryRecord) int { return cmp.Compare(a.AllocID, b.AllocID) })
		byEnd := slices.SortedStableFunc(slices.Values(byID), func(a, b *structs.HistoryRecord) int { return cmp.Compare(max(0, a.Ended), max(0, b.Ended)) })
		if got := slices.Collect(table.all); !slices.Equal(got, byID) {
			t.Fatalf("by ID: %v, not %v", got, byID)
		}
		if len(byEnd) > 0 && table.oldest() != byEnd[0] || table.len() != len(byEnd) {
			t.Fatalf("oldest of %d: %v, not %v", table.len(), table.oldest(), byEnd)
		}
		slices.Reverse(byEnd)
		if got := slices.Collect(table.latestFirst); !slices.Equal(got, byEnd) {
			t.Fatalf("by end: %v, not %v", got, byEnd)
		}
	})
}

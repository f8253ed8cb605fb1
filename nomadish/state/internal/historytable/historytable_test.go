package historytable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

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
				have[id] = &structs.HistoryRecord{
					AllocID: id, Ended: rapid.Int64Range(-2, 9).Draw(t, "ended"), Started: rapid.Int64Range(0, 3).Draw(t, "started"),
					Submitter: rapid.SampledFrom([]string{"", "ada", "adam", "bob"}).Draw(t, "submitter"), ClientStatus: rapid.SampledFrom([]string{structs.AllocClientComplete, structs.AllocClientFailed}).Draw(t, "status"),
					Reason: rapid.SampledFrom([]string{"", "", "job stopped"}).Draw(t, "reason"),
				}
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
		for _, user := range []string{"", "ada", "adam", "bob", "zoe"} {
			var want []time.Duration
			for _, h := range byEnd {
				if user != "" && h.Submitter == user && h.Started > 0 && h.ClientStatus == structs.AllocClientComplete && h.Reason == "" && len(want) < 4 {
					want = append(want, time.Duration(max(0, h.Ended-h.Started)))
				}
			}
			if got := table.LatestRuns(user, 4); !slices.Equal(got, want) {
				t.Fatalf("runs of %q: %v, not %v", user, got, want)
			}
		}
	})
}

// TestTimedOut: what was ended at its time limit is stated so, and counts in how long the next takes.
func TestTimedOut(t *testing.T) {
	a := &structs.Allocation{ID: "a", DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientComplete}
	a.TaskStates = map[string]*structs.TaskState{"t": {StartedAt: time.Unix(1, 0), FinishedAt: time.Unix(9, 0)}}
	if h := Record(a, nil, 1, 10); h.TimedOut || !h.Finished() {
		t.Errorf("of its own: %+v", h)
	}
	a.ClientDescription = structs.DescMaxRunDuration
	if h := Record(a, nil, 1, 10); !h.TimedOut || !h.Finished() {
		t.Errorf("at its limit: %+v", h)
	}
}

// TestFinishedRuns: what was stopped or taken back has not finished, though it completed; what lost its claim and ran to its end has.
func TestFinishedRuns(t *testing.T) {
	for desired, want := range map[string]bool{structs.AllocDesiredRun: true, structs.AllocDesiredStop: false, structs.AllocDesiredEvict: false} {
		a := &structs.Allocation{ID: "a", DesiredStatus: desired, DesiredDescription: structs.DescLostClaim, ClientStatus: structs.AllocClientComplete}
		a.TaskStates = map[string]*structs.TaskState{"t": {StartedAt: time.Unix(1, 0), FinishedAt: time.Unix(9, 0)}}
		if got := Record(a, nil, 1, 10).Finished(); got != want {
			t.Errorf("desired to %s: finished is %v", desired, got)
		}
	}
}

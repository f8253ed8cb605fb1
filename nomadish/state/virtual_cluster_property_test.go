package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestVirtualClusters moves small clusters of several chains on by random edits, windows, shifts, exchanges, jobs, releases and losses.
// After every step the counts agree with an exact search, what is owned embeds, and whatever fits what is free of an owner's is placed at
// once by the scheduler (semantics part 2).
func TestVirtualClusters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		below := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		m := newTenantMachine(below, rt.Fatalf, rt.Logf, map[string]int{})
		for range 25 {
			m.run()
		}
	})
}

// triedByMachine is what TestManyStepsOfVirtualClusters must have tried.
var triedByMachine = []string{
	"admitted", "refused", "pending", "waiting in order", "due", "admitted later", "still pending", "deleted", "judged exactly", "windows begun", "shifted", "shifts refused", "offered", "bid", "withdrawn",
	"in effect: won", "in effect: sold", "in effect: shift", "points granted or taken", "doomed", "away", "nodes left", "nodes deregistered", "devices changed", "ended",
	"guaranteed", "opportunistic", "placed as system instances", "gangs guaranteed", "in racks", "racks bound", "reclaimed", "raised", "committed late", "requested",
}

// TestManyStepsOfVirtualClusters is the same for many more steps, which nothing shrinks.
func TestManyStepsOfVirtualClusters(t *testing.T) {
	worlds, counts := machineWorlds, map[string]int{}
	if testing.Short() {
		worlds /= 10
	}
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 1))
		var log []string
		failed := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("world %d, step %d, after\n%s\n%s", seed, len(log), strings.Join(log, "\n"), fmt.Sprintf(format, args...))
		}
		m := newTenantMachine(r.IntN, failed, func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }, counts)
		for range machineSteps {
			m.run()
		}
	}
	for _, what := range triedByMachine {
		if counts[what] == 0 && worlds >= 500 {
			t.Errorf("nothing was %s: the test tries too little", what)
		}
	}
	t.Log(slices.Sorted(func(yield func(string) bool) {
		for what, n := range counts { // sorted
			if !yield(fmt.Sprint(what, " ", n)) {
				return
			}
		}
	}))
}

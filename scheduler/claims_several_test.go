package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestSeveralCells: GPUs that need not lie under one cell come from several quota cells of one node where no single one holds them, and
// what others have there is reclaimed (semantics part 2, "Choice").
func TestSeveralCells(t *testing.T) {
	required := func(level string) func(*structs.Job) {
		return func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: level, Required: true}
		}
	}
	f := func(name, level string, count, gpus, want int, change ...func(*structs.Job)) {
		t.Helper()
		x := newTenants(t, owns(t, "a", level, count), eightGPUs("n1"), eightGPUs("n2"))
		x.decide("b", "flood", 16, 1)
		before := x.pass.World()
		plan := x.decide("a", "several", 1, gpus, change...)
		g, _ := classes(plan)
		if g != want || preemptedBy(plan) != want*gpus {
			t.Errorf("%s: %v, %d stopped", name, placements(plan), preemptedBy(plan))
		}
		if valid, refused, why := scheduler.Judge(before.Edit(), plan); len(refused) > 0 || len(valid.Place) != want {
			t.Errorf("%s: refused on %v: %s", name, refused, why)
		}
	}
	f("four of four", "gpu", 4, 4, 1)
	f("three of two switches", "pcie", 2, 3, 1)
	f("eight of two sockets", "socket", 2, 8, 1)
	f("more than there is", "pcie", 2, 5, 0)
	f("under one switch", "gpu", 2, 2, 0, required(structs.LevelPCIe))
	f("under one node, which no cell is", "socket", 2, 8, 0, required(structs.LevelNode))

	// What is free in bound cells comes first, and together with what is yet to be bound on the same node.
	x := newTenants(t, owns(t, "a", "pcie", 3), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("a", "one", 1, 1)
	x.decide("b", "borrows", 15, 1)
	plan := x.decide("a", "three", 1, 3)
	got := placements(plan)
	if len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed pcie n1-gpu-1,") {
		t.Errorf("beside one: %v", got)
	}
	if g, _ := classes(x.decide("a", "two", 2, 2)); g != 1 {
		t.Errorf("one switch is left, and %d are guaranteed", g)
	}
	// Two switches of one bound node that others of the tenant have left.
	x = newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
	ids := map[string]string{}
	for _, id := range []string{"p", "q", "r", "s"} {
		plan := x.decide("a", id, 1, 2)
		ids[placements(plan)[0]] = structs.DeriveID(plan.Place[0].Seed, 0)
	}
	e := x.pass.World().Edit()
	for _, cell := range []string{"n1-gpu-0,n1-gpu-1", "n1-gpu-4,n1-gpu-5"} {
		e.DeleteAlloc(ids["guaranteed node "+cell], "n1")
	}
	x.pass = scheduler.NewPass(e.World())
	if got := placements(x.decide("a", "four", 1, 4)); !slices.Equal(got, []string{"guaranteed node n1-gpu-0,n1-gpu-1,n1-gpu-4,n1-gpu-5"}) {
		t.Errorf("of one bound node: %v", got)
	}
}

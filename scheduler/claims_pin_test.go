package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// ownsPinned gives a namespace two sockets, one of them the second of n2.
func ownsPinned(t *testing.T, owner string) func(e *scheduler.Edit) {
	chain := chainOf(t)
	return func(e *scheduler.Edit) {
		e.SetQuotas(owner, []world.Quota{{Chain: chain, Level: "socket", Count: 2, Order: 1, Pins: []cells.Cell{{Node: "n2", Index: 1}}}})
	}
}

func pin(name string, required bool) func(*structs.Job) {
	return func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: "socket", Required: required, Pin: name}
	}
}

func guaranteedOnly(j *structs.Job) { j.Class = structs.ClassGuaranteed }

// reasonsOf returns what holds a job's group.
func reasonsOf(p *structs.Plan) (list []string) {
	if m := p.FailedTGAllocs["g"]; m != nil {
		for reason := range m.DimensionExhausted {
			list = append(list, reason)
		}
	}
	slices.Sort(list)
	return list
}

func containsAll(got, want []string) bool {
	return !slices.ContainsFunc(want, func(one string) bool { return !slices.Contains(got, one) })
}

// inPinned reports whether so many instances were placed, all of them in the second socket of n2.
func inPinned(got []string, count int) bool {
	return len(got) == count && !slices.ContainsFunc(got, func(one string) bool {
		ids, ok := strings.CutPrefix(one, "guaranteed socket ")
		return !ok || slices.ContainsFunc(strings.Split(ids, ","), func(id string) bool { return id < "n2-gpu-4" || id > "n2-gpu-7" })
	})
}

// TestPinnedPlacement: an instance that names a pinned cell uses what its namespace owns there alone, and reclaims it from whoever borrows it.
func TestPinnedPlacement(t *testing.T) {
	const pinned = "n2/socket-1"
	x := newTenants(t, ownsPinned(t, "a"), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("b", "flood", 16, 1)
	plan := x.decide("a", "two", 2, 1, pin(pinned, false))
	if got := placements(plan); !inPinned(got, 2) || preemptedBy(plan) != 2 {
		t.Errorf("two in the pinned cell: %v, %d stopped", got, preemptedBy(plan))
	}
	plan = x.decide("a", "four", 1, 4, pin(pinned, false), guaranteedOnly)
	want := []string{"pin: the pinned cell n2/socket-1 is taken: it has no free cell for 4 devices", `withheld by class = "guaranteed"`}
	if got := reasonsOf(plan); len(plan.Place) != 0 || preemptedBy(plan) != 0 || !containsAll(got, want) {
		t.Errorf("what does not fit it: %v, %d stopped, %q", placements(plan), preemptedBy(plan), got)
	}
	if got := placements(x.decide("a", "switch", 1, 2, pin("n2/socket-1", true))); !inPinned(got, 1) {
		t.Errorf("a required topology: %v", got)
	}
	plan = x.decide("a", "more", 1, 1, pin(pinned, true))
	want = []string{"pin: the pinned cell n2/socket-1 is taken: it has no free cell for 1 device", "withheld by its topology, which requires the pinned cell"}
	if got := reasonsOf(plan); len(plan.Place) != 0 || !containsAll(got, want) {
		t.Errorf("a required topology, when it is taken: %v, %q", placements(plan), got)
	}
	if g, _ := classes(x.decide("a", "other", 1, 4)); g != 1 {
		t.Error("the other socket is not used by a job that names no cell")
	}
	for name, want := range map[string]string{"n9/socket-1": `pin: no cell "n9/socket-1" is pinned to namespace "a"`, "n2/socket-0": `pin: no cell "n2/socket-0" is pinned to namespace "a"`} {
		if got := reasonsOf(x.decide("a", "wrong", 1, 1, pin(name, true))); !slices.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	e := x.pass.World().Edit()
	e.UpsertNode(eightGPUs("n2", down))
	x.pass = scheduler.NewPass(e.World())
	if got := reasonsOf(x.decide("a", "away", 1, 1, pin(pinned, true))); !slices.Contains(got, "pin: the pinned cell n2/socket-1 is away: its nodes take no work") {
		t.Errorf("away: %q", got)
	}
	g := x.explainOver("", "a", "away", 1, 1, pin(pinned, true))
	if !slices.ContainsFunc(g.Waits, func(w structs.Wait) bool { return strings.Contains(w.Text, "the pinned cell n2/socket-1 is away") }) {
		t.Errorf("explained as %+v", g.Waits)
	}
}

// TestPinnedOutside: where its topology is not required, an instance for which the pinned cell has no room runs opportunistically
// elsewhere, and is not raised there; a gang uses the pinned cell whole or not at all.
func TestPinnedOutside(t *testing.T) {
	c := newCluster(t)
	c.node("n1", schedtest.EightGPUs)
	c.node("n2", schedtest.EightGPUs)
	e := c.w.Edit()
	ownsPinned(t, "default")(e)
	c.w = e.World()
	job := gpuJobOf("default", "j", 5, 1)
	pin("n2/socket-1", false)(job)
	c.register(job)
	if g, o := classes(c.eval()); g != 4 || o != 1 {
		t.Errorf("%d guaranteed, %d opportunistic", g, o)
	}
	c.runAll()
	if c.eval(); len(c.last.Update) != 0 {
		t.Errorf("%d are raised outside of the pinned cell", len(c.last.Update))
	}
	for _, row := range []struct{ count, guaranteed int }{{4, 4}, {5, 0}} {
		x := newTenants(t, ownsPinned(t, "a"), eightGPUs("n1"), eightGPUs("n2"))
		if g, o := classes(x.decide("a", "gang", row.count, 1, gang(0), pin("n2/socket-1", false))); g != row.guaranteed || g+o != row.count {
			t.Errorf("a gang of %d: %d guaranteed, %d not", row.count, g, o)
		}
	}
}

// TestEntitledByPin: as many instances are entitled as the pinned cell holds.
func TestEntitledByPin(t *testing.T) {
	x := newTenants(t, ownsPinned(t, "a"), eightGPUs("n1"), eightGPUs("n2"))
	for name, want := range map[string]int{"n2/socket-1": 4, "n1/socket-0": 0} {
		job := gpuJobOf("a", "j", 8, 1)
		pin(name, false)(job)
		if got := scheduler.Entitled(x.pass.World(), job, "g", 8); got != want {
			t.Errorf("%s: %d are entitled, want %d", name, got, want)
		}
	}
}

// TestRefusedPins: the error names who has the cell, what uses it, and what may be done.
func TestRefusedPins(t *testing.T) {
	chain := chainOf(t)
	x := newTenants(t, func(e *scheduler.Edit) {
		e.SetQuotas("a", []world.Quota{{Chain: chain, Level: "socket", Count: 1, Order: 1}})
	}, eightGPUs("n1"), eightGPUs("n2"))
	x.decide("a", "four", 1, 4)
	used := scheduler.ClaimViews(x.pass.World(), "a", true)["a"].Bound[0].Cell
	wants := func(owner string, count int, pin string, texts ...string) {
		t.Helper()
		list := []*structs.CellQuota{{Level: "socket", Count: count, Pin: []string{pin}}}
		if err := scheduler.ResolveCells(x.pass.World(), list, nil); err != nil {
			t.Fatal(err)
		}
		err := scheduler.AdmitClaims(x.pass.World(), owner, []structs.CellClaim{list[0].Claim()})
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s pins %s: %v, want %q", owner, pin, err, text)
			}
		}
	}
	wants("b", 1, used, `virtual cluster "a" has the cell `+used+` of level socket`, `(job "four")`, "pin another cell, or none")
	wants("a", 1, "n2/socket-1", "the owner has no unbound cell of that kind: it has bound ", `(job "four")`, "pin one of these")
}

package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Semantics part 0, rule 7: system and sysbatch instances use no claim, are never taken for one, and are subtracted from a node's
// capacity first. One that would cut into room in guaranteed use waits.

func system(priority int) func(*structs.Job) {
	return func(j *structs.Job) { j.Type, j.Priority = structs.JobTypeSystem, priority }
}

func owns(t *testing.T, owner, level string, count int) func(e *scheduler.Edit) {
	chain := chainOf(t)
	return func(e *scheduler.Edit) {
		e.SetQuotas(owner, []world.Quota{{Chain: chain, Level: level, Count: count, Order: 1}})
	}
}

// lacksUnowned reports whether an instance of a job waits for devices that nobody owns.
func lacksUnowned(p *structs.Plan) bool {
	m := p.FailedTGAllocs["g"]
	return m != nil && m.DimensionExhausted[world.LacksUnowned] == 1
}

// lacksDevices reports whether an instance of a job finds all devices in use.
func lacksDevices(p *structs.Plan) bool {
	m := p.FailedTGAllocs["g"]
	return m != nil && m.DimensionExhausted[world.LacksDevices] == 1
}

// TestSystemIsNeverTaken: a claim rather takes four allocations of a high priority than a system instance of a low one.
func TestSystemIsNeverTaken(t *testing.T) {
	x := newTenants(t, owns(t, "a", "socket", 1), eightGPUs("n1"))
	if got := placements(x.decide("ops", "exporter", 1, 1, system(10))); !slices.Equal(got, []string{"opportunistic n1-gpu-0"}) {
		t.Fatalf("the system instance: %v", got)
	}
	x.decide("b", "flood", 7, 1, func(j *structs.Job) { j.Priority = 90 })
	plan := x.decide("a", "owner", 1, 4)
	if got := placements(plan); !slices.Equal(got, []string{"guaranteed socket n1-gpu-4,n1-gpu-5,n1-gpu-6,n1-gpu-7"}) || preemptedBy(plan) != 4 {
		t.Errorf("%v, %d stopped", got, preemptedBy(plan))
	}
	// It is subtracted from what can be owned: nobody can be given the other socket.
	e := x.pass.World().Edit()
	if short := e.Shortage("c", []world.Quota{{Chain: chainOf(t), Level: "socket", Count: 1, Order: 2}}); short == nil || short.Level != "socket" || short.Short != 1 {
		t.Errorf("a socket more: %+v", short)
	}
	// No claim takes its processor either, and what it uses is in nobody's share of the node.
	heavy := func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 250_000 }
	for _, kind := range []string{structs.JobTypeSystem, structs.JobTypeSysBatch} {
		x = newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
		if got := classesOf(x.decide("ops", "agent", 1, 0, system(1), withoutGPUs, heavy, func(j *structs.Job) { j.Type = kind })); got != 1 {
			t.Fatalf("%s without GPUs: %d placed", kind, got)
		}
		if plan := x.decide("a", "owner", 1, 8, heavy); len(plan.Place)+preemptedBy(plan) != 0 {
			t.Errorf("beside a %s instance: %v, %d stopped", kind, placements(plan), preemptedBy(plan))
		}
	}
}

func withoutGPUs(j *structs.Job) { schedtest.Task(j).Resources.Devices = nil }

func classesOf(p *structs.Plan) int {
	g, o := classes(p)
	return g + o
}

// TestSystemWaits: a system instance takes nothing that somebody owns, used or not, and preempts nobody for that.
func TestSystemWaits(t *testing.T) {
	x := newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
	x.decide("b", "borrows", 8, 1, func(j *structs.Job) { j.Priority = 10 })
	plan := x.decide("ops", "exporter", 1, 1, system(90))
	if len(plan.Place)+len(plan.Stop) != 0 || !lacksDevices(plan) {
		t.Errorf("where all is owned: %v, %d stopped, %+v", placements(plan), len(plan.Stop), plan.FailedTGAllocs["g"])
	}
	// One node of two is owned, and not bound: the first node may go without a GPU, the second may not.
	x = newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"), eightGPUs("n2"))
	plan = x.decide("ops", "exporter", 1, 1, system(90))
	if got := placements(plan); !slices.Equal(got, []string{"opportunistic n1-gpu-0"}) || !lacksUnowned(plan) {
		t.Errorf("where one of two is owned: %v, %+v", got, plan.FailedTGAllocs["g"])
	}
	if got := placements(x.decide("a", "owner", 1, 8)); len(got) != 1 || !strings.HasPrefix(got[0], "guaranteed node n2-gpu-0,") {
		t.Errorf("the owner: %v", got)
	}
	// It takes beside a bound cell, and preempts there alone.
	x = newTenants(t, owns(t, "a", "socket", 1), eightGPUs("n1"))
	x.decide("a", "owner", 1, 1)
	x.decide("b", "borrows", 7, 1, func(j *structs.Job) { j.Priority = 10 })
	plan = x.decide("ops", "exporter", 1, 4, system(90))
	if got := placements(plan); !slices.Equal(got, []string{"opportunistic n1-gpu-4,n1-gpu-5,n1-gpu-6,n1-gpu-7"}) || preemptedBy(plan) != 4 {
		t.Errorf("beside a bound socket: %v, %d stopped", got, preemptedBy(plan))
	}
	plan = x.decide("ops", "second", 1, 1, system(90))
	if len(plan.Place)+len(plan.Stop) != 0 || !lacksDevices(plan) {
		t.Errorf("with nothing left beside it: %v, %d stopped, %+v", placements(plan), len(plan.Stop), plan.FailedTGAllocs["g"])
	}
	// A system job of a higher band may have what one of a lower band has: nobody loses a cell by that.
	x = newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("ops", "low", 1, 1, system(30))
	x.decide("a", "owner", 1, 8)
	x.decide("b", "fills", 7, 1)
	plan = x.decide("ops", "high", 1, 1, system(90))
	if got := placements(plan); !slices.Equal(got, []string{"opportunistic n1-gpu-0"}) || preemptedBy(plan) != 1 {
		t.Errorf("of a higher band: %v, %d stopped", got, preemptedBy(plan))
	}
}

// TestSystemInSmallCells: where nobody needs a node as a whole, a system instance takes of the smallest cell that is left.
func TestSystemInSmallCells(t *testing.T) {
	x := newTenants(t, owns(t, "a", "pcie", 2), eightGPUs("n1"))
	var got []string
	for _, id := range []string{"one", "two", "three"} {
		got = append(got, placements(x.decide("ops", id, 1, 1, system(50)))...)
	}
	if !slices.Equal(got, []string{"opportunistic n1-gpu-0", "opportunistic n1-gpu-1", "opportunistic n1-gpu-2"}) {
		t.Errorf("%v", got)
	}
	if plan := x.decide("ops", "pair", 1, 2, system(50)); len(plan.Place) != 0 || !lacksUnowned(plan) {
		t.Errorf("two GPUs, with a switch owned of the two that are left whole: %v", placements(plan))
	}
	if got := placements(x.decide("ops", "four", 1, 1, system(50))); !slices.Equal(got, []string{"opportunistic n1-gpu-3"}) {
		t.Errorf("the fourth: %v", got)
	}
}

// TestSystemIsReplaced: the successor of a system instance has its GPU, though with that one healthy and free nothing owned would be doomed.
func TestSystemIsReplaced(t *testing.T) {
	c := newCluster(t)
	for _, id := range []string{"n1", "n2"} {
		c.node(id, schedtest.EightGPUs)
	}
	e := c.w.Edit()
	owns(t, "default", "node", 1)(e)
	c.w = e.World()
	job := gpuJobOf("default", "exporter", 1, 1)
	system(50)(job)
	job.TaskGroups[0].Update = nil
	c.register(job)
	c.eval()
	c.wantPlan(1, 0, 0)
	c.runAll()
	c.changeNode("n2", down) // what is owned is doomed now
	c.update(destructive)
	c.eval()
	c.wantPlan(1, 1, 0)
}

// TestJudgeChecksSystem: what was decided while nobody owned a GPU is refused if somebody does by then; and no claim takes a system
// instance, whatever a plan says.
func TestJudgeChecksSystem(t *testing.T) {
	x := newTenants(t, owns(t, "z", "gpu", 1), eightGPUs("n1"))
	before := x.pass.World()
	plan := x.decide("ops", "exporter", 1, 1, system(50))
	for _, row := range []struct{ level, want string }{{"gpu", ""}, {"socket", ""}, {"node", world.LacksUnowned}} {
		e := before.Edit()
		owns(t, "z", row.level, 1)(e)
		valid, _, why := scheduler.Judge(e.World().Edit(), plan)
		if len(valid.Place) == 1 != (row.want == "") || !strings.Contains(why, row.want) {
			t.Errorf("%s: %d placed, refused as %q", row.level, len(valid.Place), why)
		}
	}
	after := x.pass.World()
	for id := range world.Usages(after).All {
		forged := x.decide("z", "forged", 1, 1)
		forged.Stop = append(forged.Stop, &structs.AllocStop{AllocID: id, PreemptedBy: structs.DeriveID(forged.Place[0].Seed, 0), DesiredStatus: structs.AllocDesiredEvict})
		if valid, _, why := scheduler.Judge(after.Edit(), forged); len(valid.Place)+len(valid.Stop) != 0 || !strings.Contains(why, "no claim takes from it") {
			t.Errorf("%d placed, %d stopped, refused as %q", len(valid.Place), len(valid.Stop), why)
		}
	}
}

// TestSystemBeforeOwners: system instances that were placed while nobody owned anything are known as such after the next evaluation of
// their job, where they stand beside what is owned: one of two here.
func TestSystemBeforeOwners(t *testing.T) {
	c := newCluster(t)
	c.node("n1", schedtest.EightGPUs)
	c.node("n2", schedtest.EightGPUs)
	job := gpuJobOf("default", "exporter", 1, 1)
	system(50)(job)
	c.register(job)
	c.eval()
	c.runAll()
	known := func() (n int) {
		for _, u := range world.Usages(c.w).All {
			if u.PerNode() {
				n++
			}
		}
		return n
	}
	if known() != 0 {
		t.Errorf("%d state what older servers do not know, and nobody owns anything", known())
	}
	e := c.w.Edit()
	owns(t, "default", "socket", 3)(e) // the other sockets, and one more
	c.w = e.World()
	if c.eval(); known() != 1 || len(c.last.Update) != 1 || len(c.last.Place)+len(c.last.Stop) != 0 {
		t.Errorf("%d are known, %d updates, %d placed, %d stopped", known(), len(c.last.Update), len(c.last.Place), len(c.last.Stop))
	}
	c.runAll()
	if c.eval(); len(c.last.Update) != 0 {
		t.Errorf("%d are updated again", len(c.last.Update))
	}
	c.update(func(j *structs.Job) { j.Meta = map[string]string{"k": "v"} })
	if c.eval(); known() != 1 {
		t.Errorf("after an update of the job %d are known", known())
	}
}

// TestSystemOnBadGPU: a system instance whose GPU has turned bad becomes known as such all the same: it has that GPU already.
func TestSystemOnBadGPU(t *testing.T) {
	c := newCluster(t)
	c.node("n1", schedtest.EightGPUs)
	job := gpuJobOf("default", "exporter", 1, 1)
	system(50)(job)
	c.register(job)
	c.eval()
	c.runAll()
	c.changeNode("n1", func(n *structs.Node) { n.NodeResources.Devices[0].Instances[0].Healthy = false })
	e := c.w.Edit()
	owns(t, "default", "socket", 1)(e)
	c.w = e.World()
	if c.eval(); len(c.last.Update) != 1 || len(c.last.Place)+len(c.last.Stop) != 0 {
		t.Errorf("%d updates, %d placed, %d stopped", len(c.last.Update), len(c.last.Place), len(c.last.Stop))
	}
}

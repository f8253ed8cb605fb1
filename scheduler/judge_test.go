package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// otherAlloc is an allocation of somebody else that fills a node.
func otherAlloc(c *cluster, node string, mhz int64) {
	a := &structs.Allocation{
		ID: "other-" + node, NodeID: node, JobID: "other", TaskGroup: "o", Name: "other.o[0]",
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
			"t": {Cpu: structs.AllocatedCpuResources{CpuShares: mhz}},
		}},
	}
	e := c.w.Edit()
	e.UpsertAlloc(a)
	c.w = e.World()
}

func judge(c *cluster, plan *structs.Plan) (reservations *structs.JudgedPlan, refused []string, why string, after *scheduler.World) {
	e := c.w.Edit()
	reservations, refused, why = scheduler.Judge(e, plan)
	return reservations, refused, why, e.World()
}

func TestJudgeRefusesAFullNodeAndKeepsTheOthers(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) {
		j.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	}))
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		t.Fatal(err)
	}
	otherAlloc(c, "n00", 3600)
	reservations, refused, why, after := judge(c, plan)
	if len(refused) != 1 || refused[0] != "n00" || !strings.Contains(why, "cpu") || len(reservations.Evals) != 0 {
		t.Errorf("refused %v because %q; %d evaluations hold", refused, why, len(reservations.Evals))
	}
	if n := len(reservations.Place[0].Instances); n != 1 || after.Used("n01").CPU != 500 || after.Used("n00").CPU != 3600 {
		t.Errorf("%d placed, used %+v, %+v", n, after.Used("n00"), after.Used("n01"))
	}
	if len(plan.Place[0].Instances) != 2 {
		t.Error("judging changed the plan")
	}
	plan.AllAtOnce = true
	reservations, _, _, after = judge(c, plan)
	if len(reservations.Place) != 0 || after.Diff(c.w) != nil {
		t.Errorf("all at once, but %d hold: %v", len(reservations.Place), after.Diff(c.w))
	}
}

func TestJudgeKeepsTheOldWhenTheNewIsRefused(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 2))
	c.eval()
	c.client(isLive, healthy)
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 1500; schedtest.Group(j).Count = 1 })
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		t.Fatal(err)
	}
	reservations, refused, _, after := judge(c, plan)
	if len(refused) != 0 || len(reservations.Stop) != 2 || after.Used("n00").CPU != 1500 {
		t.Fatalf("the plan does not count on its own stops: %v, %+v", refused, after.Used("n00"))
	}
	otherAlloc(c, "n00", 3000)
	reservations, refused, _, after = judge(c, plan)
	if len(refused) != 1 || len(reservations.Stop) != 0 || after.Diff(c.w) != nil {
		t.Errorf("refused %v, but %d stops hold: %v", refused, len(reservations.Stop), after.Diff(c.w))
	}
}

func TestJudgeRefusesNodesThatTakeNothing(t *testing.T) {
	f := func(change func(*structs.Node), want string) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 1)
		c.register(schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) {
			schedtest.Group(j).Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "web", Value: 80}}}}
			schedtest.Task(j).Resources.Cores, schedtest.Task(j).Resources.CPU = 1, 0
		}))
		plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
		if err != nil {
			t.Fatal(err)
		}
		c.changeNode("n00", change)
		if reservations, refused, why, _ := judge(c, plan); len(refused) != 1 || len(reservations.Place) != 0 || !strings.Contains(why, want) {
			t.Errorf("refused %v because %q, want %q", refused, why, want)
		}
	}
	f(down, "no new work")
	f(func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible }, "no new work")
	f(func(n *structs.Node) { n.DrainStrategy = &structs.DrainStrategy{} }, "no new work")
	f(func(n *structs.Node) {
		n.ReservedResources = &structs.NodeReservedResources{Networks: structs.NodeReservedNetworkResources{ReservedHostPorts: "80"}}
	}, "port 80")
	f(func(n *structs.Node) {
		n.ReservedResources = &structs.NodeReservedResources{Cpu: structs.NodeReservedCpuResources{ReservedCpuCores: []uint16{0}}}
	}, "cores")
	f(func(n *structs.Node) { n.NodeResources = nil }, "cpu")

	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		t.Fatal(err)
	}
	e := c.w.Edit()
	e.DeleteNode("n00")
	c.w = e.World()
	if _, refused, why, _ := judge(c, plan); len(refused) != 1 || !strings.Contains(why, "not known") {
		t.Errorf("refused %v because %q", refused, why)
	}
}

func TestJudgeKeepsFollowUpsOfStopsThatReservation(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 2))
	c.eval()
	c.client(func(a *structs.Allocation) bool { return a.Index() == 0 }, c.ended(true))
	c.update(setCount(3))
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		t.Fatal(err)
	}
	otherAlloc(c, "n00", 3400)
	reservations, refused, _, _ := judge(c, plan)
	if len(refused) != 1 || len(reservations.Evals) != 1 || reservations.Evals[0].WaitUntil.IsZero() || reservations.Stop[0].FollowupEvalID != reservations.Evals[0].ID {
		t.Errorf("refused %v, evaluations %+v", refused, reservations.Evals)
	}
}

func TestJudgeResourcesUpdatedInPlace(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	a := c.sorted()[0]
	f := func(mhz int64, fits bool) {
		t.Helper()
		r := a.AllocatedResources.Copy()
		r.Tasks["t"].Cpu.CpuShares = mhz
		plan := &structs.Plan{Update: []*structs.AllocInPlace{{AllocID: a.ID, Resources: r}}}
		reservations, refused, _, after := judge(c, plan)
		if fits != (len(reservations.Update) == 1) || fits != (len(refused) == 0) || fits != (after.Used("n00").CPU == mhz) {
			t.Errorf("%d MHz: %d hold, refused %v, used %+v", mhz, len(reservations.Update), refused, after.Used("n00"))
		}
	}
	f(4000, true)
	f(4001, false)
}

func TestJudgeKeepsTheOldWhenItsSuccessorElsewhereIsRefused(t *testing.T) {
	c := newCluster(t)
	c.node("a", func(n *structs.Node) { n.NodeResources.Cpu.CpuShares = 1000 })
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	c.client(isLive, healthy)
	c.node("b")
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 2000 })
	plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
	if err != nil || placed(plan) != 1 || len(plan.Stop) != 1 {
		t.Fatalf("%d placed, %d stopped, %v", placed(plan), len(plan.Stop), err)
	}
	otherAlloc(c, "b", 3000)
	reservations, refused, _, after := judge(c, plan)
	if len(refused) != 1 || len(reservations.Stop) != 0 || after.Diff(c.w) != nil {
		t.Errorf("refused %v, but %d stops hold", refused, len(reservations.Stop))
	}
}

// A stop that is kept back takes its room again: what the plan placed into that room
// is refused with it, and so on along the chain.
// An instance that moves away from a node that refuses something else leaves it all the
// same: its successor holds, and two of one instance must not run.
func TestJudgeLetsGoWhatMovesAway(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeService, 1))
	c.eval()
	old := c.sorted()[0]
	to := "n00"
	if old.NodeID == to {
		to = "n01"
	}
	resources := old.AllocatedResources
	batch := func(node, previous string, seed string) *structs.PlacementBatch {
		return &structs.PlacementBatch{
			Namespace: "default", JobID: "j", Group: "g", Seed: seed, Resources: resources, Nodes: []structs.PlacedNode{{ID: node}},
			Instances: []structs.Instance{{PreviousAllocation: previous}},
		}
	}
	otherAlloc(c, old.NodeID, 3600)
	reservations, refused, _, after := judge(c, &structs.Plan{
		Namespace: "default", JobID: "j",
		Stop:  []*structs.AllocStop{{AllocID: old.ID, DesiredStatus: structs.AllocDesiredStop}},
		Place: []*structs.PlacementBatch{batch(to, old.ID, "s1"), batch(old.NodeID, "", "s2")},
	})
	if len(refused) != 1 || refused[0] != old.NodeID || len(reservations.Place) != 1 || len(reservations.Stop) != 1 {
		t.Errorf("refused %v, %d placed, %d stopped", refused, len(reservations.Place), len(reservations.Stop))
	}
	if after.Used(to).CPU != 500 || after.Used(old.NodeID).CPU != 3600 {
		t.Errorf("used %+v, %+v", after.Used(to), after.Used(old.NodeID))
	}
}

func TestJudgeRefusesWhatCountsOnAStopThatIsKeptBack(t *testing.T) {
	c := newCluster(t)
	for _, id := range []string{"a", "b", "c"} {
		c.node(id)
	}
	batch := func(node, id string, mhz int64, previous string) *structs.PlacementBatch {
		return &structs.PlacementBatch{
			JobID: "j", Group: "g", Seed: id, Nodes: []structs.PlacedNode{{ID: node}},
			Instances: []structs.Instance{{PreviousAllocation: previous}},
			Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
				"t": {Cpu: structs.AllocatedCpuResources{CpuShares: mhz}},
			}},
		}
	}
	stop := func(id string) *structs.AllocStop {
		return &structs.AllocStop{AllocID: id, DesiredStatus: structs.AllocDesiredStop}
	}
	f := func(third int64, wantRefused, wantPlaced, wantStops int) {
		t.Helper()
		c := *c
		otherAlloc(&c, "a", 3000)
		otherAlloc(&c, "b", 3000)
		otherAlloc(&c, "c", third)
		plan := &structs.Plan{
			// What is on a goes to b, what is on b goes to c: each into the other's room.
			Stop:  []*structs.AllocStop{stop("other-a"), stop("other-b")},
			Place: []*structs.PlacementBatch{batch("a", "new", 2000, ""), batch("b", "to-b", 3000, "other-a"), batch("c", "to-c", 3000, "other-b")},
		}
		reservations, refused, _, after := judge(&c, plan)
		if len(refused) != wantRefused || len(reservations.Place) != wantPlaced || len(reservations.Stop) != wantStops {
			t.Errorf("refused %v, %d batches and %d stops hold", refused, len(reservations.Place), len(reservations.Stop))
		}
		for _, id := range []string{"a", "b", "c"} {
			if used := after.Used(id).CPU; used > 4000 {
				t.Errorf("node %s is over-committed: %d of 4000 MHz", id, used)
			}
		}
		if wantPlaced == 0 && after.Diff(c.w) != nil {
			t.Errorf("nothing holds, and yet: %v", after.Diff(c.w))
		}
	}
	f(1000, 0, 3, 2)
	f(3000, 3, 0, 0)
}

// TestJudgeRefusesReservedRoomOfAStopThatIsKeptBack: what was placed into the room of a stop that is kept back would otherwise use what a workflow has
// reserved.
func TestJudgeRefusesReservedRoomOfAStopThatIsKeptBack(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.node("b")
	e := c.w.Edit()
	scheduler.SetWorkflow(e, &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Posted: true, Parts: []structs.WorkflowPart{{NodeID: "a", CPU: 3000}},
	})
	c.w = e.World()
	otherAlloc(c, "a", 1000)
	batch := func(node, id string, mhz int64, previous string) *structs.PlacementBatch {
		return &structs.PlacementBatch{
			JobID: "j", Group: "g", Seed: id, Nodes: []structs.PlacedNode{{ID: node}}, Instances: []structs.Instance{{PreviousAllocation: previous}},
			Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: mhz}}}},
		}
	}
	for _, f := range []struct {
		elsewhere              int64 // MHz that the successor of what is stopped requests on the other node, of 4000
		refused, placed, stops int
	}{{4000, 0, 2, 1}, {4001, 2, 0, 0}} {
		valid, refused, why, after := judge(c, &structs.Plan{
			Stop:  []*structs.AllocStop{{AllocID: "other-a", DesiredStatus: structs.AllocDesiredStop}},
			Place: []*structs.PlacementBatch{batch("a", "new", 1000, ""), batch("b", "to-b", f.elsewhere, "other-a")},
		})
		if len(refused) != f.refused || len(valid.Place) != f.placed || len(valid.Stop) != f.stops || after.Used("a").CPU != 1000 {
			t.Errorf("%d MHz: refused %v (%s), %d placed, %d stopped, used %+v", f.elsewhere, refused, why, len(valid.Place), len(valid.Stop), after.Used("a"))
		}
	}
}

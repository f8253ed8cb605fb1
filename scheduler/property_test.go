package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestAnyHistory drives one job through random changes of nodes, of itself and of
// what clients report. After every evaluation cluster.evaluate checks that the
// same input gives the same plan, that the World which a plan was made on holds
// all of it, that judging, committing and rebuilding give one World, and that no
// node is over-committed and nothing is given twice. Here it is checked too that
// what was seen before never changes, and that the job ends up as it is wanted.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		c.seed = rapid.Uint64().Draw(rt, "seed")
		for i := range rapid.IntRange(0, 6).Draw(rt, "nodes") {
			c.setNode(schedtest.DrawNode(rt, fmt.Sprintf("n%d", i)))
		}
		c.register(schedtest.DrawJob(rt))
		var seen []remembered
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			seen = append(seen, remember(c))
			step(rt, c)
			c.eval()
			wanted(rt, c)
		}
		for _, s := range seen {
			if diff := s.w.Diff(s.rebuilt); diff != nil {
				rt.Fatalf("a World changed after it was taken: %v", diff)
			}
		}
	})
}

// remembered is a World and an equal one that shares nothing with it.
type remembered struct{ w, rebuilt *scheduler.World }

func remember(c *cluster) remembered { return remembered{c.w, c.rebuilt()} }

// step changes one thing.
func step(t *rapid.T, c *cluster) {
	pick := func(a *structs.Allocation) bool { return isLive(a) && rapid.Bool().Draw(t, "this") }
	id := fmt.Sprintf("n%d", rapid.IntRange(0, 7).Draw(t, "node"))
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0:
		c.setNode(schedtest.DrawNode(t, id))
		// It may have shrunk below what runs there; that is no fault of a plan's.
		if overcommitted(c.nodes, c.sorted()) != nil {
			c.client(func(a *structs.Allocation) bool { return a.NodeID == id && isLive(a) }, c.ended(true))
		}
	case 1:
		if c.nodes[id] != nil {
			c.changeNode(id, down)
		}
	case 2:
		if c.nodes[id] != nil {
			delete(c.nodes, id)
			e := c.w.Edit()
			e.DeleteNode(id)
			c.w = e.World()
		}
	case 3:
		if c.nodes[id] != nil {
			c.changeNode(id, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
		}
	case 4:
		c.client(pick, c.ended(true))
	case 5:
		c.client(pick, c.ended(false))
	case 6:
		c.client(pick, healthy)
	case 7:
		c.update(func(j *structs.Job) { schedtest.DrawSpec(t, j) })
	case 8:
		c.client(pick, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
	}
}

// wanted checks that the job has what it asks for, or says what it lacks: no
// index is held twice, and of a counted group holders and queued make up count.
func wanted(t *rapid.T, c *cluster) {
	names := map[string]string{}
	owners := 0
	for _, a := range c.sorted() {
		if !isLive(a) {
			continue
		}
		key := a.Name
		if c.job.PerNode() {
			key = a.TaskGroup + " on " + a.NodeID
		}
		if other, twice := names[key]; twice {
			t.Fatalf("%s is held by %s and %s", key, other, a.ID)
		}
		names[key] = a.ID
		if a.TaskGroup == "g" {
			owners++
		}
	}
	if m := c.done.FailedTGAllocs["g"]; m != nil && !c.job.PerNode() && m.NodesFiltered+m.NodesExhausted != m.NodesEvaluated {
		t.Fatalf("of %d nodes %d are filtered and %d exhausted: the others would do", m.NodesEvaluated, m.NodesFiltered, m.NodesExhausted)
	}
	if c.job.Type != structs.JobTypeService {
		return
	}
	// A failed one that waits to be rescheduled, or stays failed, holds its place.
	waiting := map[int]bool{}
	for _, a := range c.sorted() {
		if a.ClientStatus == structs.AllocClientFailed && a.TaskGroup == "g" && !a.ServerTerminal() && a.NextAllocation == "" && names[a.Name] == "" {
			waiting[a.Index()] = true
		}
	}
	queued := c.done.QueuedAllocations["g"]
	if g := schedtest.Group(c.job); owners > g.Count || (owners+queued < g.Count-len(waiting)) {
		t.Fatalf("%d holders, %d queued, %d waiting, want %d", owners, queued, len(waiting), g.Count)
	}
	if queued > 0 && c.done.FailedTGAllocs["g"] == nil {
		t.Fatalf("%d are queued without a reason", queued)
	}
}

// TestJudgeOnAnotherWorld judges plans that were made side by side on one World:
// whatever holds must fit together.
func TestJudgeOnAnotherWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt)
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			c.setNode(schedtest.DrawNode(rt, fmt.Sprintf("n%d", i)))
		}
		var plans []*structs.Plan
		for i := range rapid.IntRange(2, 5).Draw(rt, "plans") {
			j := schedtest.DrawJob(rt)
			j.ID = fmt.Sprint("j", i)
			c.job = j
			in := c.input()
			in.NewID = func() string { c.ids++; return fmt.Sprint(j.ID, c.ids) }
			ev := c.newEval()
			plan, err := scheduler.Schedule(c.w, ev, in)
			if err != nil {
				rt.Fatal(err)
			}
			plan.AllAtOnce = rapid.Bool().Draw(rt, "all at once")
			plans = append(plans, plan)
		}
		e := c.w.Edit()
		for _, plan := range plans {
			reservations, refused, why := scheduler.Judge(e, plan)
			n := 0
			for _, b := range reservations.Place {
				n += len(b.Instances)
				for _, in := range b.Instances {
					if slices.Contains(refused, b.Nodes[in.Node].ID) {
						rt.Fatalf("a refused node is placed on")
					}
				}
			}
			if (len(refused) > 0) != (why != "") || (len(refused) == 0 && n != placed(plan)) || (plan.AllAtOnce && n != 0 && n != placed(plan)) {
				rt.Fatalf("%d of %d hold, refused %v, %q", n, placed(plan), refused, why)
			}
			c.commit(reservations)
		}
		if diff := e.World().Diff(c.rebuilt()); diff != nil {
			rt.Fatal(diff)
		}
		if err := overcommitted(c.nodes, c.sorted()); err != nil {
			rt.Fatal(err)
		}
	})
}

package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// notTried is why those wait that their evaluation does not look at.
const notTried = "not tried yet beyond what its namespace, project or workflow has"

// TestEntitledOnly: of 16 one-GPU instances of an owner of 8 GPUs, the turn of what is entitled places 8 and leaves the others untried,
// however much is free; their own turn places them. Nothing is raised before that (semantics part 0, rule 6).
func TestEntitledOnly(t *testing.T) {
	c := newCluster(t)
	chain := chainOf(t)
	for _, id := range []string{"n1", "n2"} {
		c.node(id, schedtest.EightGPUs)
	}
	own := func(nodes int) {
		e := c.w.Edit()
		e.SetQuotas("default", []world.Quota{{Chain: chain, Level: "node", Count: nodes, Order: 1}})
		c.w = e.World()
	}
	own(1)
	job := gpuJobOf("default", "j", 16, 1)
	entitled := func(want int) {
		t.Helper()
		if n := scheduler.Entitled(c.w, job, job.TaskGroups[0].Name, 16); n != want {
			t.Errorf("%d are entitled, want %d", n, want)
		}
	}
	entitled(8)
	c.register(job)
	plan := c.evalEntitled()
	if g, o := classes(plan); g != 8 || o != 0 {
		t.Fatalf("%d guaranteed, %d opportunistic", g, o)
	}
	left := plan.Evals[len(plan.Evals)-1]
	if left.Status != structs.EvalStatusBlocked || left.SnapshotIndex != 0 || left.QueuedAllocations[job.TaskGroups[0].Name] != 8 {
		t.Errorf("the rest waits in %+v", left)
	}
	if reason, _ := left.FailedTGAllocs[job.TaskGroups[0].Name].MainReason(); reason != notTried {
		t.Errorf("it waits because: %s", reason)
	}
	entitled(0)
	if plan = c.evalEntitled(); len(plan.Place)+len(plan.Update) != 0 {
		t.Errorf("with all cells in use %v are placed", placements(plan))
	}
	if g, o := classes(c.eval()); g != 0 || o != 8 {
		t.Errorf("the rest: %d guaranteed, %d opportunistic", g, o)
	}
	c.runAll()
	own(2)
	entitled(8)
	if plan = c.evalEntitled(); len(plan.Update) != 0 {
		t.Errorf("%d are raised in the turn of what is entitled", len(plan.Update))
	}
	if plan = c.eval(); len(plan.Update) != 8 {
		t.Errorf("%d are raised", len(plan.Update))
	}
}

// TestEntitledTouchesNothingElse: in the turn of what is entitled, an instance is not replaced by a successor that no claim holds; it runs
// on until the other turn.
func TestEntitledTouchesNothingElse(t *testing.T) {
	c := newCluster(t)
	chain := chainOf(t)
	c.node("n1", schedtest.EightGPUs)
	e := c.w.Edit()
	e.SetQuotas("default", []world.Quota{{Chain: chain, Level: "gpu", Count: 1, Order: 1}})
	c.w = e.World()
	c.register(gpuJobOf("default", "j", 2, 1))
	c.eval()
	c.runAll()
	c.update(func(j *structs.Job) {
		schedtest.Task(j).Config = map[string]any{"run_for": "2s"}
		j.Update = nil
		j.TaskGroups[0].Update = nil
	})
	before := len(c.allocs)
	plan := c.evalEntitled()
	if g, o := classes(plan); g != 1 || o != 0 || len(plan.Stop) != 1 || len(c.allocs) != before+1 {
		t.Errorf("%d guaranteed successors, %d opportunistic, %d stopped", g, o, len(plan.Stop))
	}
	if g, o := classes(c.eval()); g != 0 || o != 1 {
		t.Errorf("the other one: %d guaranteed, %d opportunistic", g, o)
	}
}

// TestEntitledNowhere: where no node takes work, that is stated, also of what is not tried beyond what it has; and no longer once one does.
func TestEntitledNowhere(t *testing.T) {
	c := newCluster(t)
	job := gpuJobOf("default", "j", 1, 1)
	c.register(job)
	wants := func(want string) {
		t.Helper()
		plan := c.evalEntitled()
		if reason, _ := plan.Evals[len(plan.Evals)-1].FailedTGAllocs[job.TaskGroups[0].Name].MainReason(); reason != want {
			t.Errorf("it waits because: %s, want: %s", reason, want)
		}
	}
	wants(`no node of node pool "default" takes work`)
	c.node("n1", schedtest.EightGPUs)
	wants(notTried)
}

// evalEntitled decides one new evaluation at the entitled position of its request.
func (c *cluster) evalEntitled() *structs.Plan {
	c.t.Helper()
	c.entitledOnly = true
	defer func() { c.entitledOnly = false }()
	return c.eval()
}

package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// What is remembered of a group is not used for a job that may use other nodes, nor when
// nodes have come, went or changed. That it changes no plan else, cluster.evaluate checks.
func TestPreparedIsFoundAnew(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	known := scheduler.NewPrepared()
	group := schedtest.Job(structs.JobTypeBatch, 1).TaskGroups[0]
	evaluated := func(change ...func(*structs.Job)) (evaluated, placed int) {
		t.Helper()
		j := schedtest.Job(structs.JobTypeBatch, 1, change...)
		j.TaskGroups = []*structs.TaskGroup{group}
		c.job = j
		in := c.input()
		in.Prepared = known
		plan, err := scheduler.Schedule(c.w, c.newEval(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range plan.Place {
			return b.Metrics.NodesEvaluated, len(b.Instances)
		}
		return plan.FailedTGAllocs[group.Name].NodesEvaluated, 0
	}
	want := func(nodes, instances int, change ...func(*structs.Job)) {
		t.Helper()
		if n, k := evaluated(change...); n != nodes || k != instances {
			t.Errorf("%d nodes looked at and %d placed, want %d and %d", n, k, nodes, instances)
		}
	}
	want(1, 1)
	c.node("b")
	want(2, 1)
	want(0, 0, func(j *structs.Job) { j.Datacenters = []string{"elsewhere"} })
	want(0, 0, func(j *structs.Job) { j.NodePool = "gpus" })
	want(2, 0, func(j *structs.Job) {
		j.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "plan9", Operand: "="}}
	})
	want(2, 1)
	c.changeNode("a", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	want(1, 1)
}

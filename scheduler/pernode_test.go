package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

func TestSystemJob(t *testing.T) {
	c := newCluster(t)
	nodes(c, 3)
	c.node("w", func(n *structs.Node) { n.Attributes["kernel.name"] = "windows" })
	c.register(schedtest.Job(structs.JobTypeSystem, 1, func(j *structs.Job) {
		j.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}}
	}))
	c.eval()
	c.wantPlan(3, 0, 0)
	c.client(isLive, healthy)
	c.node("n90")
	c.eval()
	c.wantPlan(1, 0, 0)
	c.client(isLive, healthy)
	c.changeNode("n00", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	c.changeNode("n01", down)
	c.node("n91", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	c.eval()
	c.wantPlan(0, 1, 0)
	c.changeNode("n01", up)
	c.eval()
	c.wantPlan(1, 0, 0)
	c.client(isLive, healthy)
	c.update(destructive) // n00 is ineligible: three are left, one at a time
	c.eval()
	c.wantPlan(1, 1, 0)
	c.update(func(j *structs.Job) { j.Constraints[0].RTarget = "plan9" })
	c.eval()
	c.wantLive(0)
	if m := c.done.FailedTGAllocs["g"]; m == nil || m.ConstraintFiltered["${attr.kernel.name} = plan9"] == 0 {
		t.Errorf("that no node fits is explained as %+v", m)
	}
}

func TestSystemJobWithoutRoom(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.node("s", func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 100 })
	c.register(schedtest.Job(structs.JobTypeSystem, 1))
	c.eval()
	c.wantPlan(2, 0, 0)
	if m := c.done.FailedTGAllocs["g"]; m == nil || m.DimensionExhausted["memory"] != 1 || c.done.QueuedAllocations["g"] != 1 {
		t.Errorf("explained as %+v", m)
	}
}

// TestFailedSystemJobWaitsForAChange: what failed would fail again as long as neither job nor node changes.
func TestFailedSystemJobWaitsForAChange(t *testing.T) {
	for _, kind := range []string{structs.JobTypeSystem, structs.JobTypeSysBatch} {
		c := newCluster(t)
		nodes(c, 2)
		c.register(schedtest.Job(kind, 1))
		c.eval()
		c.wantPlan(2, 0, 0)
		c.client(isLive, c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		c.changeNode("n00", down)
		c.eval()
		c.wantPlan(0, 0, 0)
		c.changeNode("n00", up)
		c.eval()
		c.wantPlan(1, 0, 0) // n00 alone
		c.client(isLive, c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		c.client(func(a *structs.Allocation) bool { return a.NodeID == "n01" }, func(a *structs.Allocation) {
			a.DesiredTransition.ForceReschedule = new(true)
		})
		c.eval()
		c.wantPlan(1, 0, 0)
		c.client(isLive, c.ended(true))
		c.eval()
		c.wantPlan(0, 0, 0)
		c.update(destructive)
		c.eval()
		c.wantPlan(2, 0, 0)
	}
}

func TestSysBatchRunsOncePerVersion(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.register(schedtest.Job(structs.JobTypeSysBatch, 1))
	c.eval()
	c.wantPlan(2, 0, 0)
	c.client(func(a *structs.Allocation) bool { return a.NodeID == "n00" }, c.ended(false))
	c.client(func(a *structs.Allocation) bool { return a.NodeID == "n01" }, c.ended(true))
	c.eval()
	c.wantPlan(0, 0, 0)
	c.node("n02")
	c.eval()
	c.wantPlan(1, 0, 0)
	c.client(isLive, c.ended(false))
	c.update(destructive)
	c.eval()
	c.wantPlan(3, 0, 0)
}

package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// A gang that must be on one node finds the one that it names, however many others
// would hold it.
func TestGangOnOneNodeOfItsCandidates(t *testing.T) {
	c := newCluster(t)
	c.racks(decide.MaxNodesTried + 4)
	last := fmt.Sprintf("n%02d", decide.MaxNodesTried+4)
	c.register(gangJob(structs.JobTypeService, 2, 2, func(j *structs.Job) {
		schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: "node", Required: true}
		schedtest.Group(j).Candidates = []string{last}
	}))
	c.eval()
	if on := c.liveOn(); on[last] != 2 {
		t.Errorf("it runs on %v: %+v", on, c.done.FailedTGAllocs["g"])
	}
}

// A rack of which all is reserved for a gang holds it, and no other.
func TestGangInTheRackThatItHasReserved(t *testing.T) {
	for by, want := range map[string]int{"j": 2, "other": 0} {
		c := newCluster(t)
		c.racks(2)
		e := c.w.Edit()
		for _, id := range []string{"n01", "n02"} {
			e.Reserve(&structs.Reservation{NodeID: id, Namespace: "default", JobID: by, Group: "g", CPU: 4000, MemoryMB: 8000, Devices: 8})
		}
		c.w = e.World()
		c.register(gangJob(structs.JobTypeService, 2, 8, inRack(true)))
		in := c.input()
		plan, err := scheduler.Schedule(c.w, c.newEval(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := placed(plan); got != want {
			t.Errorf("reserved for %s: %d placed, want %d: %+v", by, got, want, plan.FailedTGAllocs["g"])
		}
	}
}

// A level within nodes is known if any node reports it, wherever its free room puts it
// among others that have the same devices in other places.
func TestGangAtALevelThatFewNodesReport(t *testing.T) {
	c := newCluster(t)
	c.node("a", schedtest.EightGPUs)
	c.node("b", schedtest.EightGPUs, func(n *structs.Node) {
		for _, cell := range n.NodeResources.Topology.Cells {
			if cell.Level == structs.LevelSocket {
				cell.Level = "tray"
			}
		}
	})
	c.register(gangJob(structs.JobTypeService, 2, 2, func(j *structs.Job) {
		schedtest.Group(j).Topology = &structs.TopologyConstraint{Level: "tray", Required: true}
	}))
	c.eval()
	c.wantLive(2)
}

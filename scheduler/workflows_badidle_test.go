package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// besideBad is a node of eight GPUs of which one workflow, "other", has reserved the first five, of which two are bad, and "wf" the last three or none.
func besideBad(t *testing.T, wf bool) *gpuWorkflows {
	x := newGPUWorkflows(t, chainOf(t), 1)
	x.reserves("other", "n1", 0, 5)
	if wf {
		x.reserves("wf", "n1", 5, 8)
	}
	x.breaks("n1", 0, 1)
	x.checkWorld()
	return x
}

// reserves has a workflow have reserved the GPUs of a node from one on to before another.
func (x *gpuWorkflows) reserves(id, node string, from, to int) {
	part := structs.WorkflowPart{NodeID: node, CPU: 3000, MemoryMB: 3000, DiskMB: 3000, Devices: to - from}
	for gpu := from; gpu < to; gpu++ {
		part.DeviceIDs = append(part.DeviceIDs, fmt.Sprintf("%s-gpu-%d", node, gpu))
	}
	c := &structs.WorkflowClaim{Namespace: "default", ID: id, Run: 1, NodePool: "default", Priority: 50, Posted: true, Parts: []structs.WorkflowPart{part}}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, c)
	x.w, x.workflows.workflows[c.Key()] = e.World(), c
}

// TestBadIdleGPUsOfOthers: GPUs of a reservation that are bad, and that nobody uses, take no room from others: who uses the other GPUs of their node, and who reserves them.
func TestBadIdleGPUsOfOthers(t *testing.T) {
	x := besideBad(t, true)
	x.submit("", "wf/1/a", 3, requests(50, 1000, 1000), gpusIn("default", 1), ofStage)
	if by := x.byClaim("wf/1/a"); by != "[workflow:3]" {
		t.Errorf("beside bad GPUs of another workflow there run %s in the reservation", by)
	}
	x = besideBad(t, false)
	x.submit("", "a", 8, requests(50, 100, 100), gpusIn("others", 1))
	if n := x.running("a"); n != 3 {
		t.Errorf("%d run on the 3 GPUs beside the reservation", n)
	}
	x = besideBad(t, false)
	if c, why := x.reserve("default", nil, gpuStage("default", 3)); why != "" || !c.Posted {
		t.Errorf("three GPUs beside the reservation cannot be reserved: %s", why)
	}
	x = besideBad(t, false)
	x.submit("", "a", 3, requests(50, 100, 100), gpusIn("others", 1))
	x.setNode(schedtest.Node("n2", schedtest.EightGPUs))
	x.reserves("third", "n2", 0, 8)
	x.breaks("n2", 0, 1, 2)
	if c, why := x.reserve("default", nil, gpuStage("default", 3)); c.Posted || len(c.Parts) != 1 || c.Parts[0].NodeID != "n1" || c.Parts[0].Devices != 3 {
		t.Errorf("three GPUs that others use beside the reservation are not kept when they come free: %+v: %s", c.Parts, why)
	}
}

// TestBadIdleGPUsAreNotKept: what waits for its reservation keeps all GPUs that are free beside another one, whatever is bad of that.
func TestBadIdleGPUsAreNotKept(t *testing.T) {
	x := besideBad(t, false)
	c := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
	c.Parts = []structs.WorkflowPart{{NodeID: "n1", CPU: 1000, MemoryMB: 1000, DiskMB: 300, Devices: 8}}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, c)
	x.w, x.workflows.workflows[c.Key()] = e.World(), c
	if k := scheduler.WorkflowKeeps(x.w, c.Key()); len(k) != 1 || k[0].Idle.GPUs != 3 {
		t.Errorf("kept beside the reservation: %+v, want 3 GPUs", k)
	}
}

// TestBadIdleGPUsAreNotAwaited: GPUs that are bad are not those that a stage has still to take, so that nobody borrows these.
func TestBadIdleGPUsAreNotAwaited(t *testing.T) {
	for _, needs := range []int{4, 2} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns"}}, gpuStage("default", 8)); why != "" {
			t.Fatal(why)
		}
		x.trains(gangStage(1, needs, 0))
		x.breaks("n1", 0, 1, 4, 5)
		x.submit("", "flood", 8, gpusIn("interns", 1))
		if n := x.running("flood"); n != 4-needs {
			t.Errorf("a stage has still to take %d of 4 GPUs that are well, and %d are lent", needs, n)
		}
	}
}

// TestNobodyLeavesABadGPU: a stage has nothing of who borrows a GPU that is bad: others leave.
func TestNobodyLeavesABadGPU(t *testing.T) {
	for gpu := range 8 {
		x := newGPUWorkflows(t, chainOf(t), 1)
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns"}}, gpuStage("default", 8)); why != "" {
			t.Fatal(why)
		}
		x.submit("", "flood", 8, gpusIn("interns", 1))
		x.breaks("n1", gpu)
		start := scheduler.StartStage(x.w, "default/wf", gangStage(1, 4, 0), 0)
		for _, s := range start.Stops {
			if u, _ := world.Usages(x.w).Get(s.AllocID); u.Devices[0].ID == fmt.Sprintf("n1-gpu-%d", gpu) {
				t.Errorf("%s leaves its bad GPU", s.AllocID)
			}
		}
		if len(start.Stops) != 4 || start.Lacking {
			t.Errorf("%d leave, lacking %v", len(start.Stops), start.Lacking)
		}
	}
}

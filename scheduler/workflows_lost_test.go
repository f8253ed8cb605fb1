package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestLostIdlesNot: what a reservation has lost does not count as idle, whether it is lost with its node or as GPUs are bad, which are named.
func TestLostIdlesNot(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	x.reserve("default", nil, gpuStage("default", 8))
	f := func(what string, idle, lost int64, bad string) {
		t.Helper()
		u := scheduler.WorkflowUse(x.w, "default/wf")
		if u.Reserved.GPUs != 8 || u.Used.GPUs != 0 || u.Idle.GPUs != idle || u.Lost.GPUs != lost || (u.Lost.Cores+u.Lost.CPU == 0) != (lost < 8) || u.Bad != bad {
			t.Errorf("%s: %+v", what, u)
		}
		if on := scheduler.ReservedOn(x.w, "n1"); len(on) != 1 || on[0].Idle.GPUs != idle || on[0].Lost.GPUs != lost {
			t.Errorf("%s, on the node: %+v", what, on)
		}
	}
	f("whole", 8, 0, "")
	breaks := func(gpu int) { x.changeNode("n1", setHealth(gpu, false)) }
	breaks(3)
	f("one is bad", 7, 1, "GPU n1-gpu-3 of node name-n1 is bad")
	breaks(5)
	f("two are bad", 6, 2, "GPUs n1-gpu-3 and n1-gpu-5 of node name-n1 are bad")
	x.changeNode("n1", down)
	f("the node is down", 0, 8, "GPUs n1-gpu-3 and n1-gpu-5 of node name-n1 are bad")
}

// TestPartInCellsStaysNot: a part in cells is lost at once when its node takes no work any more, and is reserved in other cells of its namespace, though an instance
// goes on there: what else the namespace runs might take these meanwhile.
func TestPartInCellsStaysNot(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.owns("default", "node", 1)
	x.reserve("default", nil, gpuStage("default", 8))
	x.starts("default", "a", 1, 4)
	on := x.w.Workflow("default/wf").Parts[0].NodeID
	x.changeNode(on, func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	r, _ := scheduler.RenewReservation(x.w, "default/wf", []scheduler.WorkflowStage{gpuStage("default", 8)}, structs.WorkflowReserve{Rule: structs.ReserveMax},
		scheduler.WorkflowRenewal{}, scheduler.WorkflowBands{})
	if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) != 1 || r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID == on || r.Parts[0].CellLevel != "node" {
		t.Errorf("lost %v, reserved %+v, missing %q", lost, r.Parts, r.Missing)
	}
}

// TestNotAwaitedWhereverItRuns: an instance of the running stage that was placed again on what is given to its project, and not in the reservation, is not awaited
// any more: all that idles is lent.
func TestNotAwaitedWhereverItRuns(t *testing.T) {
	for _, project := range []string{"", "chip"} {
		w := newWorkflows(t, 4, 0, &structs.WorkflowLend{To: "namespace:interns", LendLonger: true})
		w.slotNode("n2", 8)
		w.gives("chip", 3)
		const id = "wf/1/a0"
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: id, Limit: 3600e9, Started: 1, Needs: structs.WorkflowPart{CPU: 2000, MemoryMB: 2000, DiskMB: 300}}}
		w.set()
		job := func(j *structs.Job) { j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "a"} }
		w.submit(project, id, 1, requests(50, 2000, 2000), job)
		w.changeNode("n1", down)
		w.client(func(a *structs.Allocation) bool { return a.NodeID == "n1" }, func(a *structs.Allocation) {
			a.ClientStatus, a.DesiredStatus = structs.AllocClientLost, structs.AllocDesiredStop
		})
		w.decide(id)
		w.slotNode("n3", 4)
		w.claim.Parts = []structs.WorkflowPart{{NodeID: "n3", CPU: 4000, MemoryMB: 4000, DiskMB: 3000}}
		w.set()
		w.submit("", "fill", 20)
		w.flood("interns", 20)
		if n := w.running("flood-interns"); n != 4 {
			t.Errorf("project %q: of 4 cores that idle %d are lent; there run %s, by %v", project, n, w.on(), w.byClaim(id))
		}
	}
}

package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// halfLent is a workflow that has reserved a node of eight GPUs, of which four idle and four are lent: of each socket those of the numbers stay lent.
func halfLent(t *testing.T, stages []scheduler.WorkflowStage, lent ...string) *gpuWorkflows {
	t.Helper()
	x := newGPUWorkflows(t, chainOf(t), 1)
	if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns"}}, stages...); why != "" {
		t.Fatal(why)
	}
	x.claim = x.w.Workflow("default/wf")
	x.submit("", "flood-interns", 8, gpusIn("interns", 1))
	x.client(func(a *structs.Allocation) bool {
		for _, task := range a.AllocatedResources.Tasks {
			return !slices.Contains(lent, task.Devices[0].DeviceIDs[0])
		}
		return false
	}, x.ended(false))
	if got := x.usedGPUs(); len(got) != len(lent) {
		t.Fatalf("lent: %v, want %v", got, lent)
	}
	return x
}

// TestStageRequiresSocket: a stage that requires GPUs under one socket does not wait beside its own lent ones where as many idle, but under two: those who borrow
// under one socket leave, that under which they are fewest, and nobody else.
func TestStageRequiresSocket(t *testing.T) {
	for name, c := range underSocket {
		for _, lent := range []struct {
			gpus  []string
			leave int
		}{
			{[]string{"n1-gpu-0", "n1-gpu-1", "n1-gpu-4", "n1-gpu-5"}, 2},
			{[]string{"n1-gpu-0", "n1-gpu-4", "n1-gpu-5", "n1-gpu-6"}, 1},
			{[]string{"n1-gpu-0", "n1-gpu-1", "n1-gpu-2", "n1-gpu-4"}, 1},
			{[]string{"n1-gpu-4", "n1-gpu-5", "n1-gpu-6", "n1-gpu-7"}, 0},
		} {
			stage := scheduler.WorkflowStage{socketJob("b", c.count, c.each, c.change)}
			x := halfLent(t, []scheduler.WorkflowStage{gpuStage("default", 8), stage}, lent.gpus...)
			before := x.w
			x.submit("", "wf/1/b", c.count, gpusIn("default", c.each), c.change, ofStage)
			if got := x.running("wf/1/b"); got != c.count || x.running("flood-interns") != 4-lent.leave {
				t.Errorf("%s beside %v: %d run, and %d who borrow; want %d of these to leave", name, lent.gpus, got, x.running("flood-interns"), lent.leave)
			}
			start := scheduler.StartStage(before, "default/wf", stage, x.now.UnixNano())
			if start.Lacking || len(start.Stops) != lent.leave {
				t.Errorf("%s beside %v: lacking %v, %d leave at the start, want %d", name, lent.gpus, start.Lacking, len(start.Stops), lent.leave)
			}
			x.conserved()
		}
	}
}

// TestOneWithoutClaimRequiresSocket: so they do for one that uses its run's reservation without a claim, as that has too little disk: who borrows under one socket leaves.
func TestOneWithoutClaimRequiresSocket(t *testing.T) {
	for name, c := range underSocket {
		for _, lent := range []struct {
			gpus  []string
			leave int
		}{
			{[]string{"n1-gpu-0", "n1-gpu-1", "n1-gpu-4", "n1-gpu-5"}, 2},
			{[]string{"n1-gpu-0", "n1-gpu-4", "n1-gpu-5", "n1-gpu-6"}, 1},
			{[]string{"n1-gpu-0", "n1-gpu-1", "n1-gpu-2", "n1-gpu-4"}, 1},
			{[]string{"n1-gpu-4", "n1-gpu-5", "n1-gpu-6", "n1-gpu-7"}, 0},
		} {
			disk := func(j *structs.Job) { j.TaskGroups[0].EphemeralDisk = &structs.EphemeralDisk{SizeMB: 400} }
			x := halfLent(t, []scheduler.WorkflowStage{gpuStage("default", 8)}, lent.gpus...)
			x.submit("", "wf/1/b", c.count, gpusIn("default", c.each), c.change, ofStage, disk)
			if by := x.byClaim("wf/1/b"); by != fmt.Sprintf("[:%d]", c.count) || x.running("flood-interns") != 4-lent.leave {
				t.Errorf("%s beside %v: there run %s, and %d who borrow; want %d of these to leave", name, lent.gpus, by, x.running("flood-interns"), lent.leave)
			}
			x.conserved()
		}
	}
}

// TestGangBorrowsUnderSocket: a gang that requires one socket, or one node, borrows what idles there of a reservation, as its instances alone would; nobody leaves for it.
func TestGangBorrowsUnderSocket(t *testing.T) {
	for _, c := range []struct {
		level string
		lent  []string
		runs  int
	}{
		{structs.LevelSocket, []string{"n1-gpu-0", "n1-gpu-1"}, 4},
		{structs.LevelSocket, []string{"n1-gpu-0", "n1-gpu-4"}, 0},
		{structs.LevelNode, []string{"n1-gpu-0", "n1-gpu-4"}, 4},
	} {
		x := halfLent(t, []scheduler.WorkflowStage{gpuStage("default", 8)}, c.lent...)
		x.submit("", "gang", 4, gpusIn("interns", 1), func(j *structs.Job) {
			j.TaskGroups[0].Gang, j.TaskGroups[0].Topology = &structs.Gang{}, &structs.TopologyConstraint{Level: c.level, Required: true}
		})
		if n, others := x.running("gang"), x.running("flood-interns"); n != c.runs || others != 2 {
			t.Errorf("level %s beside %v: %d of the gang run, want %d, and %d others", c.level, c.lent, n, c.runs, others)
		}
		x.conserved()
	}
}

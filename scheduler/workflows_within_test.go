package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// halfOfEachSocket has a node of eight GPUs of which two are free under each socket.
func halfOfEachSocket(t *testing.T) *gpuWorkflows {
	x := newGPUWorkflows(t, chainOf(t), 1)
	on := map[string][]string{}
	for i := range 4 {
		id := fmt.Sprintf("fill-%d", i)
		x.submit("", id, 1, gpusIn("default", 2), func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: structs.LevelPCIe, Required: true}
		})
		for _, a := range x.sorted() {
			if a.JobID == id {
				for _, task := range a.AllocatedResources.Tasks {
					on[id] = task.Devices[0].DeviceIDs
				}
			}
		}
	}
	for id, gpus := range on {
		if slices.Contains(gpus, "n1-gpu-2") || slices.Contains(gpus, "n1-gpu-6") {
			x.ends(id, 1)
		}
	}
	return x
}

// TestReservationWithinNode: GPUs that have to be under one socket, by their gang or by one instance, are reserved on a node that has as many free under one,
// rather than on a node that has as many under two. If there is only the latter, they are reserved there, and wait in their stage.
func TestReservationWithinNode(t *testing.T) {
	want := &structs.TopologyConstraint{Level: structs.LevelSocket, Required: true}
	for name, c := range map[string]struct {
		count, each int
		change      func(*structs.Job)
	}{
		"gang":     {4, 1, func(j *structs.Job) { j.TaskGroups[0].Gang, j.TaskGroups[0].Topology = &structs.Gang{}, want }},
		"instance": {1, 4, func(j *structs.Job) { schedtest.Task(j).Resources.Devices[0].Topology = want }},
	} {
		x := halfOfEachSocket(t)
		stage := scheduler.WorkflowStage{schedtest.Job(structs.JobTypeBatch, c.count, requests(50, 1000, 1000), gpusIn("default", c.each), c.change, ofStage, func(j *structs.Job) { j.ID = "wf/1/a" })}
		if only := x.choose(stage); !only.Posted || len(only.Parts) != 1 || only.Parts[0].NodeID != "n1" {
			t.Errorf("%s, on the only node: %+v", name, only)
		}
		x.setNode(schedtest.Node("n2", schedtest.EightGPUs))
		got, why := x.reserve("default", nil, stage)
		if why != "" || len(got.Parts) != 1 || got.Parts[0].NodeID != "n2" {
			t.Errorf("%s: %+v, %s", name, got, why)
		}
		x.submit("", "wf/1/a", c.count, gpusIn("default", c.each), c.change, ofStage)
		if got := x.claims("wf/1/a"); got != fmt.Sprintf("%d workflow", c.count) {
			t.Errorf("%s: runs by %s", name, got)
		}
	}
}

package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// underSocket are the two kinds of jobs of which four GPUs have to be under one socket.
var underSocket = map[string]struct {
	count, each int
	change      func(*structs.Job)
}{
	"gang":     {4, 1, func(j *structs.Job) { j.TaskGroups[0].Gang, j.TaskGroups[0].Topology = &structs.Gang{}, wantsSocket }},
	"instance": {1, 4, func(j *structs.Job) { schedtest.Task(j).Resources.Devices[0].Topology = wantsSocket }},
}

var wantsSocket = &structs.TopologyConstraint{Level: structs.LevelSocket, Required: true}

// socketJob is a job of a stage with instances of so many GPUs.
func socketJob(name string, count, each int, change func(*structs.Job)) *structs.Job {
	return schedtest.Job(structs.JobTypeBatch, count, requests(50, 1000, 1000), gpusIn("default", each), change, ofStage, func(j *structs.Job) { j.ID = "wf/1/" + name })
}

// TestReservationWithinNode: GPUs that have to be under one socket, by their gang or by one instance, are reserved on a node that has as many free under one,
// rather than on a node that has as many under two. If there is only the latter, what comes free is kept there until there are as many under one.
func TestReservationWithinNode(t *testing.T) {
	for name, c := range underSocket {
		x := halfOfEachSocket(t)
		stage := scheduler.WorkflowStage{socketJob("a", c.count, c.each, c.change)}
		only := x.choose(stage)
		if only.Posted || only.Never || len(only.Parts) != 1 || only.Parts[0].NodeID != "n1" || only.Parts[0].Devices != 4 {
			t.Errorf("%s, on the only node: %+v", name, only)
		}
		if want := "4 GPUs where the stages' jobs have their required levels of topology are missing"; !strings.HasSuffix(only.Missing, want) {
			t.Errorf("%s: %s", name, only.Missing)
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

// TestReservationWithinNodeNames: of a node with a free socket and a pair under another, what has to be under one socket names the GPUs of the free one.
func TestReservationWithinNodeNames(t *testing.T) {
	for name, c := range underSocket {
		x := halfOfEachSocket(t)
		for _, a := range x.sorted() {
			for _, task := range a.AllocatedResources.Tasks {
				if a.ClientStatus != structs.AllocClientComplete && slices.Contains(task.Devices[0].DeviceIDs, "n1-gpu-4") {
					x.ends(a.JobID, 1)
				}
			}
		}
		got, why := x.reserve("default", nil, scheduler.WorkflowStage{socketJob("a", c.count, c.each, c.change)})
		want := []string{"n1-gpu-4", "n1-gpu-5", "n1-gpu-6", "n1-gpu-7"}
		if why != "" || len(got.Parts) != 1 || !slices.Equal(got.Parts[0].DeviceIDs, want) {
			t.Errorf("%s: %+v, %s", name, got, why)
		}
	}
}

// TestReservationsWithinNodeTogether: what has to be under cells within nodes is reserved where there are cells for all of a stage beside one another. Stages that
// follow each other use the same ones.
func TestReservationsWithinNodeTogether(t *testing.T) {
	three := func(name string, count int) *structs.Job {
		return socketJob(name, count, 3, underSocket["instance"].change)
	}
	pair := socketJob("pair", 1, 2, underSocket["instance"].change)
	for _, c := range []struct {
		name   string
		stages []scheduler.WorkflowStage
		parts  map[string]int // devices by node
	}{
		{"two under each socket", []scheduler.WorkflowStage{{three("a", 2)}}, map[string]int{"n1": 6}},
		{"no two under the sockets that are left", []scheduler.WorkflowStage{{three("a", 2), pair}}, map[string]int{"n1": 6, "n2": 2}},
		{"one after the other", []scheduler.WorkflowStage{{three("a", 1)}, {three("b", 1)}, {pair}}, map[string]int{"n1": 3}},
	} {
		x := newGPUWorkflows(t, chainOf(t), 2)
		got, why := x.reserve("default", nil, c.stages...)
		parts := map[string]int{}
		for _, p := range got.Parts {
			parts[p.NodeID] = p.Devices
		}
		if why != "" || !got.Posted || got.OneByOne || !maps.Equal(parts, c.parts) {
			t.Errorf("%s: %v of %+v, %s", c.name, parts, got, why)
		}
	}
	x := newGPUWorkflows(t, chainOf(t), 1)
	if got := x.choose(scheduler.WorkflowStage{three("a", 2), pair}); !got.Posted || len(got.Parts) != 1 || got.Parts[0].Devices != 8 {
		t.Errorf("never beside one another: one waits in the stage, got %+v", got)
	}
}

package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// inTasks requests a job's GPUs by tasks, so many each, in place of one.
func inTasks(gpus ...int) func(*structs.Job) {
	return func(j *structs.Job) {
		g := schedtest.Group(j)
		one := g.Tasks[0]
		g.Tasks = nil
		for i, n := range gpus {
			task := one.Copy()
			task.Name = fmt.Sprint("t", i)
			task.Resources.CPU, task.Resources.MemoryMB = 100, 32
			task.Resources.Devices[0].Count = n
			g.Tasks = append(g.Tasks, task)
		}
	}
}

// inBlocks requests a job's GPUs by device blocks of one task, as they are named.
func inBlocks(devices ...structs.RequestedDevice) func(*structs.Job) {
	return func(j *structs.Job) {
		r := schedtest.Task(j).Resources
		r.Devices = nil
		for i := range devices {
			r.Devices = append(r.Devices, &devices[i])
		}
	}
}

// TestTogether: GPUs that an instance requests by several tasks or device blocks are claimed as those of one request are.
func TestTogether(t *testing.T) {
	topology := func(level string) *structs.TopologyConstraint {
		return &structs.TopologyConstraint{Level: level, Required: true}
	}
	f := func(name, level string, count, gpus, want int, change ...func(*structs.Job)) {
		t.Helper()
		x := newTenants(t, owns(t, "a", level, count), eightGPUs("n1"), eightGPUs("n2"))
		x.decide("b", "flood", 16, 1)
		if scheduler.Entitled(x.pass.World(), changed(gpuJobOf("a", "one", 1, 1), change), "g", 1) != min(want, 1) && level == "node" {
			t.Errorf("%s: it is not entitled", name)
		}
		before := x.pass.World()
		plan := x.decide("a", "one", 1, 1, change...)
		if g, o := classes(plan); g != want || o != 0 || preemptedBy(plan) != want*gpus {
			t.Errorf("%s: %v, %d stopped: %v", name, placements(plan), preemptedBy(plan), reasonsOf(plan))
		}
		if valid, refused, why := scheduler.Judge(before.Edit(), plan); len(refused) > 0 || len(valid.Place) != want {
			t.Errorf("%s: refused on %v: %s", name, refused, why)
		}
	}
	f("two tasks", "node", 1, 2, 1, inTasks(1, 1))
	f("guaranteed only", "node", 1, 2, 1, inTasks(1, 1), guaranteedOnly)
	f("a whole node", "node", 1, 8, 1, inTasks(1, 1, 4, 2))
	f("more than a node has", "node", 1, 9, 0, inTasks(1, 8))
	f("more than is owned", "pcie", 1, 3, 0, inTasks(1, 2))
	f("of two cells", "pcie", 2, 4, 1, inTasks(3, 1))
	f("of single GPUs", "gpu", 3, 3, 1, inTasks(1, 1, 1))
	f("a gang", "node", 1, 2, 1, inTasks(1, 1), gang(0))
	f("a gang under one socket", "node", 1, 2, 1, inTasks(1, 1), gang(0), func(j *structs.Job) { schedtest.Group(j).Topology = topology("socket") })
	f("two blocks", "node", 1, 2, 1, inBlocks(structs.RequestedDevice{Name: "nvidia/gpu", Count: 1}, structs.RequestedDevice{Name: "nvidia/gpu", Count: 1}))
	f("names of which one is wider", "node", 1, 3, 1, inBlocks(structs.RequestedDevice{Name: "gpu", Count: 2}, structs.RequestedDevice{Name: "nvidia/gpu/H100", Count: 1}))
	f("required levels of their own", "node", 1, 8, 1, inBlocks(structs.RequestedDevice{Name: "nvidia/gpu", Count: 3},
		structs.RequestedDevice{Name: "nvidia/gpu", Count: 3}, structs.RequestedDevice{Name: "nvidia/gpu", Count: 2, Topology: topology("pcie")}))
	f("a level that none has", "node", 1, 3, 0, inBlocks(structs.RequestedDevice{Name: "nvidia/gpu", Count: 1},
		structs.RequestedDevice{Name: "nvidia/gpu", Count: 3, Topology: topology("pcie")}))
	f("two models", "node", 1, 2, 0, inBlocks(structs.RequestedDevice{Name: "nvidia/gpu/H100", Count: 1}, structs.RequestedDevice{Name: "nvidia/gpu/A100", Count: 1}))

	// An instance lies under the smallest cell that holds all that it requests, each task has what it requests, and the rest stays whole.
	x := newTenants(t, owns(t, "a", "node", 1), eightGPUs("n1"))
	plan := x.decide("a", "pairs", 3, 1, inTasks(1, 1))
	for i := range plan.Place[0].Instances {
		var ids []string
		for _, task := range []string{"t0", "t1"} {
			got := plan.Place[0].Instances[i].Devices[task]
			if len(got) != 1 || len(got[0].DeviceIDs) != 1 {
				t.Fatalf("task %s of instance %d has %v", task, i, got)
			}
			ids = append(ids, got[0].DeviceIDs[0])
		}
		if slices.Sort(ids); ids[0][len("n1-gpu-"):] >= ids[1][len("n1-gpu-"):] || !strings.Contains("01 23 45 67", ids[0][7:]+ids[1][7:]) {
			t.Errorf("instance %d: %v are under two switches", i, ids)
		}
	}
	x.wantClasses("the rest", x.decide("a", "two", 1, 2, guaranteedOnly), 1, 0)
	x.wantClasses("nothing is left", x.decide("a", "more", 1, 1, inTasks(1, 1), guaranteedOnly), 0, 0)

	// It is raised as one, too.
	x = newTenants(t, func(*scheduler.Edit) {}, eightGPUs("n1"))
	x.wantClasses("nobody owns anything", x.decide("a", "pair", 1, 1, inTasks(1, 1)), 0, 1)
	e := x.pass.World().Edit()
	owns(t, "a", "pcie", 1)(e)
	if due := scheduler.DueRaises(e.World(), "a", func(structs.NamespacedID, string) bool { return true }); len(due) != 1 || len(due[0].IDs) != 1 {
		t.Errorf("to be raised: %v", due)
	}

	// What two tasks request together counts against the limit.
	x = newTenants(t, owns(t, "a", "socket", 1), eightGPUs("n1"))
	x.overLimit = structs.OverLimitWait
	plan = x.decide("a", "three", 3, 1, inTasks(1, 1))
	if x.wantClasses("three pairs of four GPUs", plan, 2, 0); !containsAll(reasonsOf(plan), []string{`over the limit: namespace "a" owns 4 GPUs, 4 in guaranteed use`, `withheld by over_limit = "wait"`}) {
		t.Errorf("three pairs of four GPUs: %q", reasonsOf(plan))
	}

	// So does a pinned cell that one of them names.
	x = newTenants(t, ownsPinned(t, "a"), eightGPUs("n1"), eightGPUs("n2"))
	x.decide("b", "flood", 16, 1)
	named := structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Topology: &structs.TopologyConstraint{Level: "gpu", Pin: "n2/socket-1"}}
	if got := placements(x.decide("a", "two", 2, 1, inBlocks(named, structs.RequestedDevice{Name: "nvidia/gpu", Count: 1}))); !inPinned(got, 2) {
		t.Errorf("in a pinned cell: %v", got)
	}
}

func changed(job *structs.Job, change []func(*structs.Job)) *structs.Job {
	for _, f := range change {
		f(job)
	}
	return job
}

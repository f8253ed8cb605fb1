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

// breaks has GPUs of a node be bad.
func (x *gpuWorkflows) breaks(node string, gpus ...int) {
	for _, gpu := range gpus {
		x.changeNode(node, setHealth(gpu, false))
	}
}

// renews reserves anew for the workflow what it has lost, has that judged and committed, and returns its parts as text, and what is missing.
func (x *gpuWorkflows) renews(stages ...scheduler.WorkflowStage) (parts, missing string) {
	x.t.Helper()
	const key = "default/wf"
	c, _ := scheduler.RenewReservation(x.w, key, stages, structs.WorkflowReserve{Rule: structs.ReserveMax}, scheduler.WorkflowRenewal{}, scheduler.WorkflowBands{})
	if c.Missing == "" && !structs.PartsEqual(c.Parts, x.w.Workflow(key).Parts) {
		if why := x.post(x.w.Workflow(key), c); why != "" {
			x.t.Fatalf("%+v does not hold: %s", c.Parts, why)
		}
		x.checkWorld()
	}
	var list []string
	for _, p := range x.w.Workflow(key).Parts {
		text := fmt.Sprintf("%s %d", p.NodeID, p.Devices)
		if p.CellLevel != "" {
			text += " " + p.CellLevel
		}
		if p.Lost {
			text += " lost"
		}
		list = append(list, text)
		n, _ := x.w.State(p.NodeID)
		for _, t := range n.Capacity.Trees {
			for _, d := range t.Sick {
				if c.Missing == "" && slices.Contains(p.DeviceIDs, t.IDs[d]) && !slices.Contains(x.usedGPUs(), t.IDs[d]) {
					x.t.Fatalf("%s is bad and reserved: %+v, chosen %+v", t.IDs[d], x.w.Workflow(key).Parts, c)
				}
			}
		}
	}
	return strings.Join(list, ", "), c.Missing
}

// usedGPUs returns the IDs of the GPUs that instances use.
func (x *gpuWorkflows) usedGPUs() (ids []string) {
	for _, a := range x.sorted() {
		if a.Terminal() {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			for _, d := range t.Devices {
				ids = append(ids, d.DeviceIDs...)
			}
		}
	}
	return ids
}

// TestBadGPUIsReservedAnew: a GPU that turns bad is lost to the reservation that names it: it has another one of the node if one is free, else what is missing is reserved
// elsewhere; if that cannot be, the part stays as it is, and what is missing is named.
func TestBadGPUIsReservedAnew(t *testing.T) {
	const missing = "GPUs n1-gpu-0 and n1-gpu-1 of node name-n1 are bad, and "
	for name, c := range map[string]struct {
		nodes, owned int
		level        string
		stage        []int
		want         string
		missing      bool
	}{
		"others of the node": {nodes: 1, stage: []int{4}, want: "n1 4"},
		"another node":       {nodes: 2, stage: []int{8}, want: "n2 8"},
		"smaller instances":  {nodes: 2, stage: []int{2, 2, 2, 2}, want: "n2 8"},
		"nowhere":            {nodes: 1, stage: []int{8}, want: "n1 8", missing: true},
		"cells of a node":    {nodes: 2, owned: 1, level: "node", stage: []int{8}, want: "n2 8 node"},
		"in the same cell":   {nodes: 2, owned: 1, level: "node", stage: []int{4}, want: "n1 4 node"},
		"cells of GPUs":      {nodes: 1, owned: 4, level: "gpu", stage: []int{4}, want: "n1 4 gpu"},
	} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		if c.owned > 0 {
			x.owns("default", c.level, c.owned)
		}
		stage := gpuStage("default", c.stage...)
		if _, why := x.reserve("default", nil, stage); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		for i := range c.nodes - 1 {
			x.setNode(schedtest.Node(fmt.Sprintf("n%d", i+2), schedtest.EightGPUs))
		}
		names := x.w.Workflow("default/wf").Parts[0].DeviceIDs
		for _, id := range names[:2] {
			x.breaks("n1", int(id[len(id)-1]-'0'))
		}
		if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) != 1 || lost[0] != "n1" {
			t.Errorf("%s: lost %v", name, lost)
		}
		got, why := x.renews(stage)
		if got != c.want || (why != "") != c.missing || c.missing && !strings.HasPrefix(why, missing) {
			t.Errorf("%s: reserved %s, want %s, missing %q", name, got, c.want, why)
		}
		if lost := scheduler.LostParts(x.w, "default/wf"); (len(lost) > 0) != c.missing {
			t.Errorf("%s: lost %v afterwards", name, lost)
		}
	}
}

// TestBadGPUInUse: what runs on a GPU that has turned bad goes on in the reservation, which has lost the GPU once it has ended. What is bad beside what runs is lost at
// once: the part stays without it.
func TestBadGPUInUse(t *testing.T) {
	for _, cells := range []bool{false, true} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		if cells {
			x.owns("default", "node", 1)
		}
		stage := gpuStage("default", 4, 4)
		if _, why := x.reserve("default", nil, stage); why != "" {
			t.Fatal(why)
		}
		x.starts("default", "0", 1, 4)
		x.setNode(schedtest.Node("n2", schedtest.EightGPUs))
		used := x.usedGPUs()
		x.breaks("n1", int(used[0][len(used[0])-1]-'0'))
		if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) > 0 {
			t.Errorf("in cells: %v: lost %v", cells, lost)
		}
		idle := slices.DeleteFunc(slices.Clone(x.w.Workflow("default/wf").Parts[0].DeviceIDs), func(id string) bool { return slices.Contains(used, id) })
		x.breaks("n1", int(idle[0][len(idle[0])-1]-'0'))
		level := map[bool]string{true: " node"}[cells]
		if got, why := x.renews(stage); got != "n1 7"+level+", n2 4" || why != "" {
			t.Errorf("in cells: %v: reserved %s, missing %q", cells, got, why)
		}
		if claims := x.claims("wf/1/0"); claims != "1 workflow" {
			t.Errorf("in cells: %v: it runs by %s", cells, claims)
		}
		x.client(func(a *structs.Allocation) bool { return true }, x.ended(false))
		if lost := scheduler.LostParts(x.w, "default/wf"); len(lost) != 1 {
			t.Errorf("in cells: %v: lost %v at its end", cells, lost)
		}
		if got, why := x.renews(stage); got == "" || why != "" {
			t.Errorf("in cells: %v: reserved %s at its end, missing %q", cells, got, why)
		}
	}
}

// TestStageOnBadGPU: a stage does not start where a GPU of the reservation has turned bad which it needs.
func TestStageOnBadGPU(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	if _, why := x.reserve("default", nil, gpuStage("default", 8)); why != "" {
		t.Fatal(why)
	}
	x.breaks("n1", 3)
	for gpus, lacking := range map[int]bool{7: false, 8: true} {
		if s := scheduler.StartStage(x.w, "default/wf", gpuStage("default", gpus), 0); s.Lacking != lacking || (s.Nodes[0] == "") != lacking {
			t.Errorf("%d GPUs: %+v", gpus, s)
		}
	}
}

// TestBadGPUUnderOneCell: where an instance requires a level within its node, all of its GPUs are others, under one cell of that.
func TestBadGPUUnderOneCell(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	stage := gpuStage("default", 4)
	schedtest.Task(stage[0]).Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: "socket", Required: true}
	if _, why := x.reserve("default", nil, stage); why != "" {
		t.Fatal(why)
	}
	was := x.w.Workflow("default/wf").Parts[0].DeviceIDs
	x.breaks("n1", int(was[1][len(was[1])-1]-'0'))
	got, why := x.renews(stage)
	if now := x.w.Workflow("default/wf").Parts[0].DeviceIDs; got != "n1 4" || why != "" || slices.Contains(now, was[0]) || slices.Contains(now, was[3]) {
		t.Errorf("reserved %s, in place of %v %v, missing %q", got, was, now, why)
	}
}

// TestGPUOfPartIsGone: a GPU of a reservation that its node has no more is lost as one that is bad is, and said to be.
func TestGPUOfPartIsGone(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 1)
	if _, why := x.reserve("default", nil, gpuStage("default", 8)); why != "" {
		t.Fatal(why)
	}
	x.changeNode("n1", func(n *structs.Node) {
		d := *n.NodeResources.Devices[0]
		d.Instances = d.Instances[:7]
		n.NodeResources.Devices = []*structs.NodeDeviceResource{&d}
	})
	u := scheduler.WorkflowUse(x.w, "default/wf")
	if u.Reserved.GPUs != 8 || u.Idle.GPUs != 7 || u.Lost.GPUs != 1 || !strings.HasSuffix(u.Bad, "is bad or gone") {
		t.Errorf("of %d reserved GPUs %d idle and %d are lost: %q", u.Reserved.GPUs, u.Idle.GPUs, u.Lost.GPUs, u.Bad)
	}
}

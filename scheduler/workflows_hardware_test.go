package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// newRacks is a cluster of racks of two nodes each.
func newRacks(t *testing.T, racks int) *gpuWorkflows {
	x := newGPUWorkflows(t, chainOf(t), 2*racks)
	x.levels() // of nodes without racks
	x.configure()
	for i := range 2 * racks {
		x.changeNode(fmt.Sprintf("n%d", i+1), func(n *structs.Node) { n.Meta["rack"] = fmt.Sprintf("r%d", i/2+1) })
	}
	return x
}

// setHealth states of a GPU of a node whether it is well.
func setHealth(gpu int, well bool) func(*structs.Node) {
	return func(n *structs.Node) {
		resources := *n.NodeResources
		resources.Devices = append([]*structs.NodeDeviceResource(nil), resources.Devices...)
		devices := *resources.Devices[0]
		devices.Instances = append([]*structs.NodeDevice(nil), devices.Instances...)
		is := *devices.Instances[gpu]
		is.Healthy, devices.Instances[gpu] = well, &is
		resources.Devices[0], n.NodeResources = &devices, &resources
	}
}

// doomed counts the cells that the hardware cannot hold.
func (x *gpuWorkflows) doomed() (n int) {
	for _, c := range x.w.Chains {
		for _, b := range c.Balances() {
			n += b.Doomed
		}
	}
	return n
}

// partOf is a part of a reservation by hand: the first GPUs of a node.
func partOf(node string, gpus int) structs.WorkflowPart {
	p := structs.WorkflowPart{NodeID: node, CPU: 50, MemoryMB: 1000, DiskMB: 1000, Devices: gpus}
	for i := range gpus {
		p.DeviceIDs = append(p.DeviceIDs, fmt.Sprintf("%s-gpu-%d", node, i))
	}
	return p
}

// TestReservationLeavesWhatReturns: a reservation beside cells takes nothing that is owned when the nodes that are not ready, and the GPUs that are bad, are back: a
// cell that is doomed without them is doomed no longer then.
func TestReservationLeavesWhatReturns(t *testing.T) {
	for what, lose := range map[string]func(x *gpuWorkflows, lost bool){
		"down": func(x *gpuWorkflows, lost bool) {
			x.changeNode("n1", map[bool]func(*structs.Node){true: down, false: up}[lost])
		},
		"ineligible": func(x *gpuWorkflows, lost bool) {
			x.changeNode("n1", func(n *structs.Node) {
				n.SchedulingEligibility = map[bool]string{true: structs.NodeIneligible, false: structs.NodeEligible}[lost]
			})
		},
		"bad": func(x *gpuWorkflows, lost bool) { x.changeNode("n1", setHealth(3, !lost)) },
	} {
		x := newRacks(t, 2)
		x.owns("default", "rack", 1, 2)
		x.changeNode("n3", down) // so that the rack is r1
		lose(x, true)
		if n := x.doomed(); n != 1 {
			t.Fatalf("%s: %d cells are doomed", what, n)
		}
		claim := &structs.WorkflowClaim{Namespace: "b", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
		for node, holds := range map[string]bool{"n2": true, "n4": true} { // the other rack would be left
			e := x.w.Edit()
			scheduler.SetWorkflow(e, claim)
			lack := scheduler.ReservationLacks(e, &structs.WorkflowReservation{Namespace: "b", ID: "wf", Run: 1, Posted: true, Parts: []structs.WorkflowPart{partOf(node, 1)}}, false)
			if (lack == "") != holds {
				t.Errorf("%s: a GPU of %s: %q", what, node, lack)
			}
		}
		c, why := x.reserve("b", nil, gpuStage("b", 8, 8))
		if c.Posted || !c.Never || why == "" {
			t.Errorf("%s: GPUs of both racks are reserved: %s", what, why)
		}
		if c, why = x.reserve("b", nil, gpuStage("b", 8)); why != "" || len(c.Parts) != 1 {
			t.Fatalf("%s: %s: %+v", what, why, c)
		}
		x.changeNode("n3", up)
		if lose(x, false); x.doomed() > 0 {
			t.Errorf("%s: %d cells are doomed with all hardware back; reserved is %+v", what, x.doomed(), c.Parts)
		}
		x.checkWorld()
	}
}

// TestJudgeCountsPartsTogether: each part of a reservation may be left beside what is owned, and all of them together not.
func TestJudgeCountsPartsTogether(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 2)
	x.owns("a", "node", 1)
	claim := &structs.WorkflowClaim{Namespace: "b", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, claim)
	x.w, x.workflows.workflows[claim.Key()] = e.World(), claim
	c := scheduler.WorkflowChoice{Parts: []structs.WorkflowPart{partOf("n1", 1), partOf("n2", 1)}}
	if why := x.post(claim, c); !strings.Contains(why, "guaranteed to namespaces") {
		t.Errorf("two nodes of which one is owned: %q", why)
	}
	c.Parts = c.Parts[:1]
	if why := x.post(claim, c); why != "" || x.doomed() > 0 {
		t.Errorf("one of them: %q, %d cells are doomed", why, x.doomed())
	}
}

// TestReservationLeavesWhatWillEnd: a reservation beside cells takes nothing that is owned when those have ended who have bound the room of a doomed cell meanwhile.
func TestReservationLeavesWhatWillEnd(t *testing.T) {
	x := newRacks(t, 1)
	x.owns("default", "rack", 1, 2)
	x.setNode(schedtest.Node("n3", schedtest.EightGPUs)) // without a rack
	x.owns("a", "node", 1)
	x.changeNode("n1", down)
	x.changeNode("n3", down)
	if x.submit("", "a", 1, gpusIn("a", 8)); x.claims("a") != "1 cells" || x.liveOf("a").NodeID != "n2" {
		t.Fatalf("meanwhile %s runs as %q", x.on(), x.claims("a"))
	}
	x.changeNode("n1", up)
	if x.doomed() != 1 {
		t.Fatalf("%d cells are doomed", x.doomed())
	}
	if c, why := x.reserve("b", nil, gpuStage("b", 1)); c.Posted {
		t.Errorf("reserved: %+v %s", c.Parts, why)
	}
	x.changeNode("n3", up)
	if c, why := x.reserve("b", nil, gpuStage("b", 1)); c.Posted {
		t.Errorf("reserved with all nodes back: %+v %s", c.Parts, why)
	}
	if x.ends("a", 9); x.doomed() > 0 {
		t.Errorf("%d cells are doomed", x.doomed())
	}
}

// TestRenewalLeavesWhatReturns: what is reserved anew leaves what returns, too, and counts the part that is lost as returned with its node.
func TestRenewalLeavesWhatReturns(t *testing.T) {
	x := newRacks(t, 2)
	claim := &structs.WorkflowClaim{Namespace: "b", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Parts: []structs.WorkflowPart{partOf("n1", 1)}}
	e := x.w.Edit()
	scheduler.SetWorkflow(e, claim)
	x.w, x.workflows.workflows[claim.Key()] = e.World(), claim
	x.owns("default", "rack", 1, 2)
	for _, id := range []string{"n1", "n2", "n3"} {
		x.changeNode(id, down)
	}
	renewed := func() scheduler.WorkflowChoice {
		c, _ := scheduler.RenewReservation(x.w, "b/wf", []scheduler.WorkflowStage{gpuStage("b", 8)}, structs.WorkflowReserve{Rule: structs.ReserveMax},
			scheduler.WorkflowRenewal{}, scheduler.WorkflowBands{})
		return c
	}
	c := renewed()
	if c.Missing != "" || len(c.Parts) != 1 {
		t.Fatalf("renewed: %+v", c)
	}
	if why := x.post(x.w.Workflow("b/wf"), c); why != "" {
		t.Fatal(why)
	}
	for _, id := range []string{"n1", "n2", "n3"} {
		x.changeNode(id, up)
	}
	if x.doomed() > 0 {
		t.Errorf("%d cells are doomed with %+v reserved", x.doomed(), c.Parts)
	}
	x.owns("a", "node", 1)
	on := c.Parts[0].NodeID
	x.changeNode(on, down) // its rack is not to be had, and the other is owned: that of the part is no room for others
	if c = renewed(); c.Missing == "" {
		t.Errorf("what is owned is reserved anew: %+v", c.Parts)
	}
}

// TestReservationInCellsLosesLeast: in the cells of its namespace a workflow takes what is free, and nobody leaves if that is enough; else those of the lowest priority
// leave, on the nodes where the fewest do, and no more than has to.
func TestReservationInCellsLosesLeast(t *testing.T) {
	for _, c := range []struct {
		other []int // GPUs of each job of another namespace, one job a node
		stage []int
		want  map[string]int // who leaves
	}{
		{[]int{8, 0}, []int{8}, map[string]int{}},
		{[]int{4, 4}, []int{4, 4}, map[string]int{}},
		{[]int{2, 6}, []int{4}, map[string]int{}},
		{[]int{5, 4}, []int{4, 4}, map[string]int{"b0": 1}},
		{[]int{4, 5}, []int{5}, map[string]int{"b0": 1}}, // of the lowest priority
	} {
		x := newGPUWorkflows(t, chainOf(t), 2)
		for i, gpus := range c.other {
			node := fmt.Sprintf("n%d", i+1)
			x.filled(node, fmt.Sprintf("b%d", i), 10+i, gpus, 1, func(o *other) {
				for gpu := range gpus {
					o.devices = append(o.devices, []string{fmt.Sprintf("%s-gpu-%d", node, gpu)})
				}
			})
		}
		x.owns("default", "node", 2)
		got, why := x.reserve("default", nil, gpuStage("default", c.stage...))
		if left := x.left(got); why != "" || fmt.Sprint(left) != fmt.Sprint(c.want) {
			t.Errorf("beside %v, for %v: %v leave, want %v: %s %+v", c.other, c.stage, left, c.want, why, got.Parts)
		}
		x.checkWorld()
	}
}

// TestRunsAreRaisedBesideCells: where a namespace owns cells, an instance with GPUs that is placed again before the lost part of its reservation is reserved anew
// uses this from then on, in place, if its GPUs are left beside what is owned; else it has no claim, and the part is elsewhere.
func TestRunsAreRaisedBesideCells(t *testing.T) {
	for _, c := range []struct {
		owns   int // nodes
		raised bool
	}{{1, true}, {0, true}, {2, false}} {
		x := newGPUWorkflows(t, chainOf(t), 3)
		const id = "wf/1/a"
		stage := gpuStage("default", 4)
		stage[0].ID = id
		if _, why := x.reserve("default", nil, stage); why != "" {
			t.Fatal(why)
		}
		x.submit("", id, 1, gpusIn("default", 4), ofStage)
		first := x.liveOf(id).NodeID
		x.owns("a", "node", c.owns)
		x.changeNode(first, down)
		x.client(func(a *structs.Allocation) bool { return a.NodeID == first }, func(a *structs.Allocation) {
			a.ClientStatus, a.DesiredStatus = structs.AllocClientLost, structs.AllocDesiredStop
		})
		x.submit("", id, 1, gpusIn("default", 4), ofStage)
		claim := *x.w.Workflow("default/wf")
		claim.Jobs = []structs.WorkflowClaimJob{{JobID: id}}
		e := x.w.Edit()
		scheduler.SetWorkflow(e, &claim)
		w := e.World()
		r, _ := scheduler.RenewReservation(w, "default/wf", []scheduler.WorkflowStage{stage}, structs.WorkflowReserve{Rule: structs.ReserveMax},
			scheduler.WorkflowRenewal{}, scheduler.WorkflowBands{})
		is := x.liveOf(id)
		if raised := len(r.Claims) == 1 && r.Claims[0] == is.ID; raised != c.raised || raised && (r.Missing != "" || len(r.Parts) != 1 || r.Parts[0].NodeID != is.NodeID) {
			t.Errorf("beside %d nodes that are owned, with %s running: %+v", c.owns, is.NodeID, r)
			continue
		}
		if !c.raised {
			continue
		}
		resources := is.AllocatedResources.Copy()
		terms := resources.Shared.Terms.Reserved("default/wf")
		resources.Shared.Terms = &terms
		judged, _, why := scheduler.Judge(w.Edit(), &structs.Plan{
			Namespace: "default", JobID: "wf", AllAtOnce: true, Update: []*structs.AllocInPlace{{AllocID: is.ID, JobVersion: is.JobVersion, EvalID: is.EvalID, Resources: resources, Created: is.CreateTime}},
			Workflow: &structs.WorkflowReservation{Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: r.Parts},
		})
		if judged.Workflow == nil {
			t.Errorf("beside %d nodes that are owned: %s", c.owns, why)
		}
	}
}

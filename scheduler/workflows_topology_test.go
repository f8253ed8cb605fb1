package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// rackNodes adds a node of so many cores for each number, two to a rack, named r1-1, r1-2, r2-1, and so on.
func (w *workflows) rackNodes(cores ...int) {
	for i, n := range cores {
		node := slotNodeOf(fmt.Sprintf("r%d-%d", 1+i/2, 1+i%2), n)
		node.Meta["rack"] = fmt.Sprintf("r%d", 1+i/2)
		node.ComputeClass()
		w.setNode(node)
	}
}

// gangUnder returns a job of a stage of the workflow, a gang of so many instances of so many cores of which a level of topology is required.
func gangUnder(id, level string, count, cores int) *structs.Job {
	return schedtest.Job(structs.JobTypeBatch, count, requests(50, 1000*cores, 1000*cores), ofStage, func(j *structs.Job) {
		j.ID, j.TaskGroups[0].Gang = "wf/1/"+id, &structs.Gang{}
		j.TaskGroups[0].Topology = &structs.TopologyConstraint{Level: level, Required: true}
	})
}

// choose returns what the workflow reserves for its stages.
func (w *workflows) choose(stages ...scheduler.WorkflowStage) scheduler.WorkflowChoice {
	return scheduler.ChooseReservation(w.w, "default/wf", "default", stages, structs.WorkflowReserve{Rule: structs.ReserveMax}, false)
}

// racksOf returns how many cores a choice has in each rack.
func racksOf(parts []structs.WorkflowPart) map[string]int64 {
	out := map[string]int64{}
	for _, p := range parts {
		out[p.NodeID[:2]] += p.CPU / 1000
	}
	return out
}

// TestReservationTopology: what a gang needs that requires a level is reserved under one cell of it. Where no cell has as much it waits, and where none
// could have it if the nodes were empty it says so.
func TestReservationTopology(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(4, 4, 4, 4)
	rack, node := scheduler.WorkflowStage{gangUnder("a", "rack", 4, 2)}, scheduler.WorkflowStage{gangUnder("b", structs.LevelNode, 2, 2)}
	if c := w.choose(rack, node); !c.Posted || len(c.Parts) != 2 || racksOf(c.Parts)["r1"]+racksOf(c.Parts)["r2"] != 8 || len(racksOf(c.Parts)) != 1 {
		t.Errorf("on free nodes: %+v", c)
	}
	if c := w.choose(scheduler.WorkflowStage{gangUnder("a", "rack", 5, 2)}); c.Posted || !c.Never || !strings.Contains(c.Missing, `room for a gang of job "wf/1/a" in one cell of level "rack"`) {
		t.Errorf("more than a rack has: %+v", c)
	}
	if c := w.choose(scheduler.WorkflowStage{gangUnder("b", structs.LevelNode, 3, 2)}); c.Posted || !c.Never {
		t.Errorf("more than a node has: %+v", c)
	}
	w.submit("", "fill", 2, requests(50, 2000, 2000), func(j *structs.Job) {
		j.Constraints = append(j.Constraints, &structs.Constraint{LTarget: "${meta.rack}", RTarget: "r1", Operand: "="})
	})
	if c := w.choose(rack); !c.Posted || racksOf(c.Parts)["r2"] != 8 {
		t.Errorf("with half of the first rack in use: %+v", c)
	}
	w.submit("", "more", 2, requests(50, 2000, 2000), func(j *structs.Job) {
		j.Constraints = append(j.Constraints, &structs.Constraint{LTarget: "${meta.rack}", RTarget: "r2", Operand: "="})
	})
	if c := w.choose(rack); c.Posted || c.Never || len(racksOf(c.Parts)) != 1 || !strings.Contains(c.Missing, "required levels of topology") {
		t.Errorf("with half of each rack in use: %+v", c)
	}
}

// oneUnder returns a job of a stage of the workflow, of one instance of so many cores in a rack.
func oneUnder(id, rack string, cores int) *structs.Job {
	j := schedtest.Job(structs.JobTypeBatch, 1, requests(50, 1000*cores, 1000*cores), ofStage, func(j *structs.Job) { j.ID = "wf/1/" + id })
	j.Constraints = append(j.Constraints, &structs.Constraint{LTarget: "${meta.rack}", RTarget: rack, Operand: "="})
	return j
}

// TestReservationTopologyBeside: a gang that has room in a rack, but not beside the rest of its stage, is no reason never to start: what it needs is reserved, in
// one rack, and it waits in the stage.
func TestReservationTopologyBeside(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(4, 1, 4, 1, 4, 1)
	gang := gangUnder("gang", "rack", 5, 1)
	stage := scheduler.WorkflowStage{oneUnder("a", "r1", 1), oneUnder("b", "r2", 1), oneUnder("c", "r3", 1), gang}
	c := w.choose(stage)
	if !c.Posted || c.Never || !c.OneByOne {
		t.Fatalf("reserved: %+v", c)
	}
	w.claim = &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Parts: c.Parts}
	w.set()
	if alone := scheduler.StartStage(w.w, "default/wf", scheduler.WorkflowStage{gang}, w.now.UnixNano()); alone.Lacking {
		t.Errorf("the gang alone: %+v in %+v", alone, c.Parts)
	}
	if without := scheduler.StartStage(w.w, "default/wf", stage[:3], w.now.UnixNano()); without.Lacking {
		t.Errorf("without the gang: %+v in %+v", without, c.Parts)
	}
	if all := scheduler.StartStage(w.w, "default/wf", stage, w.now.UnixNano()); !all.Lacking {
		t.Errorf("all: %+v in %+v", all, c.Parts)
	}
}

// TestReservationTopologyStated: what is stated to be reserved is too little if a gang has no room in it, and is refused with what is missing.
func TestReservationTopologyStated(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(4, 4, 4, 4)
	stages := []scheduler.WorkflowStage{{gangUnder("a", "rack", 2, 4)}, {oneUnder("b", "r1", 4), oneUnder("c", "r2", 4)}}
	for cpu, posted := range map[int64]bool{8000: false, 12000: true} {
		c := scheduler.ChooseReservation(w.w, "default/wf", "default", stages, structs.WorkflowReserve{Amounts: &structs.WorkflowResources{CPU: cpu, MemoryMB: 16000}}, false)
		if c.Posted != posted || c.Never == posted {
			t.Errorf("%d MHz: %+v", cpu, c)
		}
	}
}

// TestReservationTopologyByBands: a workflow takes from lower bands where its gangs have what they require: in one rack, also if as much is free in two.
func TestReservationTopologyByBands(t *testing.T) {
	x := newBandWorkflows(t)
	x.rackNodes(4, 4, 4, 4)
	for _, node := range []string{"r1-1", "r1-2", "r2-1", "r2-2"} {
		x.filled(node, "low", 10, 2, 1)
	}
	x.filled("r1-2", "same", 60, 1, 1)
	c, why := x.preempts(scheduler.WorkflowStage{gangUnder("a", "rack", 4, 2)})
	if !c.Posted || why != "" || racksOf(c.Parts)["r2"] != 8 || len(racksOf(c.Parts)) != 1 || x.left(c)["low"] != 4 {
		t.Errorf("reserved: %+v; %s", c, why)
	}
}

// TestStageTopology: a stage of gangs of which a rack is required starts whole in what was reserved for it, each gang in one rack, and just as many leave
// as have to.
func TestStageTopology(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(3, 3, 4, 4)
	stage := scheduler.WorkflowStage{gangUnder("small", "rack", 2, 3), gangUnder("large", "rack", 4, 2)}
	c := w.choose(stage)
	if !c.Posted || racksOf(c.Parts)["r1"] != 6 || racksOf(c.Parts)["r2"] != 8 {
		t.Fatalf("reserved: %+v", c)
	}
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Parts: c.Parts,
		Lend: []*structs.WorkflowLend{{To: "namespace:a"}},
	}
	w.set()
	w.flood("a", 14)
	for i := range stage {
		j := stage[len(stage)-1-i] // an earlier job must not take the rack that a later one needs
		one := scheduler.StartStage(w.w, "default/wf", scheduler.WorkflowStage{j}, w.now.UnixNano())
		if want := []int{8, 6}[i]; len(one.Stops) != want || one.Lacking {
			t.Errorf("%s alone: %d leave, want %d", j.ID, len(one.Stops), want)
		}
	}
	jobs := []scheduler.StageJob{{Job: stage[0], EvalID: "e0"}, {Job: stage[1], EvalID: "e1"}}
	minted := uint64(0)
	start := scheduler.PlanStage(w.w, "default/wf", jobs, w.now.UnixNano(), func(j *structs.Job) scheduler.Input {
		return scheduler.Input{
			Job: j, Config: structs.DefaultSchedulerConfiguration(), Now: w.now, Seed: 1, SnapshotIndex: 1, Prepared: scheduler.NewPrepared(),
			NewID: func() string { minted++; return structs.DeriveID("new", minted) },
		}
	})
	racks := map[string]map[string]int{}
	for _, b := range start.Place {
		racks[b.JobID] = map[string]int{}
		for _, in := range b.Instances {
			racks[b.JobID][b.Nodes[in.Node].ID[:2]]++
		}
	}
	if len(start.Stops) != 14 || start.Lacking || racks["wf/1/small"]["r1"] != 2 || racks["wf/1/large"]["r2"] != 4 {
		t.Errorf("%d leave, lacking %v; placed: %v", len(start.Stops), start.Lacking, racks)
	}
}

// TestRenewedInRack: what a gang that requires a rack needs is reserved anew in the rack in which the rest of it is; where that has no room, all of it is in
// another one.
func TestRenewedInRack(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(4, 8, 4, 8, 4)
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true,
		Parts: []structs.WorkflowPart{{NodeID: "r1-1", CPU: 2000, MemoryMB: 2000}, {NodeID: "r1-2", CPU: 2000, MemoryMB: 2000}},
	}
	w.set()
	gang := scheduler.WorkflowStage{gangUnder("a", "rack", 4, 1)}
	w.changeNode("r1-1", down)
	r := w.renewed(gang)
	if got := racksOf(r.Parts); r.Missing != "" || got["r1"] != 4 || len(got) != 1 {
		t.Fatalf("renewed: %+v, want it in its rack", r)
	}
	gang[0].TaskGroups[0].Count = 10
	if r = w.renewed(gang); r.Missing != "" || racksOf(r.Parts)["r2"] != 10 {
		t.Errorf("renewed: %+v, want it in the other rack", r)
	}
}

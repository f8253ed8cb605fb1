package scheduler_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// stagesOf returns stages of jobs, each of one instance of so many cores.
func stagesOf(stages ...[]int) (out []scheduler.WorkflowStage) {
	for s, jobs := range stages {
		var stage scheduler.WorkflowStage
		for i, cores := range jobs {
			job := schedtest.Job(structs.JobTypeBatch, 1, requests(50, 1000*cores, 1000*cores), func(j *structs.Job) { j.ID = fmt.Sprintf("wf/1/%d-%d", s, i) })
			job.Canonicalize()
			stage = append(stage, job)
		}
		out = append(out, stage)
	}
	return out
}

// coresOf returns how many cores a choice has of each node, by node ID.
func coresOf(parts []structs.WorkflowPart) map[string]int64 {
	out := map[string]int64{}
	for _, p := range parts {
		out[p.NodeID] += p.CPU / 1000
	}
	return out
}

// TestReservationWholeOrNot: a reservation is made where all of it is free; else it keeps what comes free, if nobody of higher rank does, and if the nodes
// could hold it at all.
func TestReservationWholeOrNot(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	w.slotNode("n2", 4)
	choose := func(kept bool, stages ...[]int) scheduler.WorkflowChoice {
		return scheduler.ChooseReservation(w.w, "default/wf", "default", stagesOf(stages...), structs.WorkflowReserve{Rule: structs.ReserveMax}, kept)
	}
	if c := choose(false, []int{2}, []int{2, 3, 1}, []int{5, 1}, []int{8}); !c.Posted || coresOf(c.Parts)["n1"] != 8 || len(c.Parts) != 1 {
		t.Errorf("on free nodes: %+v", c)
	}
	if c := scheduler.ChooseReservation(w.w, "default/wf", "default", stagesOf([]int{4}, []int{6}), structs.WorkflowReserve{Rule: structs.ReserveSum}, false); !c.Posted || coresOf(c.Parts)["n1"]+coresOf(c.Parts)["n2"] != 10 {
		t.Errorf("the sum of 4 and 6: %+v", c)
	}
	w.submit("", "fill", 8)
	if c := choose(false, []int{8}); c.Posted || coresOf(c.Parts)["n1"] != 8 || !strings.Contains(c.Missing, "4000 MHz") {
		t.Errorf("with 4 of its cores in use: %+v", c)
	}
	if c := choose(true, []int{8}); c.Posted || len(c.Parts) > 0 {
		t.Errorf("while another keeps what comes free: %+v", c)
	}
	if c := choose(false, []int{9}); c.Posted || len(c.Parts) > 0 || !strings.Contains(c.Missing, "if they were empty") {
		t.Errorf("more than any node has: %+v", c)
	}
	if c := choose(true, []int{4}); !c.Posted {
		t.Errorf("what is free: %+v", c)
	}
}

// renewed returns the reservation with what was lost of it as these stages need it, in cells as they are, and from nobody else.
func (w *workflows) renewed(stages ...scheduler.WorkflowStage) scheduler.WorkflowChoice {
	c, _ := scheduler.RenewReservation(w.w, "default/wf", stages, structs.WorkflowReserve{Rule: structs.ReserveMax}, scheduler.WorkflowRenewal{}, scheduler.WorkflowBands{})
	return c
}

// TestReservationRenewed: the part of a lost node is reserved anew where all of it is free; until then the reservation says what is missing.
func TestReservationRenewed(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.slotNode("n2", 4)
	w.slotNode("n3", 4)
	w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 100})
	w.set()
	if lost := scheduler.LostParts(w.w, "default/wf"); len(lost) > 0 {
		t.Fatalf("lost: %v", lost)
	}
	w.changeNode("n2", down)
	r := w.renewed(stagesOf([]int{4, 4})...)
	if got := coresOf(r.Parts); !r.Posted || r.Missing != "" || got["n1"] != 4 || got["n2"] != 0 || got["n1"]+got["n3"] != 8 {
		t.Errorf("renewed: %+v", r)
	}
	w.changeNode("n3", down)
	if r := w.renewed(stagesOf([]int{4, 4})...); r.Missing == "" || coresOf(r.Parts)["n2"] != 4 {
		t.Errorf("with no other node: %+v", r)
	}
}

// TestRenewalKeepsElsewhere: on a node whose part is lost with its cells nothing is kept in its place: a node counts as one part of a workflow.
func TestRenewalKeepsElsewhere(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.slotNode("n2", 8)
	w.submit("", "fill", 5)
	w.claim.Parts = []structs.WorkflowPart{{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 100, Lost: true}}
	w.set()
	if r := w.renewed(stagesOf([]int{6})...); r.Missing == "" || coresOf(r.Keeps)["n2"] > 0 {
		t.Errorf("the part on n2 is lost: %+v", r)
	}
}

// TestKeptForLostRanks: what is kept in place of what a posted reservation has lost ranks as a claim: of a recognised job's instances those use it that have a
// slot, and no others; what a reservation keeps that was never posted, all of them.
func TestKeptForLostRanks(t *testing.T) {
	for _, c := range []struct {
		posted  bool
		project string
		want    int
	}{{true, "", 0}, {true, "chip", 1}, {false, "", 0}, {false, "chip", 4}} {
		w := newWorkflows(t, 8, 0)
		w.slotNode("n2", 8)
		w.gives("chip", 1)
		w.submit("", "fill", 8)
		w.claim.Parts[0].CPU, w.claim.Parts[0].MemoryMB = 6000, 6000
		w.set()
		w.changeNode("n1", down)
		if w.claim.Keeps = w.renewed(stagesOf([]int{6})...).Keeps; coresOf(w.claim.Keeps)["n2"] != 6 {
			t.Fatalf("kept: %+v", w.claim.Keeps)
		}
		if w.claim.Posted = c.posted; !c.posted {
			w.claim.Parts, w.claim.Keeps = w.claim.Keeps, nil
		}
		w.set()
		w.ends("fill", 4)
		if w.submit(c.project, "others", 5); w.running("others") != c.want {
			t.Errorf("posted %v, project %q: %d run, want %d", c.posted, c.project, w.running("others"), c.want)
		}
		for _, kept := range []bool{false, true} { // for another one that waits, and is not to have it
			one := scheduler.ChooseReservation(w.w, "default/other", "default", stagesOf([]int{1}), structs.WorkflowReserve{Rule: structs.ReserveMax}, kept)
			if one.Posted != (!kept && !c.posted && c.want < 4) {
				t.Errorf("posted %v, project %q, kept %v: another one has reserved %v, missing %q", c.posted, c.project, kept, one.Posted, one.Missing)
			}
		}
	}
}

// TestKeptForLostIsNotCommitted: what is kept in place of what a posted reservation has lost is committed for no other that is to be posted first, whatever its
// priority; what one keeps that waits is none for who was posted.
func TestKeptForLostIsNotCommitted(t *testing.T) {
	for _, c := range []struct {
		first, other    bool // whether they have been posted
		priority, lower int
		want            bool
	}{{true, false, 40, 60, false}, {false, true, 60, 40, true}, {true, true, 60, 40, false}, {true, true, 40, 60, true}, {false, false, 60, 40, false}} {
		w := newWorkflows(t, 8, 0)
		w.slotNode("n2", 8)
		on := []structs.WorkflowPart{{NodeID: "n2", CPU: 8000, MemoryMB: 8000}}
		if w.claim.Posted, w.claim.Priority, w.claim.Keeps = c.first, c.priority, on; !c.first {
			w.claim.Parts = on
		}
		w.set()
		e := w.w.Edit()
		scheduler.SetWorkflow(e, &structs.WorkflowClaim{Namespace: "default", ID: "other", Run: 1, NodePool: "default", Priority: c.lower, Posted: c.other})
		lack := scheduler.ReservationLacks(e, &structs.WorkflowReservation{Namespace: "default", ID: "other", Run: 1, Posted: true, Parts: on}, false)
		if (lack == "") != c.want {
			t.Errorf("%+v: %q", c, lack)
		}
	}
}

// wantKept checks how many cores are kept free on a node in place of what was lost.
func (w *workflows) wantKept(node string, cores int64) {
	w.t.Helper()
	for _, k := range scheduler.WorkflowKeeps(w.w, "default/wf") {
		if k.NodeID == node {
			cores -= k.Idle.CPU / 1000
		}
	}
	if cores != 0 {
		w.t.Fatalf("on %s %d cores more than wanted, or %d fewer, are kept", node, -cores, cores)
	}
}

// TestRenewalKeepsBesidePart: what comes free is kept on a node that has a part of the reservation already, if what was lost can only be had there; the part
// stays as it is until all of it is free, and then is one.
func TestRenewalKeepsBesidePart(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.slotNode("n2", 8)
	part := structs.WorkflowPart{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 100}
	w.claim.Parts = append(w.claim.Parts, part)
	w.set()
	w.submit("", "fill", 4)
	w.changeNode("n1", down)
	r := w.renewed(stagesOf([]int{4, 4})...)
	if r.Missing == "" || coresOf(r.Keeps)["n2"] != 4 || len(r.Keeps) != 1 || coresOf(r.Parts)["n2"] != 4 {
		t.Fatalf("while its room is used: %+v", r)
	}
	w.claim.Keeps = r.Keeps
	w.set()
	w.wantKept("n2", 0)
	w.ends("fill", 2)
	w.wantKept("n2", 2)
	if w.submit("", "others", 1); w.running("others") != 0 {
		t.Error("others take what is kept")
	}
	w.ends("fill", 2)
	w.wantKept("n2", 4)
	if r = w.renewed(stagesOf([]int{4, 4})...); r.Missing != "" || len(r.Keeps) > 0 || len(r.Parts) != 1 || coresOf(r.Parts)["n2"] != 8 {
		t.Fatalf("when all is free: %+v", r)
	}
	w.claim.Keeps, w.claim.Parts = nil, r.Parts
	w.set()
	w.wantKept("n2", 0)
}

// TestRenewedAsStagesNeed: what was lost with a node is packed anew by the stages that are not over: on nodes that their jobs may use, on several if need be,
// beside parts that are left and may grow, and no more than they need.
func TestRenewedAsStagesNeed(t *testing.T) {
	type cores = map[string]int64
	for name, c := range map[string]struct {
		nodes, parts cores // beside the node that is lost, of 8
		stages       []scheduler.WorkflowStage
		big          string // the node that the jobs may use; "": all
		want         cores  // nil: something is missing
	}{
		"split":                  {cores{"n2": 4, "n3": 4}, nil, stagesOf([]int{1, 1, 1, 1, 1, 1, 1, 1}), "", cores{"n2": 4, "n3": 4}},
		"not split":              {cores{"n2": 4, "n3": 4}, nil, stagesOf([]int{8}), "", nil},
		"of a class":             {cores{"n2": 8, "n3": 8}, nil, stagesOf([]int{8}), "n3", cores{"n3": 8}},
		"nowhere of a class":     {cores{"n2": 8, "n3": 4}, nil, stagesOf([]int{8}), "n3", nil},
		"beside a part":          {cores{"n2": 3, "n3": 8}, cores{"n2": 3}, stagesOf([]int{3, 8}), "", cores{"n2": 3, "n3": 8}},
		"a part grows":           {cores{"n2": 8}, cores{"n2": 4}, stagesOf([]int{3, 1, 3}), "", cores{"n2": 7}},
		"what is left is enough": {cores{"n2": 8}, cores{"n2": 4}, stagesOf([]int{2}, []int{4}), "", cores{"n2": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkflows(t, 8, 0)
			for _, id := range []string{"n2", "n3"} {
				if n := c.nodes[id]; n > 0 {
					w.slotNode(id, int(n))
				}
				if n := c.parts[id]; n > 0 {
					w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: id, CPU: 1000 * n, MemoryMB: 1000 * n, DiskMB: 1000})
				}
			}
			w.set()
			if c.big != "" {
				w.changeNode(c.big, func(n *structs.Node) { n.NodeClass = "big"; n.ComputeClass() })
				for _, s := range c.stages {
					for _, job := range s {
						job.Constraints = []*structs.Constraint{{LTarget: "${node.class}", Operand: "=", RTarget: "big"}}
					}
				}
			}
			w.changeNode("n1", down)
			r := w.renewed(c.stages...)
			if c.want == nil {
				if r.Missing == "" || !structs.PartsEqual(r.Parts, w.claim.Parts) {
					t.Errorf("renewed: %+v", r)
				}
				return
			}
			if r.Missing != "" || !maps.Equal(coresOf(r.Parts), c.want) {
				t.Fatalf("renewed: %+v, want %v", r, c.want)
			}
			plan := &structs.Plan{Namespace: "default", JobID: "wf", Workflow: &structs.WorkflowReservation{Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: r.Parts}}
			if judged, _, why := scheduler.Judge(w.w.Edit(), plan); judged.Workflow == nil {
				t.Errorf("it does not hold: %s", why)
			}
		})
	}
}

// TestReservationLeavesPool: a part is lost with a node that is moved to another pool, and is reserved anew in its own.
func TestReservationLeavesPool(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.slotNode("n2", 8)
	w.slotNode("n3", 8)
	other := func(n *structs.Node) { n.NodePool = "other" }
	w.changeNode("n2", other)
	w.changeNode("n1", other)
	if lost := scheduler.LostParts(w.w, "default/wf"); len(lost) != 1 {
		t.Errorf("lost: %v", lost)
	}
	if r := w.renewed(stagesOf([]int{8})...); r.Missing != "" || coresOf(r.Parts)["n3"] != 8 {
		t.Errorf("renewed: %+v", r)
	}
}

// TestStageTakesBack: who leaves for a stage as a whole is suspended if its job states so and its memory can stay, else requeued; nobody leaves if what
// idles is enough.
func TestStageTakesBack(t *testing.T) {
	for _, c := range []struct {
		cores   int // of the stage
		suspend bool
		memory  int // of the borrowers, each
		stops   int
		how     string
	}{{4, false, 500, 0, ""}, {6, false, 500, 2, structs.AllocDesiredEvict}, {6, true, 500, 2, structs.AllocDesiredSuspend}, {8, true, 1000, 4, structs.AllocDesiredEvict}} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
		w.flood("a", 4, requests(50, 1000, c.memory), func(j *structs.Job) {
			if c.suspend {
				j.Reclaim = structs.ReclaimSuspend
			}
		})
		w.wantPart(0, 4, 4)
		start := scheduler.StartStage(w.w, "default/wf", stagesOf([]int{c.cores})[0], w.now.UnixNano())
		if len(start.Stops) != c.stops || start.Lacking {
			t.Fatalf("a stage of %d cores: %d leave, want %d (lacking: %v)", c.cores, len(start.Stops), c.stops, start.Lacking)
		}
		for _, s := range start.Stops {
			if s.DesiredStatus != c.how {
				t.Errorf("a stage of %d cores, reclaim by suspending %v: %+v", c.cores, c.suspend, *s)
			}
		}
	}
}

// TestReservationWaitsForWorkflowsBesideProjects: what other workflows have reserved comes free with the end of their runs, also where there are projects.
func TestReservationWaitsForWorkflowsBesideProjects(t *testing.T) {
	for _, given := range []int{0, 2} {
		w := &workflows{projects: newProjects(t)}
		w.slotNode("n1", 8)
		w.gives("chip", given)
		e := w.w.Edit()
		other := &structs.WorkflowClaim{Namespace: "default", ID: "other", Run: 1, NodePool: "default", Priority: 50, Posted: true}
		other.Parts = []structs.WorkflowPart{{NodeID: "n1", CPU: 6000, MemoryMB: 6000}}
		scheduler.SetWorkflow(e, other)
		w.w = e.World()
		choose := func(cores int) scheduler.WorkflowChoice {
			return scheduler.ChooseReservation(w.w, "default/wf", "default", stagesOf([]int{cores}), structs.WorkflowReserve{Rule: structs.ReserveMax}, false)
		}
		if c := choose(8 - given); c.Posted || c.Never || coresOf(c.Parts)["n1"] != int64(8-given) {
			t.Errorf("%d slots given: %+v", given, c)
		}
		if c := choose(9 - given); !c.Never || c.Slots != (given > 0) {
			t.Errorf("%d slots given, one core more: %+v", given, c)
		}
		const beside = `there is not enough free beside the slots that projects are given this week (project "chip": 2 of type "batch"): `
		if two, six := choose(2), choose(8-given); given > 0 && (!strings.HasPrefix(two.Missing, beside) || two.Posted || two.Never || !strings.HasPrefix(six.Missing, "there is not enough free: ")) {
			t.Errorf("of a node of which two cores are given, and six reserved: %q; %q", two.Missing, six.Missing)
		}
	}
}

// TestReservationBesideSlots: a reservation takes none of the slots that are given to projects this week, whoever uses their room now, and neither when
// it is chosen nor when it is committed.
func TestReservationBesideSlots(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	w.slotNode("n2", 8)
	choose := func(cores ...int) scheduler.WorkflowChoice {
		return scheduler.ChooseReservation(w.w, "default/wf", "default", stagesOf(cores), structs.WorkflowReserve{Rule: structs.ReserveMax}, false)
	}
	if c := choose(8, 8); !c.Posted {
		t.Errorf("without projects: %+v", c)
	}
	w.gives("chip", 12)
	for range 2 {
		if c := choose(4); !c.Posted || coresOf(c.Parts)["n1"]+coresOf(c.Parts)["n2"] != 4 {
			t.Errorf("4 of 16 slots are not given: %+v", c)
		}
		if c := choose(4, 1); c.Posted || !strings.Contains(c.Missing, "if they were empty") {
			t.Errorf("5 of 16 slots: %+v", c)
		}
		w.submit("chip", "uses", 6) // the second time with some of them in use
		w.runAll()
	}
	claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50}
	e := w.w.Edit()
	scheduler.SetWorkflow(e, claim)
	w.w = e.World()
	for cores, want := range map[int64]bool{4: true, 5: false} {
		plan := &structs.Plan{Namespace: "default", JobID: "wf", Workflow: &structs.WorkflowReservation{
			Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: []structs.WorkflowPart{{NodeID: "n2", CPU: 1000 * cores, MemoryMB: 1000 * cores}},
		}}
		e := w.w.Edit()
		judged, _, why := scheduler.Judge(e, plan)
		if got := judged != nil && judged.Workflow != nil; got != want || !want && !strings.Contains(why, `slots of type "batch"`) {
			t.Errorf("%d cores: committed %v, want %v: %s", cores, got, want, why)
		}
	}
}

// TestStatedCoresHaveTheirMHz: a core that is stated beyond what the stages need, for which the node of the others has none, is reserved with its MHz on another one.
func TestStatedCoresHaveTheirMHz(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.slotNode("n2", 6) // of which 4 are whole cores
	e := w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w, w.workflows = e.World(), nil
	j := schedtest.Job(structs.JobTypeBatch, 1, requests(50, 0, 1000), func(j *structs.Job) {
		j.ID = "wf/1/a"
		j.TaskGroups[0].Tasks[0].Resources.Cores = 4
	})
	j.Canonicalize()
	rule := structs.WorkflowReserve{Amounts: &structs.WorkflowResources{Cores: 5, CPU: 700}}
	r := scheduler.ChooseReservation(w.w, "default/x", "default", []scheduler.WorkflowStage{{j}}, rule, false)
	if p := r.Parts; len(p) != 2 || p[0].NodeID != "n2" || p[0].Cores != 4 || p[0].CPU != 4700 || p[1].Cores != 1 || p[1].CPU != 1000 {
		t.Errorf("reserved %+v, missing %q", p, r.Missing)
	}
}

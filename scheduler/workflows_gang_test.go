package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// gangStage is a stage of a gang of so many instances of so many GPUs each, of which least run together; 0: all.
func gangStage(count, gpus, least int) scheduler.WorkflowStage {
	job := schedtest.Job(structs.JobTypeBatch, count, requests(50, 1000, 1000), gpusIn("default", gpus), func(j *structs.Job) {
		j.ID, j.Workflow = "wf/1/train", &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "train"}
		j.TaskGroups[0].Gang = &structs.Gang{Min: least}
	})
	job.Canonicalize()
	return scheduler.WorkflowStage{job}
}

// trains has the jobs of a stage be those of the running one of the workflow, which have just been registered.
func (x *gpuWorkflows) trains(stage scheduler.WorkflowStage) {
	run := structs.WorkflowRun{
		Namespace: "default", ID: "wf", Run: 1, State: structs.WorkflowRunning, Workflow: &structs.Workflow{ID: "wf"},
		Stages: []*structs.WorkflowRunStage{{Name: "train", State: structs.StageStarting}},
	}
	run.Workflow.Stages = []*structs.WorkflowStage{{Name: "train"}}
	for _, job := range stage {
		run.Workflow.Stages[0].Jobs = append(run.Workflow.Stages[0].Jobs, &structs.WorkflowJob{Name: job.ID, Job: job})
		run.Stages[0].Jobs = append(run.Stages[0].Jobs, structs.WorkflowRunJob{Name: job.ID, JobID: job.ID, State: structs.StageRunning})
	}
	claim := *x.workflows.workflows["default/wf"]
	claim.Jobs = run.Claim().Jobs
	e := x.w.Edit()
	scheduler.SetWorkflow(e, &claim)
	x.w, x.workflows.workflows[claim.Key()] = e.World(), &claim
}

// TestNobodyLeavesForAGangWithoutRoom: nobody leaves a reservation for a gang that has no room in what there is of it even so, and what idles is lent until it has.
func TestNobodyLeavesForAGangWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, count, gpus, least int
		loses                     func(*gpuWorkflows)
		back                      func(*gpuWorkflows)
		leave, whole              int // while it is lost, and once it is back
	}{
		"a node is lost":        {3, 3, 8, 0, (*gpuWorkflows).losesN1, (*gpuWorkflows).hasN1, 0, 24},
		"enough for its least":  {3, 3, 8, 2, (*gpuWorkflows).losesN1, (*gpuWorkflows).hasN1, 16, 24},
		"too few for its least": {3, 3, 8, 3, (*gpuWorkflows).losesN1, (*gpuWorkflows).hasN1, 0, 24},
		"a GPU is bad": {1, 2, 4, 0, func(x *gpuWorkflows) { x.breaks("n1", 0) },
			func(x *gpuWorkflows) { x.changeNode("n1", setHealth(0, true)) }, 0, 8},
		"a GPU of each node is bad": {2, 4, 4, 0, func(x *gpuWorkflows) { x.breaks("n1", 0); x.breaks("n2", 0) },
			func(x *gpuWorkflows) {
				x.changeNode("n1", setHealth(0, true))
				x.changeNode("n2", setHealth(0, true))
			}, 0, 16},
	} {
		x := newGPUWorkflows(t, chainOf(t), c.nodes)
		stage := gangStage(c.count, c.gpus, c.least)
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, stage); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		x.submit("", "flood", 8*c.nodes, gpusIn("interns", 1))
		if n := x.running("flood"); n != 8*c.nodes {
			t.Fatalf("%s: %d borrow, want %d", name, n, 8*c.nodes)
		}
		c.loses(x)
		start := scheduler.StartStage(x.w, "default/wf", stage, 0)
		if len(start.Stops) != c.leave || !start.Lacking {
			t.Errorf("%s: %d leave, want %d: %v", name, len(start.Stops), c.leave, start.Nodes)
		}
		c.back(x)
		if start = scheduler.StartStage(x.w, "default/wf", stage, 0); len(start.Stops) != c.whole || start.Lacking {
			t.Errorf("%s: once it is back %d leave, want %d: %v", name, len(start.Stops), c.whole, start.Nodes)
		}
	}
}

func (x *gpuWorkflows) losesN1() { x.changeNode("n1", down) }
func (x *gpuWorkflows) hasN1()   { x.changeNode("n1", up) }

// TestLentWhileAGangHasNoRoom: what is reserved for a gang of the running stage is lent while it has no room, and not once it has.
func TestLentWhileAGangHasNoRoom(t *testing.T) {
	for name, c := range map[string]struct{ count, gpus, least, lent int }{
		"a gang without room":    {3, 8, 0, 16},
		"a gang with room":       {2, 8, 0, 0},
		"enough for its least":   {3, 8, 2, 0},
		"room on two nodes":      {2, 5, 0, 0},
		"as many as there is":    {4, 4, 0, 0},
		"too many for each node": {3, 5, 0, 16},
	} {
		x := newGPUWorkflows(t, chainOf(t), 3)
		stage := gangStage(c.count, c.gpus, c.least)
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, gangStage(3, 8, 0), gangStage(6, 4, 0)); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		x.trains(stage)
		x.losesN1()
		x.submit("", "flood", 24, gpusIn("interns", 1))
		x.checkWorld()
		if n := x.running("flood"); c.lent > 0 && n != c.lent || c.lent == 0 && n > max(0, 16-c.count*c.gpus) {
			t.Errorf("%s: %d are lent, want %d", name, n, c.lent)
		}
	}
}

// TestLicensesLentWhileAGangHasNoRoom: so is what is reserved of licenses: lent while the gang has no room on nodes, and not once it has.
func TestLicensesLentWhileAGangHasNoRoom(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 3)
	(&licenses{x.projects}).set("vcs", 6)
	job := gangStage(3, 8, 0)
	job[0].TaskGroups[0].Tasks[0].Resources.Licenses = vcs(2)
	if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, job); why != "" {
		t.Fatal(why)
	}
	x.trains(job)
	borrow := func(want int64) {
		t.Helper()
		if u := scheduler.WorkflowUse(x.w, "default/wf"); u.To[0].Due.Licenses["vcs"] != want {
			t.Errorf("%d of the license may be lent, want %d", u.To[0].Due.Licenses["vcs"], want)
		}
		id := fmt.Sprintf("lic-%d", want)
		x.submit("", id, 6, licensed(vcs(1), func(j *structs.Job) { j.Namespace = "interns" }))
		if n := x.running(id); n != int(want) {
			t.Errorf("%d borrow a license, want %d", n, want)
		}
		x.checkWorld()
	}
	borrow(0)
	x.losesN1()
	borrow(6)
	x.hasN1()
	if start := scheduler.StartStage(x.w, "default/wf", job, 0); len(start.Stops) != 6 || start.Lacking {
		t.Errorf("once it is back %d leave, lacking %v", len(start.Stops), start.Lacking)
	}
}

// TestNobodyLeavesForAGangWithoutLicenses: nobody leaves, and what idles is lent, of nodes and of licenses, while a gang can have too few licenses even if all
// borrowers left; they leave once it can.
func TestNobodyLeavesForAGangWithoutLicenses(t *testing.T) {
	for name, c := range map[string]struct {
		least, count int
		borrowed     int // licenses, by as many other instances
		leave        int // of those on GPUs
		lacking      bool
	}{
		"too few":                           {0, 4, 0, 0, true},
		"too few, lent":                     {0, 4, 6, 0, true},
		"none":                              {0, 0, 0, 0, true},
		"enough for its least":              {2, 4, 0, 24, true},
		"too few for its least":             {2, 3, 0, 0, true},
		"as many as there are":              {0, 6, 0, 24, false},
		"as many as there are, that borrow": {0, 6, 6, 24, false},
	} {
		x := newGPUWorkflows(t, chainOf(t), 3)
		book := &licenses{x.projects}
		book.set("vcs", 6)
		job := gangStage(3, 8, c.least)
		job[0].TaskGroups[0].Tasks[0].Resources.Licenses = vcs(2)
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, job); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		x.submit("", "flood", 24, gpusIn("interns", 1))
		if c.borrowed > 0 {
			x.submit("", "licensed", c.borrowed, licensed(vcs(1), func(j *structs.Job) { j.Namespace = "interns" }))
		}
		if n, more := x.running("flood"), x.running("licensed"); n != 24 || more != c.borrowed {
			t.Fatalf("%s: %d borrow GPUs, %d licenses", name, n, more)
		}
		book.set("vcs", int64(c.count))
		leave := func() (n int, lacking bool) {
			start := scheduler.StartStage(x.w, "default/wf", job, 0)
			for _, st := range start.Stops {
				if u, _ := world.Usages(x.w).Get(st.AllocID); len(u.Devices) > 0 {
					n++
				}
			}
			return n, start.Lacking
		}
		if n, lacking := leave(); n != c.leave || lacking != c.lacking {
			t.Errorf("%s: %d leave, lacking %v, want %d", name, n, lacking, c.leave)
		}
		book.set("vcs", 6)
		if n, lacking := leave(); n != 24 || lacking {
			t.Errorf("%s: once there are enough %d leave, lacking %v", name, n, lacking)
		}
	}
}

// TestLentWhileAGangHasNoLicenses: what is reserved on nodes for a gang of the running stage is lent while it can have too few licenses, and not once it can.
func TestLentWhileAGangHasNoLicenses(t *testing.T) {
	x := newGPUWorkflows(t, chainOf(t), 3)
	book := &licenses{x.projects}
	book.set("vcs", 6)
	job := gangStage(3, 8, 0)
	job[0].TaskGroups[0].Tasks[0].Resources.Licenses = vcs(2)
	if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, job); why != "" {
		t.Fatal(why)
	}
	x.trains(job)
	for _, c := range []struct {
		count int64
		lent  int
	}{{6, 0}, {4, 12}, {6, 0}} {
		book.set("vcs", c.count)
		id := fmt.Sprintf("flood-%d-%d", c.count, c.lent)
		x.submit("", id, 12, gpusIn("interns", 1))
		if n := x.running(id); n != c.lent {
			t.Errorf("%d licenses: %d GPUs are lent, want %d", c.count, n, c.lent)
		}
		x.checkWorld()
	}
}

// TestLicensesOfOthersAreNotTakenBack: what others use of a license, or another gang of the stage takes, a gang cannot have.
func TestLicensesOfOthersAreNotTakenBack(t *testing.T) {
	for name, c := range map[string]struct{ others, count, leave int }{
		"enough for both":            {0, 8, 16},
		"enough for one":             {0, 6, 8},
		"others use some":            {2, 9, 8},
		"enough beside others":       {2, 10, 16},
		"others use what one needs":  {2, 5, 0},
		"others use all that is had": {2, 2, 0},
	} {
		x := newGPUWorkflows(t, chainOf(t), 3)
		book := &licenses{x.projects}
		book.set("vcs", 10)
		stage := scheduler.WorkflowStage{gangStage(1, 8, 0)[0], gangStage(1, 8, 0)[0]}
		stage[1].ID = "wf/1/more"
		for _, job := range stage {
			job.TaskGroups[0].Tasks[0].Resources.Licenses = vcs(4)
		}
		if _, why := x.reserve("default", []*structs.WorkflowLend{{To: "namespace:interns", LendLonger: true}}, stage); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		x.submit("", "flood", 24, gpusIn("interns", 1))
		if x.submit("", "others", c.others, licensed(vcs(1))); x.running("others") != c.others {
			t.Fatalf("%s: %d of others run", name, x.running("others"))
		}
		book.set("vcs", int64(c.count))
		if start := scheduler.StartStage(x.w, "default/wf", stage, 0); len(start.Stops) != c.leave || start.Lacking != (c.leave < 16) {
			t.Errorf("%s: %d leave, lacking %v, want %d", name, len(start.Stops), start.Lacking, c.leave)
		}
	}
}

package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestRenewalPacksBesideWhatRuns: what was lost is reserved anew beside the instances that run in what is left, where these are: for the others alone there may be
// room that there is not for all of the stage, packed anew; and what has room for all of it, packed anew, may have none for the others.
func TestRenewalPacksBesideWhatRuns(t *testing.T) {
	for _, c := range []struct {
		stage []int          // the first job is lost with its node
		free  map[string]int // the cores of further nodes
		want  string
	}{{[]int{3, 2, 2}, map[string]int{"n3": 3}, "n3"}, {[]int{3, 2}, map[string]int{"n3": 2, "n4": 3}, "n4"}} {
		w := newWorkflows(t, 4, 0)
		w.slotNode("n2", 3)
		w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 3000, MemoryMB: 3000, DiskMB: 3000})
		for i := range c.stage {
			w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: stagesOf(c.stage)[0][i].ID})
		}
		w.set()
		w.stage("0-", c.stage...)
		w.changeNode("n2", down)
		for id, cores := range c.free {
			w.slotNode(id, cores)
		}
		r := w.renewed(stagesOf(c.stage, []int{4})...)
		if got := coresOf(r.Parts); r.Missing != "" || got["n1"] != 4 || got[c.want] != 3 || len(got) != 2 {
			t.Errorf("%v: reserved %v, missing %q; there run %s", c.stage, got, r.Missing, w.on())
		}
	}
}

// TestRunsAreRaisedInPlace: of a reservation that has lost nothing, instances of the running stage that run without a claim where it has room are to use it, the
// oldest first; none of other stages, of others, or beyond it.
func TestRunsAreRaisedInPlace(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	e := w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w, w.workflows = e.World(), nil
	w.stage("0-", 2, 3, 1)
	w.submit("", "wf/1/other", 1)
	w.claim.Parts[0].CPU, w.claim.Parts[0].MemoryMB = 4000, 4000
	for jobs, want := range [][]string{nil, {"wf/1/0-0"}, {"wf/1/0-0", "wf/1/0-2"}} {
		if w.claim.Jobs = nil; jobs > 0 {
			for i := range 2*jobs - 1 {
				w.claim.Jobs = append(w.claim.Jobs, structs.WorkflowClaimJob{JobID: fmt.Sprintf("wf/1/0-%d", i)})
			}
		}
		w.set()
		if got := scheduler.RaisesForWorkflow(w.w, "default/wf"); got != (jobs > 0) {
			t.Errorf("%d jobs: may raise %v", len(w.claim.Jobs), got)
		}
		var got []string
		r := w.renewed(stagesOf([]int{2, 3, 1}[:max(1, 2*jobs-1)])...)
		for _, id := range r.Claims {
			got = append(got, w.allocs[id].JobID)
		}
		if slices.Sort(got); !slices.Equal(got, want) || r.Missing != "" || !structs.PartsEqual(r.Parts, w.claim.Parts) {
			t.Errorf("%d jobs: %v are to use it, want %v: %+v", len(w.claim.Jobs), got, want, r)
		}
	}
}

// TestRenewalStopsNothingOfItsOwn: what a workflow runs without a claim, placed again before the part is reserved anew that it has lost, does not leave for
// that part, whatever the band of its job.
func TestRenewalStopsNothingOfItsOwn(t *testing.T) {
	for _, simple := range []bool{false, true} {
		x := newGPUWorkflows(t, chainOf(t), 1)
		small := func(j *structs.Job) { j.Priority = 10 }
		const id = "wf/1/a"
		stage := scheduler.WorkflowStage{
			schedtest.Job(structs.JobTypeBatch, 1, requests(50, 1000, 1000), gpusIn("default", 8), small, ofStage, func(j *structs.Job) { j.ID = id }),
		}
		x.reserve("default", nil, stage)
		x.submit("", id, 1, gpusIn("default", 8), small, ofStage)
		x.setNode(schedtest.Node("n2", schedtest.EightGPUs))
		x.changeNode("n1", down)
		x.client(func(a *structs.Allocation) bool { return a.NodeID == "n1" }, func(a *structs.Allocation) {
			a.ClientStatus, a.DesiredStatus = structs.AllocClientLost, structs.AllocDesiredStop
		})
		x.submit("", id, 1, gpusIn("default", 8), small, ofStage)
		claim := *x.w.Workflow("default/wf")
		claim.Jobs = []structs.WorkflowClaimJob{{JobID: id}}
		e := x.w.Edit()
		scheduler.SetWorkflow(e, &claim)
		config := structs.DefaultSchedulerConfiguration()
		config.PreemptionConfig.BatchSchedulerEnabled = true
		r, _ := scheduler.RenewReservation(e.World(), "default/wf", []scheduler.WorkflowStage{stage}, structs.WorkflowReserve{Rule: structs.ReserveMax},
			scheduler.WorkflowRenewal{Simple: simple}, scheduler.WorkflowBands{Config: &config, Priority: 60})
		if len(r.Stops) > 0 || (r.Missing == "") == simple {
			t.Errorf("simple %v: %d are stopped, missing %q, claims %v", simple, len(r.Stops), r.Missing, r.Claims)
		}
	}
}

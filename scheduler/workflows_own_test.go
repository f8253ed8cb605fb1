package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

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

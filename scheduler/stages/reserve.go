package stages

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// reserves reports whether anything is reserved for a run: instances of sysbatch jobs use no claim.
func reserves(r *structs.WorkflowRun) bool {
	for _, j := range r.Workflow.Jobs() { // any: the order does not matter
		if !j.Job.PerNode() && j.Job.Instances() > 0 {
			return true
		}
	}
	return false
}

// Reserved reports whether what a run needs is reserved for it, so that its first stage may start.
func Reserved(r *structs.WorkflowRun) bool { return r.Posted || !reserves(r) }

// Compare orders the runs that wait for their reservation, the highest rank first: by priority, then by who came first.
func Compare(a, b *structs.WorkflowRun) int {
	return cmp.Or(cmp.Compare(b.Workflow.Priority, a.Workflow.Priority), cmp.Compare(a.SubmitTime, b.SubmitTime),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID, b.ID))
}

// Choose returns what a run reserves for the stages that are still to come. kept reports that another workflow keeps what
// comes free. bands are from whom it takes what is not free, whatever priority they state.
func Choose(w *scheduler.World, r *structs.WorkflowRun, kept bool, bands scheduler.WorkflowBands) scheduler.WorkflowChoice {
	bands.Priority = r.Workflow.Priority
	return scheduler.ReserveOrPreempt(w, structs.WorkflowKey(r.Namespace, r.ID), r.Workflow.NodePool, toCome(r), r.Workflow.Reserve, kept, bands)
}

// toCome returns the stages of a run that are not over. Of one that runs all jobs may have to run again.
func toCome(r *structs.WorkflowRun) (stages []scheduler.WorkflowStage) {
	for i := r.Stage; i < len(r.Stages); i++ {
		stages = append(stages, JobsOf(r, i, nil))
	}
	return stages
}

// Renew returns what a run has reserved with what its stages that are not over need beside what is left of it, or what is missing; false: it has nothing
// reserved. bands are as in [Choose].
func Renew(w *scheduler.World, r *structs.WorkflowRun, how scheduler.WorkflowRenewal, bands scheduler.WorkflowBands) (c scheduler.WorkflowChoice, has bool) {
	bands.Priority = r.Workflow.Priority
	return scheduler.RenewReservation(w, structs.WorkflowKey(r.Namespace, r.ID), toCome(r), r.Workflow.Reserve, how, bands)
}

// Reservation returns what was chosen for a run as a plan states it.
func Reservation(r *structs.WorkflowRun, c scheduler.WorkflowChoice) *structs.WorkflowReservation {
	return &structs.WorkflowReservation{
		Namespace: r.Namespace, ID: r.ID, Run: r.Run, Parts: c.Parts, Licenses: c.Licenses, Posted: c.Posted, Missing: c.Missing, Keeps: c.Keeps,
		Closed: c.Posted && (r.Closed || r.State == structs.WorkflowPending), // nothing is lent until the first stage has what it needs
	}
}

// JobsOf returns the jobs of a stage that only names, by their index; nil: all of them.
func JobsOf(r *structs.WorkflowRun, stage int, only []int) (jobs scheduler.WorkflowStage) {
	specs := r.Workflow.Jobs()
	s := r.Stages[stage]
	for i := range s.Jobs {
		if only == nil || slices.Contains(only, i) {
			jobs = append(jobs, r.JobOf(s, specs[s.Jobs[i].Name], s.Jobs[i].Attempt+1))
		}
	}
	return jobs
}

// Same reports whether a run has a reservation already as it is stated.
func Same(r *structs.WorkflowRun, to *structs.WorkflowReservation) bool {
	return r.Posted == to.Posted && r.Closed == to.Closed && r.Missing == to.Missing && structs.PartsEqual(r.Parts, to.Parts) && structs.PartsEqual(r.Keeps, to.Keeps) &&
		slices.Equal(r.Licenses, to.Licenses)
}

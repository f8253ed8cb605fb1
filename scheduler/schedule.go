package scheduler

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Input is what one evaluation is decided with, beside the World.
type Input struct {
	// Job is the newest version; nil: it was purged.
	Job *structs.Job
	// Allocs are the job's, with Job attached where that version still exists.
	Allocs []*structs.Allocation
	Config structs.SchedulerConfiguration
	Now    time.Time
	// Seed settles what is arbitrary: where the search for dynamic ports starts,
	// and the policy "random".
	Seed uint64
	// NewID mints the IDs of new evaluations and batch seeds.
	NewID func() string
	// Annotate fills Plan.Annotations, for `job plan`.
	Annotate bool
}

// Schedule decides one evaluation.
func Schedule(w *World, eval *structs.Evaluation, in Input) (*structs.Plan, error) {
	done := eval.Copy()
	done.Status = structs.EvalStatusComplete
	return &structs.Plan{EvalID: eval.ID, Namespace: eval.Namespace, JobID: eval.JobID, Priority: eval.Priority, Evals: []*structs.Evaluation{done}}, nil
}

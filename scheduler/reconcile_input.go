package scheduler

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// reconcileInput is what of an evaluation's input the comparison of wanted and running looks at.
type reconcileInput struct {
	// Job is the newest version; nil: it was purged.
	Job *structs.Job
	// Allocs are the job's, with Job attached where that version still exists.
	Allocs []*structs.Allocation
	Now    time.Time
	// Past are those of the allocations' follow-up evaluations that have had their turn.
	Past map[string]bool
}

// result is what is to be done to have what a job wants.
type result struct {
	groups  []*groupWork // in the job's order
	stops   []*structs.AllocStop
	inPlace []*structs.AllocInPlace
	later   []later // failed allocations that are replaced at a later time
}

// reconcileJob compares what a job wants with what there is. The World stays as it is.
func reconcileJob(w *World, eval *structs.Evaluation, in reconcileInput, fits *fits) *result {
	r := &reconciler{w: w, eval: eval, in: in, fits: fits}
	r.reconcile()
	return &r.result
}

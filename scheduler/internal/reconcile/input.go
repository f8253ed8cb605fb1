package reconcile

import (
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Input is what of an evaluation's input the comparison of wanted and running looks at.
type Input struct {
	// Job is the newest version; nil: it was purged.
	Job *structs.Job
	// Allocs are the job's, with Job attached where that version still exists.
	Allocs []*structs.Allocation
	Now    time.Time
	// Past are those of the allocations' follow-up evaluations that have had their turn.
	Past map[string]bool
}

// Result is what is to be done to have what a job wants.
type Result struct {
	Groups  []*GroupWork // in the job's order
	Stops   []*structs.AllocStop
	InPlace []*structs.AllocInPlace
	Later   []Later // failed allocations that are replaced at a later time
	// Requeues is how often the job's instances were requeued.
	Requeues Requeues
}

// Run compares what a job wants with what there is. The World stays as it is.
func Run(w *world.World, eval *structs.Evaluation, in Input, fits *feasible.Fits) *Result {
	r := &reconciler{w: w, eval: eval, in: in, fits: fits}
	r.Requeues = requeuesOf(in.Job, in.Allocs)
	r.reconcile()
	return &r.Result
}

package scheduler

import (
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/reserve"
	"github.com/nomadish/nomadish/structs"
)

// WorkflowStage is the jobs of a stage of a workflow.
type WorkflowStage = reserve.Stage

// WorkflowChoice is what a workflow reserves.
type WorkflowChoice = reserve.Choice

// ChooseReservation returns what the workflow of a key and a node pool reserves for its stages (docs/semantics.md, part 5). kept reports that another
// workflow keeps what comes free.
func ChooseReservation(w *World, key, pool string, stages []WorkflowStage, rule structs.WorkflowReserve, kept bool) WorkflowChoice {
	r := workflow.Reserve{Sum: rule.Rule == structs.ReserveSum}
	if a := rule.Amounts; a != nil {
		r.Stated = workflow.Amounts{CPU: a.CPU, Cores: a.Cores, MemoryMB: a.MemoryMB, Devices: a.GPUs}
	}
	return reserve.Choose(w, key, pool, stages, r, kept)
}

// WorkflowLoans is how a workflow's reservation is used.
type WorkflowLoans = lend.Loans

// WorkflowUse returns how a workflow's reservation is used; nil: it has none.
func WorkflowUse(w *World, key string) *WorkflowLoans { return lend.LoansOf(w, key) }

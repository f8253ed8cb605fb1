package scheduler

import (
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/lend"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/raise"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/reserve"
	"github.com/nomadish/nomadish/scheduler/internal/stagestart"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// SetWorkflow stores a workflow's reservation, in place of the one that it had. It must not be changed afterwards.
func SetWorkflow(e *Edit, c *structs.WorkflowClaim) { world.WorkflowEdit{E: e}.Set(c) }

// PendingWorkflows returns the reservations that keep what comes free, by their keys: of each node pool one at most that has lost something,
// and one at most that waits for all.
func PendingWorkflows(w *World) (list []*structs.WorkflowClaim) {
	for _, c := range world.PendingWorkflows(w).All {
		list = append(list, c)
	}
	return list
}

// DropWorkflow ends the reservation of the workflow of a key, if it has one.
func DropWorkflow(e *Edit, key string) { world.WorkflowEdit{E: e}.Drop(key) }

// BorrowersBeside returns the owners, namespaces and projects by ProjectOwner, of whom instances on a node borrow from a workflow or are of the run of one, without a
// claim: these may use one as soon as there is room for them beside all that is reserved (docs/design/semantics.md, part 2, "Raise").
func BorrowersBeside(w *World, nodeID string) []string { return raise.BorrowersBeside(w, nodeID) }

// LostReservations returns the workflows, by their keys, that have lost parts of their reservations since the last call, as cells are not their
// namespaces' any more. The World counts them so; whoever keeps their rows changes these.
func LostReservations(e *Edit) []string { return world.WorkflowEdit{E: e}.Lost() }

// WorkflowClaimOf returns what the workflow of a key has reserved as the edit has it; nil: nothing.
func WorkflowClaimOf(e *Edit, key string) *structs.WorkflowClaim {
	return world.WorkflowEdit{E: e}.Claim(key)
}

// ReservationLacks returns why what a plan reserves for a workflow does not hold on an edit; "": it holds. raises reports that instances of the workflow use
// it from then on, as the edit has it already.
func ReservationLacks(e *Edit, r *structs.WorkflowReservation, raises bool) string {
	_, lack := reservable.As(e, r, raises)
	return lack
}

// WorkflowStage is the jobs of a stage of a workflow.
type WorkflowStage = reserve.Stage

// WorkflowChoice is what a workflow reserves.
type WorkflowChoice = reserve.Choice

// WorkflowBands are from whom a workflow may take what it reserves.
type WorkflowBands = reserve.Bands

// ChooseReservation returns what the workflow of a key and a node pool reserves for its stages if it takes from no lower band (docs/design/semantics.md, part 5).
// kept reports that another workflow keeps what comes free.
func ChooseReservation(w *World, key, pool string, stages []WorkflowStage, rule structs.WorkflowReserve, kept bool) WorkflowChoice {
	return ReserveOrPreempt(w, key, pool, stages, rule, kept, WorkflowBands{})
}

// ReserveOrPreempt is ChooseReservation for a workflow that takes what is not free from lower bands, where the scheduler's configuration lets batch jobs
// preempt, and from those that fail the submission check.
func ReserveOrPreempt(w *World, key, pool string, stages []WorkflowStage, rule structs.WorkflowReserve, kept bool, bands WorkflowBands) WorkflowChoice {
	return reserve.Choose(w, key, pool, stages, ruleOf(rule), kept, bands)
}

// TooSmallForStages states of which system and sysbatch jobs of stages instances would wait for ever on nodes of a pool: of a job for which no node is large enough
// in never, else in some.
func TooSmallForStages(w *World, pool string, stages []WorkflowStage) (never string, some []string) {
	return reserve.TooSmall(w, pool, stages)
}

// WorkflowAmounts is amounts of what a workflow reserves of nodes.
type WorkflowAmounts = workflow.Amounts

// ReservableAtMost returns a bound of what a workflow that has reserved nothing may reserve of all nodes of a pool together; false: there is none, as others may
// have to leave for it.
func ReservableAtMost(w *World, pool string, bands WorkflowBands) (sum WorkflowAmounts, bounded bool) {
	return reserve.FreeAtMost(w, pool, bands)
}

// ruleOf returns how much a workflow reserves.
func ruleOf(rule structs.WorkflowReserve) workflow.Reserve {
	r := workflow.Reserve{Sum: rule.Rule == structs.ReserveSum}
	if a := rule.Amounts; a != nil {
		r.Stated = workflow.Amounts{CPU: a.CPU, Cores: a.Cores, MemoryMB: a.MemoryMB, Devices: a.GPUs}
		for _, l := range a.LicenseList() {
			r.Licenses = append(r.Licenses, workflow.License{Name: l.Name, Count: l.Count})
		}
	}
	return r
}

// WorkflowLoans is how a workflow's reservation is used.
type WorkflowLoans = lend.Loans

// WorkflowUse returns how a workflow's reservation is used; nil: it has none.
func WorkflowUse(w *World, key string) *WorkflowLoans { return lend.LoansOf(w, key) }

// WorkflowKeeps returns where a workflow keeps what comes free; nil: nowhere.
func WorkflowKeeps(w *World, key string) []structs.WorkflowKept { return lend.KeptOf(w, key) }

// CurrentReasons returns reasons that were counted before without the nodes on which the workflows that they name have nothing idle any more of what is lacking. idle
// is IdleNodes of the workflow of a key, for which the caller may keep the answer.
func CurrentReasons(m *structs.AllocMetric, idle func(key, what string) int) *structs.AllocMetric {
	return metric.Current(m, idle)
}

// IdleNodes returns on how many nodes the workflow of a key has something idle of what it has reserved, of the resource that a reason names.
func IdleNodes(w *World, key, what string) int { return metric.IdleOn(w, key, what) }

// LendsTo reports whether a workflow lends to a job, whatever its time limits are.
func LendsTo(w *World, c *structs.WorkflowClaim, job *structs.Job) bool {
	return lend.LendsTo(w, c, job)
}

// ReservedOn returns what workflows have reserved of a node, and how it is used; nil: nothing.
func ReservedOn(w *World, nodeID string) []*structs.ReservedPart { return lend.PartsOn(w, nodeID) }

// WorkflowStart is what a stage of a workflow starts with.
type WorkflowStart = reserve.Start

// StartStage returns who leaves the reservation of the workflow of a key for the jobs of a stage, as of a time in Unix nanoseconds.
func StartStage(w *World, key string, stage WorkflowStage, now int64) WorkflowStart {
	c := w.Workflow(key)
	if c == nil || !c.Posted {
		return WorkflowStart{Lacking: true}
	}
	return reserve.TakeBack(w, c, stage, now)
}

// StageJob is a job of a stage as it is going to be registered.
type StageJob = stagestart.Job

// StagePlan is what a stage starts with, and where its jobs run.
type StagePlan = stagestart.Start

// PlanStage returns how the jobs of a stage of the workflow of a key start, as of a time in Unix nanoseconds: who leaves its reservation for them, and
// where they run then. input returns what one of them is decided with.
func PlanStage(w *World, key string, jobs []StageJob, now int64, input func(*structs.Job) Input) StagePlan {
	c := w.Workflow(key)
	if c == nil || !c.Posted {
		return StagePlan{Start: WorkflowStart{Lacking: true}}
	}
	return stagestart.Plan(w, c, jobs, now, input)
}

// LostParts returns the nodes of the parts of the reservation of the workflow of a key that are lost: the nodes are not ready any more and nothing
// of it runs there, or down, or gone, or not of its pool any more, or the cells there are not its namespace's any more; or a GPU of the part is bad that nothing of it uses.
func LostParts(w *World, key string) []string {
	c := w.Workflow(key)
	if c == nil {
		return nil
	}
	return lend.Missing(w, c)
}

// LacksPart reports whether an allocation that is to use its workflow's reservation has no part of it on its node, as it may have gone since the placement was judged.
func LacksPart(e *Edit, a *structs.Allocation) bool {
	if a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil || a.AllocatedResources.Shared.Terms.Claim != structs.ClaimWorkflow {
		return false
	}
	n, known := world.StateOf(e, a.NodeID)
	if !known {
		return true
	}
	p, has := n.Part(a.AllocatedResources.Shared.Terms.WorkflowKey())
	return !has || p.Pending
}

// RaisesForWorkflow reports whether instances of the running stage of the workflow of a key run without a claim where its reservation has room: [RenewReservation] returns
// which may use it.
func RaisesForWorkflow(w *World, key string) bool {
	c := w.Workflow(key)
	return c != nil && reserve.MayRaise(w, c)
}

// WorkflowRenewal is how what was lost of a reservation is reserved anew.
type WorkflowRenewal = reserve.Renewal

// RenewReservation returns the reservation of the workflow of a key with what its stages, those that are not over, need beside what is left of it on other
// nodes, or what is missing of it; false: it has none. bands are as for [ReserveOrPreempt].
func RenewReservation(w *World, key string, stages []WorkflowStage, rule structs.WorkflowReserve, how WorkflowRenewal, bands WorkflowBands) (c WorkflowChoice, has bool) {
	is := w.Workflow(key)
	if is == nil || !is.Posted {
		return c, false
	}
	return reserve.Renew(w, is, stages, ruleOf(rule), how, bands), true
}

package workflow

import (
	"cmp"
	"context"
	"hash/fnv"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// start commits an entry that registers jobs of one stage as one plan, with what is taken back for them and where they run. It reports whether the entry
// is dealt with: where a server does not know such plans, and where the plan did not hold, the jobs are to be registered and placed as others are.
func (d *Driver) start(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, entry *structs.WorkflowAdvanceEntry) (done bool, err error) {
	stage, only := stages.Registers(entry)
	if d.planner == nil || !r.Posted || stage < 0 || !d.known(structs.LogWorkflowStart) {
		return false, nil
	}
	now := d.opts.Clock.Now()
	jobs := stages.JobsOf(r, stage, only)
	start := make([]scheduler.StageJob, len(jobs))
	for i, job := range jobs {
		if was := snap.Job(nil, job.Namespace, job.ID); was != nil {
			job.CreateIndex = was.CreateIndex
		}
		job.Version, job.SubmitTime = nextVersion(snap, job.Namespace, job.ID), entry.Time
		start[i] = scheduler.StageJob{Job: job, EvalID: structs.DeriveID(entry.EvalSeed, uint64(i))}
	}
	prepared := scheduler.NewPrepared()
	begins := scheduler.PlanStage(snap.World(), structs.WorkflowKey(r.Namespace, r.ID), start, now.UnixNano(), func(job *structs.Job) scheduler.Input {
		return snap.Input(job, snap.AllocsToDecide(job.Namespace, job.ID), &state.InputOptions{
			Now: now, Seed: seedOf(entry.EvalSeed, job.ID), NewID: d.opts.NewID, Prepared: prepared, Brief: true,
		})
	})
	if len(begins.Place) == 0 {
		return false, nil
	}
	stages.SetReclaimed(entry, stage, len(begins.Stops))
	plan := &structs.Plan{
		Namespace: r.Namespace, JobID: r.ID, Priority: r.Workflow.Priority, SnapshotIndex: snap.Index(), AllAtOnce: true,
		Advance: entry, Workflow: d.reservationOf(r), Stop: begins.Stops, Place: begins.Place,
	}
	for _, job := range begins.Jobs {
		plan.Evals = append(plan.Evals, d.evaluation(snap, job, now))
	}
	result, err := d.planner.Submit(ctx, plan)
	switch {
	case structs.CodeOf(err) == structs.CodeBadRequest:
		stages.SetReclaimed(entry, stage, 0)
		now := d.store.Snapshot().Workflows(nil).Get(r.Namespace, r.ID)
		return now == nil || now.ModifyIndex != r.ModifyIndex, nil // else the jobs' own entry says what is wrong
	case err != nil:
		return false, err
	case result.AllocIndex == 0:
		stages.SetReclaimed(entry, stage, 0)
		d.opts.Logger.Debug("a stage does not start as one plan", "namespace", r.Namespace, "workflow", r.ID, "reason", result.RefusedReason)
		return false, nil
	}
	d.opts.Logger.Debug("stage started", "namespace", r.Namespace, "workflow", r.ID, "run", r.Run, "stage", stage, "jobs", len(jobs), "reclaimed", len(begins.Stops))
	return true, nil
}

// known reports whether all servers know an entry of a type.
func (d *Driver) known(t structs.LogType) bool {
	return d.opts.Readable == nil || d.opts.Readable(t) == nil
}

// reservationOf returns what a run has reserved, as plans state it.
func (d *Driver) reservationOf(r *structs.WorkflowRun) *structs.WorkflowReservation {
	to := &structs.WorkflowReservation{Namespace: r.Namespace, ID: r.ID, Run: r.Run, Parts: r.Parts, Licenses: r.Licenses, Posted: true, Missing: r.Missing}
	if d.known(structs.LogWorkflowRenew) { // else a server has joined since that knows of nothing that is kept so
		to.Keeps = r.Keeps
	}
	return to
}

// seedOf is the same for the same job of an entry.
func seedOf(entry, job string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(entry + job)) // never fails
	return cmp.Or(h.Sum64(), 1)
}

// nextVersion returns the version that a job gets if it is registered anew.
func nextVersion(snap *state.Snapshot, namespace, id string) (next uint64) {
	if job := snap.Job(nil, namespace, id); job != nil {
		return job.Version + 1
	}
	for a := range snap.AllocRowsByJob(nil, namespace, id) {
		next = max(next, a.JobVersion()+1)
	}
	return next
}

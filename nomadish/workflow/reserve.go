package workflow

import (
	"context"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// Planner has plans judged and, as far as they hold, committed.
type Planner interface {
	Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error)
}

// AwaitsReservation reports whether something is to be reserved for a run before it starts, and is not yet.
func AwaitsReservation(r *structs.WorkflowRun) bool { return !stages.Reserved(r) }

// waiting returns the runs that wait for their reservation, the highest rank first: by priority, then by who came first.
func waiting(snap *state.Snapshot) (list []*structs.WorkflowRun) {
	for r := range snap.Workflows(nil).Alive() {
		if r.State == structs.WorkflowPending && AwaitsReservation(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, stages.Compare)
	return list
}

// losing returns the runs of whose reservations something is lost, or was, or of which instances run without a claim where they have room, the highest rank first.
func losing(snap *state.Snapshot) (list []*structs.WorkflowRun) {
	for r := range snap.Workflows(nil).Alive() {
		key := structs.WorkflowKey(r.Namespace, r.ID)
		if r.Posted && (r.Missing != "" || licensesShort(snap, r) != "" || len(scheduler.LostParts(snap.World(), key)) > 0 || scheduler.RaisesForWorkflow(snap.World(), key)) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, stages.Compare)
	return list
}

// BandsAt returns from whom workflows take what they reserve as of a time. Their priority is left out.
func BandsAt(snap *state.Snapshot, now time.Time) scheduler.WorkflowBands {
	config, perNode := snap.SchedulerConfig(nil), map[structs.NamespacedID]bool{}
	for j := range snap.JobsOf(nil, state.JobsPerNode) {
		perNode[structs.NamespacedID{Namespace: j.Namespace, ID: j.ID}] = true
	}
	overLimit := func(namespace string) string {
		if v := snap.VirtualClusters(nil).Get(namespace); v != nil {
			return v.OverLimit
		}
		return ""
	}
	return scheduler.WorkflowBands{Config: &config, Now: now.UnixNano(), PerNode: func(id structs.NamespacedID) bool { return perNode[id] }, OverLimit: overLimit}
}

// submit has a reservation judged and committed, with those who leave for it, and reports whether that failed.
func (d *Driver) submit(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, c scheduler.WorkflowChoice) (failed bool) {
	holds, err := d.offer(ctx, snap, r, c)
	return err != nil || !holds
}

// offer is submit, and reports whether the reservation holds as it was judged. An error, of the commit, is logged.
func (d *Driver) offer(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, c scheduler.WorkflowChoice) (holds bool, err error) {
	to := stages.Reservation(r, c)
	plan := &structs.Plan{Namespace: to.Namespace, JobID: to.ID, Priority: r.Workflow.Priority, SnapshotIndex: snap.Index(), Workflow: to, Stop: c.Stops, Update: claims(snap, r, c.Claims)}
	plan.AllAtOnce = len(plan.Stop)+len(plan.Update) > 0
	now := d.opts.Clock.Now()
	for _, job := range c.Jobs {
		plan.Evals = append(plan.Evals, d.evaluation(snap, job, now))
	}
	result, err := d.planner.Submit(ctx, plan)
	if err != nil {
		if ctx.Err() == nil {
			d.opts.Logger.Error("reserve for a workflow; it will be tried again", "namespace", to.Namespace, "workflow", to.ID, "error", err)
		}
		return false, err
	}
	return result.AllocIndex > 0, nil
}

// claims returns the updates in place by which allocations of a run use its reservation.
func claims(snap *state.Snapshot, r *structs.WorkflowRun, ids []string) (list []*structs.AllocInPlace) {
	for _, id := range ids {
		a := snap.Alloc(nil, id)
		if a == nil || a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil {
			continue
		}
		resources := a.AllocatedResources.Copy()
		terms := resources.Shared.Terms.Reserved(structs.WorkflowKey(r.Namespace, r.ID))
		resources.Shared.Terms = &terms
		list = append(list, &structs.AllocInPlace{AllocID: id, JobVersion: a.JobVersion, EvalID: a.EvalID, Resources: resources, Created: a.CreateTime})
	}
	return list
}

// takeBack takes back from those who borrow what the jobs that an entry registers need of the reservation, before they are registered.
func (d *Driver) takeBack(ctx context.Context, snap *state.Snapshot, r *structs.WorkflowRun, entry *structs.WorkflowAdvanceEntry) error {
	if d.planner == nil || !r.Posted {
		return nil
	}
	starts := map[int][]int{} // looked up only
	for _, m := range entry.Jobs {
		if m.Register {
			starts[m.Stage] = append(starts[m.Stage], m.Job)
		}
	}
	key, now := structs.WorkflowKey(r.Namespace, r.ID), d.opts.Clock.Now()
	for stage := range r.Stages {
		if starts[stage] == nil {
			continue
		}
		start := scheduler.StartStage(snap.World(), key, stages.JobsOf(r, stage, starts[stage]), now.UnixNano())
		if len(start.Stops) == 0 {
			continue
		}
		plan := &structs.Plan{
			Namespace: r.Namespace, JobID: r.ID, Priority: r.Workflow.Priority, SnapshotIndex: snap.Index(), Stop: start.Stops,
			Workflow: d.reservationOf(r),
		}
		plan.Workflow.Closed = true
		for _, job := range start.Jobs {
			plan.Evals = append(plan.Evals, d.evaluation(snap, job, now))
		}
		if _, err := d.planner.Submit(ctx, plan); err != nil {
			return err
		}
		if now := d.store.Snapshot().Workflows(nil).Get(r.Namespace, r.ID); now != nil && now.Closed && now.Run == r.Run && now.State == r.State {
			entry.CheckIndex = now.ModifyIndex // lending is closed until the entry is applied
		}
		stages.SetReclaimed(entry, stage, len(start.Stops))
	}
	return nil
}

// evaluation returns the evaluation of a job of which instances are taken back.
func (d *Driver) evaluation(snap *state.Snapshot, id structs.NamespacedID, now time.Time) *structs.Evaluation {
	ev := &structs.Evaluation{
		ID: d.opts.NewID(), Namespace: id.Namespace, JobID: id.ID, Priority: structs.JobDefaultPriority, Type: structs.JobTypeBatch,
		TriggeredBy: structs.EvalTriggerPreemption, Status: structs.EvalStatusPending,
		StatusDescription: "created because a workflow reclaimed what instances of the job used",
		CreateTime:        now.UnixNano(), ModifyTime: now.UnixNano(),
	}
	if job := snap.Job(nil, id.Namespace, id.ID); job != nil {
		ev.Priority, ev.Type, ev.JobModifyIndex = job.Priority, job.Type, job.JobModifyIndex
	}
	return ev
}

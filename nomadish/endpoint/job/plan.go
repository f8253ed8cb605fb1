package job

import (
	"context"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// maxPlanning bounds the jobs that are planned at a time. Others wait, as long as their callers do.
const maxPlanning = 2

// plan runs the real scheduler to find what a registration would do, on the state as it
// is, and commits nothing.
func (e *Endpoint) plan(ctx context.Context, args *structs.JobPlanRequest) (*structs.JobPlanReply, error) {
	if args.Job != nil && args.Job.Multiregion != nil { // as this region would get it
		job := args.Job.InRegion(e.Router.Region)
		if job == nil {
			return nil, structs.Errorf(structs.CodeBadRequest, "job %q: it does not run in region %q", args.Job.ID, e.Router.Region).
				WithHint("plan it in one of its own: %s", strings.Join(args.Job.RegionNames(), ", "))
		}
		args.Job = job
	}
	warnings, err := e.admit(args.Job, args.Namespace)
	if err != nil {
		return nil, err
	}
	if warnings, err = e.identify(ctx, args.Job, args.User, warnings); err != nil {
		return nil, err
	}
	entry := &structs.JobRegisterEntry{Job: args.Job.Copy(), Time: e.Now().UnixNano()}
	reply, err := e.planned(ctx, args, warnings)
	if err != nil || !args.Forecast {
		return reply, err
	}
	e.addForecast(ctx, entry, reply)
	return reply, ctx.Err()
}

// addForecast has a reply state when the job of an entry starts if it is registered now.
func (e *Endpoint) addForecast(ctx context.Context, entry *structs.JobRegisterEntry, reply *structs.JobPlanReply) {
	if e.Forecast == nil || entry.Job.IsPeriodic() || entry.Job.IsParameterized() {
		reply.NoForecast = "a forecast is of jobs that run by themselves"
		return
	}
	entry.Job.SubmitTime = entry.Time
	entry.Eval = structs.NewEval(e.NewID(), entry.Job, structs.EvalTriggerJobRegister, entry.Time)
	f, err := e.Forecast(ctx, entry)
	if err != nil {
		reply.NoForecast = err.Error()
		return
	}
	reply.Forecast = f
}

// planned runs the scheduler on an admitted job.
func (e *Endpoint) planned(ctx context.Context, args *structs.JobPlanRequest, warnings string) (*structs.JobPlanReply, error) {
	select {
	case e.planning <- struct{}{}:
		defer func() { <-e.planning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	snap := e.Router.Snapshot()
	job := args.Job
	old := snap.Job(nil, job.Namespace, job.ID)
	if unlimited := unlimitedNodes(snap.World(), job); len(unlimited) > 0 {
		warnings = strings.TrimPrefix(warnings+"\n"+strings.Join(unlimited, "\n"), "\n")
	}
	reply := &structs.JobPlanReply{Index: snap.Index()}
	reply.Submission, reply.Warnings = checkSubmission(snap, args.Job, warnings)
	now := e.Now()
	job.SubmitTime, job.Version = now.UnixNano(), 0
	var allocs []*structs.Allocation
	if old != nil {
		reply.JobModifyIndex = old.JobModifyIndex
		job.CreateIndex, job.Version = old.CreateIndex, old.Version
		job.JobModifyIndex = old.JobModifyIndex
		if job.SpecChanged(old) {
			job.Version++
			job.JobModifyIndex = snap.Index() + 1
		}
		allocs = snap.AllocsByJob(nil, job.Namespace, job.ID, false)
	}
	eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerJobRegister, now.UnixNano())
	eval.AnnotatePlan = true
	eval.SnapshotIndex = snap.Index()
	in := snap.Input(job, allocs, &state.InputOptions{
		Now: now, Seed: uint64(now.UnixNano()), NewID: e.NewID, Typical: e.Typical, Annotate: true, // a seed
	})
	in.Requests, in.SnapshotIndex = nil, 0 // what would be registered has waited for nothing yet, and was decided on no state
	plan, err := scheduler.Schedule(snap.World(), eval, in)
	if err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "plan job %q: %w", job.ID, err)
	}
	if refused := e.refusal(snap, job); refused != "" {
		reply.Warnings = strings.TrimPrefix(reply.Warnings+"\n"+refused, "\n")
	}
	reply.Annotations, reply.FailedTGAllocs = plan.Annotations, plan.FailedTGAllocs
	for _, ev := range plan.Evals {
		if ev.ID == eval.ID {
			continue
		}
		// The scheduler does not know the jobs that something is taken back from; the state
		// adds what they are when it stores their evaluations.
		if other := snap.Job(nil, ev.Namespace, ev.JobID); other != nil && ev.TriggeredBy == structs.EvalTriggerPreemption {
			ev.Priority, ev.Type, ev.JobModifyIndex = other.Priority, other.Type, other.JobModifyIndex
		}
		reply.CreatedEvals = append(reply.CreatedEvals, ev)
	}
	if args.Diff {
		reply.Diff = planDiff(old, job, plan)
	}
	return reply, nil
}

// planDiff returns what differs between a job and the one that is registered, nil if there is none, with what the plan does
// to each group.
func planDiff(old, job *structs.Job, plan *structs.Plan) *structs.JobDiff {
	diff := old.Diff(job, true)
	if diff != nil && plan.Annotations != nil {
		diff.Annotate(plan.Annotations.DesiredTGUpdates)
	}
	return diff
}

package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// admit makes a job ready to be stored: defaults, then every rule. What servers
// set themselves is cleared, so that nobody can bring it along.
func (e *Endpoint) admit(job *structs.Job, ns string) (warnings string, err error) {
	return e.admitUpTo(job, ns, e.MaxPriority)
}

// admitUpTo admits a job of at most a priority; 0: of any.
func (e *Endpoint) admitUpTo(job *structs.Job, ns string, maxPriority int) (warnings string, err error) {
	if job == nil {
		return "", structs.Errorf(structs.CodeBadRequest, "the request has no Job").WithHint(`send {"Job": {…}}`)
	}
	if job.Namespace == "" && ns != structs.AllNamespaces {
		job.Namespace = ns
	}
	if job.Region == "" || job.Region == structs.DefaultRegion { // which clients of Nomad's fill in
		job.Region = e.Router.Region
	}
	if err := job.CheckSize(e.MaxSize); err != nil { // before all that costs more the larger the job is
		return "", err
	}
	job.Status, job.StatusDescription, job.Stable = "", "", false
	if job.Priority == 0 {
		job.Priority = e.DefaultPriority
	}
	job.Canonicalize()
	namespace, err := e.namespace(job.Namespace)
	if err != nil {
		return "", err
	}
	if job.Region != e.Router.Region {
		return "", structs.Errorf(structs.CodeBadRequest, "job %q: region %q: it was sent to region %q", job.ID, job.Region, e.Router.Region)
	}
	if err := job.Validate().Err(); err != nil {
		return "", err
	}
	if err := namespace.Admits(job); err != nil {
		return "", err
	}
	if err := e.checkNodePool(job); err != nil {
		return "", err
	}
	if err := e.checkLevels(job); err != nil {
		return "", err
	}
	if err := e.checkLicenses(job); err != nil {
		return "", err
	}
	if maxPriority > 0 && job.Priority > maxPriority {
		return "", structs.Errorf(structs.CodeBadRequest, "job %q: priority %d: the servers of this region allow at most %d (job_max_priority)",
			job.ID, job.Priority, maxPriority)
	}
	if err := e.checkCount(job, nil, 0); err != nil {
		return "", err
	}
	return strings.Join(slices.Concat(job.Warnings(), e.unknownDevices(job), beyondShares(e.Router.Snapshot(), job)), "\n"), nil
}

// namespace returns the namespace that a job names, or an error that there is none.
func (e *Endpoint) namespace(name string) (*structs.Namespace, error) {
	if n := e.Router.Snapshot().Namespaces().Get(nil, name); n != nil {
		return n, nil
	}
	return nil, structs.MissingNamespace(name)
}

func (e *Endpoint) register(ctx context.Context, args *structs.JobRegisterRequest) (*structs.JobRegisterReply, error) {
	return e.registerUpTo(ctx, args, e.MaxPriority)
}

// registerUpTo registers a job of at most a priority; 0: of any.
func (e *Endpoint) registerUpTo(ctx context.Context, args *structs.JobRegisterRequest, maxPriority int) (*structs.JobRegisterReply, error) {
	warnings, err := e.admitUpTo(args.Job, args.Namespace, maxPriority)
	if err != nil {
		return nil, err
	}
	snap := e.Router.Snapshot()
	if snap.SchedulerConfig(nil).RejectJobRegistration {
		return nil, structs.Errorf(structs.CodeForbidden, "job registration is switched off").
			WithHint("an operator set RejectJobRegistration in the scheduler configuration")
	}
	if args.EvalPriority < 0 || args.EvalPriority > structs.JobMaxPriority {
		return nil, structs.Errorf(structs.CodeBadRequest, "EvalPriority %d: allowed are 1 to %d", args.EvalPriority, structs.JobMaxPriority)
	}
	job := args.Job
	now := e.Now().UnixNano()
	job.SubmitTime = now
	if warnings, err = e.identify(ctx, job, args.User, warnings); err != nil {
		return nil, err
	}
	if old := snap.Job(nil, job.Namespace, job.ID); old != nil {
		if old.Type != job.Type {
			return nil, structs.Errorf(structs.CodeBadRequest, "job %q: its type is %q and cannot become %q", job.ID, old.Type, job.Type).
				WithHint("stop and purge it first, or use another name")
		}
		if err := keepCounts(job, old, args); err != nil {
			return nil, err
		}
	}
	submission := args.Submission
	if submission != nil && e.MaxSource > 0 && submission.Size() > e.MaxSource {
		submission = nil
		warnings = strings.TrimPrefix(warnings+fmt.Sprintf("\njob source of over %d bytes, its variables included, is not kept (job_max_source_size)", e.MaxSource), "\n")
	}
	if args.Opportunistic {
		job.OverLimit = structs.OverLimitOpportunistic
	}
	if err := checkClass(snap, job, e.Now()); err != nil {
		return nil, err
	}
	if err := e.checkLimit(ctx, snap, job); err != nil {
		return nil, err
	}
	entry := &structs.JobRegisterEntry{
		Job: job, EnforceIndex: args.EnforceIndex, CheckIndex: args.JobModifyIndex, Submission: submission, Time: now,
	}
	if job.Periodic == nil && job.ParameterizedJob == nil {
		entry.Eval = structs.NewEval(e.NewID(), job, structs.EvalTriggerJobRegister, now)
		if args.EvalPriority > 0 {
			entry.Eval.Priority = args.EvalPriority
		}
	}
	index, err := e.Applier.Apply(ctx, structs.LogJobRegister, entry)
	if err != nil {
		return nil, err
	}
	reply := &structs.JobRegisterReply{JobModifyIndex: index}
	reply.Submission, reply.Warnings = checkSubmission(e.Router.Snapshot(), job, warnings)
	reply.Index = index
	if stored := e.Router.Snapshot().Job(nil, job.Namespace, job.ID); stored != nil {
		reply.JobModifyIndex = stored.JobModifyIndex
	}
	if entry.Eval != nil {
		reply.EvalID, reply.EvalCreateIndex = entry.Eval.ID, index
	}
	return reply, nil
}

// keepCounts honours PreserveCounts and PreserveResources. What is kept may not fit
// what is new: a gang's min may be above the old count.
func keepCounts(job, old *structs.Job, args *structs.JobRegisterRequest) error {
	if !args.PreserveCounts && !args.PreserveResources {
		return nil
	}
	for _, g := range job.TaskGroups {
		was := old.LookupTaskGroup(g.Name)
		if was == nil {
			continue
		}
		if args.PreserveCounts {
			g.Count = was.Count
		}
		if args.PreserveResources {
			for _, t := range g.Tasks {
				if wt := was.LookupTask(t.Name); wt != nil && wt.Resources != nil {
					t.Resources = wt.Copy().Resources // the state's own is never changed, and this may be tried again
				}
			}
		}
	}
	return job.Validate().Err()
}

// jobOf returns a job, or an error if there is none.
func (e *Endpoint) jobOf(ns, id string) (*structs.Job, error) {
	if ns == "" {
		ns = structs.DefaultNamespace
	}
	job := e.Router.Snapshot().Job(nil, ns, id)
	if job == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "job %q in namespace %q: not found", id, ns)
	}
	return job, nil
}

// deregister stops a job. To stop one that is not there is no error, as with Nomad: there is no evaluation then.
func (e *Endpoint) deregister(ctx context.Context, args *structs.JobDeregisterRequest) (*structs.JobRegisterReply, error) {
	job, err := e.jobOf(args.Namespace, args.JobID)
	if structs.CodeOf(err) == structs.CodeNotFound {
		reply := &structs.JobRegisterReply{}
		reply.Index = e.Router.Store.LatestIndex()
		return reply, nil
	}
	if err != nil {
		return nil, err
	}
	now := e.Now().UnixNano()
	entry := &structs.JobDeregisterEntry{
		Namespace: job.Namespace, JobID: job.ID, Purge: args.Purge, NoShutdownDelay: args.NoShutdownDelay, Time: now,
	}
	if job.Periodic == nil && job.ParameterizedJob == nil {
		entry.Eval = structs.NewEval(e.NewID(), job, structs.EvalTriggerJobDeregister, now)
		if args.EvalPriority > 0 && args.EvalPriority <= structs.JobMaxPriority {
			entry.Eval.Priority = args.EvalPriority
		}
	}
	return e.applyForEval(ctx, structs.LogJobDeregister, entry, entry.Eval)
}

func (e *Endpoint) applyForEval(ctx context.Context, t structs.LogType, entry any, eval *structs.Evaluation) (*structs.JobRegisterReply, error) {
	index, err := e.Applier.Apply(ctx, t, entry)
	if err != nil {
		return nil, err
	}
	reply := &structs.JobRegisterReply{JobModifyIndex: index}
	reply.Index = index
	if eval != nil {
		reply.EvalID, reply.EvalCreateIndex = eval.ID, index
	}
	return reply, nil
}

func (e *Endpoint) evaluate(ctx context.Context, args *structs.JobEvaluateRequest) (*structs.JobRegisterReply, error) {
	job, err := e.jobOf(args.Namespace, args.JobID)
	if err != nil {
		return nil, err
	}
	if job.Periodic != nil || job.ParameterizedJob != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q is periodic or parameterized: it is never evaluated itself", job.ID).
			WithHint("evaluate one of its children")
	}
	now := e.Now().UnixNano()
	eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerForce, now)
	if !args.ForceReschedule {
		return e.applyForEval(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{eval}, Time: now}, eval)
	}
	force := true
	transitions := map[string]*structs.DesiredTransition{}
	for _, a := range e.Router.Snapshot().AllocsByJob(nil, job.Namespace, job.ID, false) {
		if a.ClientStatus == structs.AllocClientFailed && a.NextAllocation == "" && !a.ServerTerminal() {
			transitions[a.ID] = &structs.DesiredTransition{ForceReschedule: &force}
		}
	}
	return e.applyForEval(ctx, structs.LogAllocTransition,
		&structs.AllocTransitionEntry{Transitions: transitions, Evals: []*structs.Evaluation{eval}, Time: now}, eval)
}

func (e *Endpoint) scale(ctx context.Context, args *structs.JobScaleRequest) (*structs.JobRegisterReply, error) {
	job, err := e.jobOf(args.Namespace, args.JobID)
	if err != nil {
		return nil, err
	}
	group := args.Target["Group"]
	tg := job.LookupTaskGroup(group)
	if tg == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "group %q does not exist in job %q", group, job.ID).WithHint(`name it as Target {"Group": …}`)
	}
	switch {
	case args.Error && args.Count != nil:
		return nil, structs.Errorf(structs.CodeBadRequest, "a scaling error is only recorded: leave Count out")
	case args.Count != nil && *args.Count < 0:
		return nil, structs.Errorf(structs.CodeBadRequest, "count %d: allowed are 0 and more", *args.Count)
	case args.Count != nil && tg.Scaling != nil && *args.Count < tg.Scaling.Min:
		return nil, structs.Errorf(structs.CodeBadRequest, "count %d: the group's scaling block allows at least %d", *args.Count, tg.Scaling.Min)
	case args.Count != nil && tg.Scaling != nil && tg.Scaling.Max > 0 && *args.Count > tg.Scaling.Max:
		return nil, structs.Errorf(structs.CodeBadRequest, "count %d: the group's scaling block allows at most %d", *args.Count, tg.Scaling.Max)
	case args.Count != nil && tg.Gang != nil && *args.Count < int64(tg.Gang.Min):
		return nil, structs.Errorf(structs.CodeBadRequest, "count %d: the group's gang needs at least %d members", *args.Count, tg.Gang.Min).
			WithHint("lower gang.min in the job first, or stop the job")
	case args.Count != nil && job.Stop:
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q is stopped", job.ID).WithHint("run it again first")
	case job.Type == structs.JobTypeSystem || job.Type == structs.JobTypeSysBatch:
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q is of type %s and runs once a node: it has no count to scale", job.ID, job.Type)
	}
	if args.Count != nil {
		if err := e.checkStage(job); err != nil {
			return nil, err
		}
	}
	if args.Count != nil && *args.Count > int64(tg.Count) { // one that has too many already may be made smaller step by step
		if err := e.checkCount(job, tg, *args.Count); err != nil {
			return nil, err
		}
		grown := job.Copy()
		grown.LookupTaskGroup(tg.Name).Count = int(*args.Count)
		if err := e.checkLimit(ctx, e.Router.Snapshot(), grown); err != nil {
			return nil, err
		}
	}
	if err := checkScalingNote(args); err != nil {
		return nil, err
	}
	now := e.Now().UnixNano()
	entry := &structs.JobScaleEntry{
		Namespace: job.Namespace, JobID: job.ID, Group: group, Count: args.Count,
		EnforceIndex: args.EnforceIndex, CheckIndex: args.JobModifyIndex, Time: now,
		Event: &structs.ScalingEvent{
			Time: now, Count: args.Count, PreviousCount: int64(tg.Count), Message: args.Message, Error: args.Error, Meta: args.Meta,
		},
	}
	if args.Count != nil {
		entry.Eval = structs.NewEval(e.NewID(), job, structs.EvalTriggerScaling, now)
		entry.Event.EvalID = &entry.Eval.ID
	}
	reply, err := e.applyForEval(ctx, structs.LogJobScale, entry, entry.Eval)
	if err == nil && args.Count == nil { // something is noted, and the job stays as it is
		reply.JobModifyIndex = job.JobModifyIndex
	}
	return reply, err
}

func (e *Endpoint) revert(ctx context.Context, args *structs.JobRevertRequest) (*structs.JobRegisterReply, error) {
	job, err := e.jobOf(args.Namespace, args.JobID)
	if err != nil {
		return nil, err
	}
	if args.EnforcePriorVersion != nil && *args.EnforcePriorVersion != job.Version {
		return nil, structs.Errorf(structs.CodeConflict, "job %q is at version %d: enforcing version %d failed", job.ID, job.Version, *args.EnforcePriorVersion)
	}
	if args.JobVersion == job.Version {
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q is at version %d already", job.ID, job.Version)
	}
	snap := e.Router.Snapshot()
	old := snap.JobVersion(job.Namespace, job.ID, args.JobVersion)
	if old == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "job %q has no version %d any more", job.ID, args.JobVersion).
			WithHint("`job history` lists those that are kept")
	}
	again := old.Copy()
	again.Stop, again.VersionTag = false, nil
	// A version was admitted once: it may come back with its priority although the servers allow less by now.
	return e.registerUpTo(ctx, &structs.JobRegisterRequest{
		Job: again, EnforceIndex: true, JobModifyIndex: job.JobModifyIndex, Submission: snap.JobSubmission(job.Namespace, job.ID, args.JobVersion),
		WriteRequest: structs.WriteRequest{Namespace: job.Namespace, User: args.User},
	}, 0)
}

func (e *Endpoint) stability(ctx context.Context, args *structs.JobStabilityRequest) (*structs.JobStabilityReply, error) {
	job, err := e.jobOf(args.Namespace, args.JobID)
	if err != nil {
		return nil, err
	}
	index, err := e.Applier.Apply(ctx, structs.LogJobStability, &structs.JobStabilityEntry{
		Namespace: job.Namespace, JobID: job.ID, Version: args.JobVersion, Stable: args.Stable, Time: e.Now().UnixNano(),
	})
	if err != nil {
		return nil, err
	}
	return &structs.JobStabilityReply{JobModifyIndex: index, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoint) validate(_ context.Context, args *structs.JobRegisterRequest) (*structs.JobValidateReply, error) {
	warnings, err := e.admit(args.Job, args.Namespace)
	reply := &structs.JobValidateReply{DriverConfigValidated: true, Warnings: warnings}
	if err != nil {
		reply.Error = structs.Clip(err.Error(), structs.MaxErrorBytes)
		reply.ValidationErrors = leaves(err)
	}
	return reply, nil
}

// leaves are the single errors of a joined one.
func leaves(err error) []string {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		var all []string
		for _, one := range many.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	}
	return []string{structs.Clip(err.Error(), structs.MaxErrorBytes)}
}

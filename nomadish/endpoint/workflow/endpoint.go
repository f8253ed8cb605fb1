// Package workflow answers the RPC methods of workflows. It admits what users submit; it must never start or stop a job: that is for the log
// entries, and for the leader's driver that makes them.
package workflow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	driver "github.com/nomadish/nomadish/nomadish/workflow"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lastEntry is the newest type of log entry that workflows take.
const lastEntry = structs.LogWorkflowDelete

// Deps are the parts that the endpoint works with.
type Deps struct {
	rpc.Parts
	// Self calls a method as if this server's own agent had called it.
	Self func(ctx context.Context, method string, args, reply any) error
	// DefaultPriority is the priority of a workflow that states none; 0: 50. MaxPriority is the highest that one may state; 0: 100.
	DefaultPriority, MaxPriority int
	// Identity is who runs workflows; nil: no request is believed.
	Identity *identity.Source
	// Forecasts are when workflows start; nil: there are none.
	Forecasts Forecasts
}

// maxPlanning bounds the workflows that are planned at a time. Others wait, as long as their callers do.
const maxPlanning = 2

// Endpoint answers the methods of workflows.
type Endpoint struct {
	Deps
	// planning has a slot for each whose workflow is being planned, which takes up to a second of a core, and memory for each of its instances.
	planning chan struct{}
}

// New returns a new endpoint.
func New(d Deps) *Endpoint {
	if d.Identity == nil {
		d.Identity = identity.New(identity.Options{})
	}
	if d.Forecasts == nil {
		d.Forecasts = noForecasts{}
	}
	return &Endpoint{Deps: d, planning: make(chan struct{}, maxPlanning)}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	action := func(action string) wire.Handler {
		return rpc.VersionedWrite(r, lastEntry, func(ctx context.Context, args *structs.WorkflowActionRequest) (*structs.WriteReply, error) {
			return e.act(ctx, action, args)
		})
	}
	return []rpc.Method{
		{Name: wire.MethodWorkflowList, Handler: rpc.VersionedRead(r, lastEntry, e.list)},
		{Name: wire.MethodWorkflowGet, Handler: rpc.VersionedRead(r, lastEntry, e.get)},
		{Name: wire.MethodWorkflowRun, Handler: rpc.VersionedWrite(r, lastEntry, e.run)},
		{Name: wire.MethodWorkflowPlan, Handler: rpc.VersionedWrite(r, lastEntry, e.plan)},
		{Name: wire.MethodWorkflowPause, Handler: action(structs.WorkflowActionPause)},
		{Name: wire.MethodWorkflowResume, Handler: action(structs.WorkflowActionResume)},
		{Name: wire.MethodWorkflowCancel, Handler: action(structs.WorkflowActionCancel)},
		{Name: wire.MethodWorkflowRetry, Handler: rpc.VersionedWrite(r, lastEntry, e.retry)},
		{Name: wire.MethodWorkflowDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.delete)},
	}
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.WorkflowListReply, error) {
	reply := &structs.WorkflowListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Workflows = []*structs.WorkflowStub{}
		f, _ := e.Forecasts.Last()
		rows, err := rpc.Page(&args.QueryOptions, &reply.QueryMeta, func(yield func(*structs.WorkflowStub) bool) {
			for r := range snap.Workflows(ws).List(rpc.NamespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
				if !yield(stubOf(r, f)) {
					return
				}
			}
		}, func(r *structs.WorkflowStub) string { return r.Namespace + "," + r.ID })
		reply.Workflows = append(reply.Workflows, rows...)
		return snap.TableIndex(state.TableWorkflows), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.WorkflowGetReply, error) {
	reply := &structs.WorkflowGetReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Workflow = nil
		r := snap.Workflows(ws).Get(rpc.NamespaceOf(&args.QueryOptions), args.ID)
		if r == nil {
			return snap.TableIndex(state.TableWorkflows), nil
		}
		var index uint64
		reply.Workflow, index = status(ws, snap, r)
		e.addForecast(reply.Workflow)
		return index, nil
	})
}

// status returns a workflow as it is shown, and the index at which that last changed.
func status(ws *state.WatchSet, snap *state.Snapshot, r *structs.WorkflowRun) (*structs.WorkflowStatus, uint64) {
	index, w := r.ModifyIndex, r.Workflow
	s := &structs.WorkflowStatus{
		ID: r.ID, Namespace: r.Namespace, NodePool: w.NodePool, Run: r.Run, State: r.State, Priority: w.Priority, Reserve: w.Reserve, OnFailure: w.OnFailure,
		Stage: min(r.Stage+1, len(r.Stages)), Missing: r.Missing, Posted: r.Posted, Submitter: r.Submitter,
		SubmitTime: r.SubmitTime, StartTime: r.StartTime, EndTime: r.EndTime, Previous: r.Previous, Workflow: w,
		CreateIndex: r.CreateIndex, ModifyIndex: r.ModifyIndex,
	}
	if loans := scheduler.WorkflowUse(snap.World(), structs.WorkflowKey(r.Namespace, r.ID)); loans != nil && r.Posted {
		s.Reserved, s.Used, s.Lent, s.Idle, s.LentTo = loans.Reserved, loans.Used, loans.Lent, loans.Idle, loans.To
		s.Lost = loans.Lost
		bad := loans.Bad
		if strings.Contains(s.Missing, bad) { // it is named in what is not found for it
			bad = ""
		}
		s.Missing = joined(s.Missing, loans.Leaves, bad, overReserved(ws, snap, r))
	} else {
		for _, l := range w.Lend {
			s.LentTo = append(s.LentTo, structs.WorkflowLoan{To: l.To, Share: l.Share})
		}
	}
	if !slices.ContainsFunc(r.Parts, func(p structs.WorkflowPart) bool { return p.CellLevel != "" }) { // else its GPUs are those of cells
		s.Missing = withCells(snap, r.Namespace, w.NodePool, s.Missing)
	}
	if r.State == structs.WorkflowPaused && driver.AwaitsReservation(r) { // it waits for nothing but to be resumed
		s.Missing = "it was paused before its reservation"
	}
	for i := range r.Parts {
		part := structs.WorkflowPartStatus{WorkflowPart: r.Parts[i]}
		if n := snap.Node(ws, part.NodeID); n != nil {
			part.NodeName, index = n.Name, max(index, n.ModifyIndex) // it may take no more work, or have bad devices
		}
		if r.Posted { // else it is what the run keeps, as it comes free
			s.Parts = append(s.Parts, part)
		}
	}
	s.Keeps = scheduler.WorkflowKeeps(snap.World(), structs.WorkflowKey(r.Namespace, r.ID))
	stopping, changed := driver.Stopping(snap, ws, r)
	s.Stopping, index = stopping, max(index, changed)
	jobs := w.Jobs()
	for _, stage := range r.Stages {
		line := structs.WorkflowStageStatus{
			Name: stage.Name, State: stage.State, Attempt: stage.Attempt, Start: stage.Start, End: stage.End, Reclaimed: stage.Reclaimed,
		}
		for _, j := range stage.Jobs {
			one := structs.WorkflowJobStatus{
				ID: j.JobID, Name: j.Name, State: j.State, Attempt: j.Attempt, DependsOn: jobs[j.Name].DependsOn, Start: j.Start, End: j.End,
				Instances: jobs[j.Name].Job.Instances(),
			}
			index = max(index, count(ws, snap, r.Namespace, &one, r.State == structs.WorkflowCancelled))
			line.Jobs = append(line.Jobs, one)
		}
		s.Stages = append(s.Stages, line)
	}
	return s, index
}

// joined joins those of several sentences that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// overReserved states of which licenses of a run workflows have reserved more together than there are, as the count was lowered since; "": of none.
func overReserved(ws *state.WatchSet, snap *state.Snapshot, r *structs.WorkflowRun) string {
	var lines []string
	for _, own := range r.Licenses {
		l := snap.Licenses().Get(ws, own.Name)
		if l == nil || l.Count < own.Count { // which is in the run's Missing
			continue
		}
		sum, lost, of := int64(0), int64(0), []string(nil)
		use := scheduler.LicenseUsers(snap.World(), l)
		outside := use.Used
		for _, o := range use.Reservations {
			if !o.Pending && o.Reserved > 0 {
				sum, lost, outside = sum+o.Reserved, lost+o.Lost, outside-o.Used-o.Lent
				of = append(of, fmt.Sprintf("%s (%d)", structs.WorkflowKey(o.Namespace, o.Workflow), o.Reserved))
			}
		}
		if sum <= l.Count && lost == 0 {
			continue
		}
		text := fmt.Sprintf("%d of license %q are reserved, and there are %d", sum, own.Name, l.Count)
		if outside > 0 {
			text += fmt.Sprintf(", of which others use %d beside the reservations", outside)
		}
		lines = append(lines, text+": by workflows "+strings.Join(of, ", "))
	}
	return strings.Join(lines, "; ")
}

// admit makes a workflow ready to be stored: defaults, then every rule, for each job those of a registration, too.
func (e *Endpoint) admit(ctx context.Context, args *structs.WorkflowRunRequest) (warnings string, err error) {
	w := args.Workflow
	if w == nil {
		return "", structs.Errorf(structs.CodeBadRequest, "the request has no workflow")
	}
	w.Namespace = cmp.Or(w.Namespace, args.Namespace, structs.DefaultNamespace)
	for _, s := range w.Stages {
		if s == nil {
			continue // Validate reports it
		}
		for _, j := range s.Jobs {
			if j != nil && j.Job != nil {
				clearJob(j.Job, e.Router.Region)
			}
		}
	}
	if w.Priority == 0 {
		w.Priority = e.DefaultPriority
	}
	w.Canonicalize()
	if err := w.Validate(); err != nil {
		return "", err
	}
	if err := w.CheckSubmitted(); err != nil {
		return "", err
	}
	if e.MaxPriority > 0 && w.Priority > e.MaxPriority {
		return "", structs.Errorf(structs.CodeBadRequest, "workflow %q: priority %d: the servers of this region allow at most %d (job_max_priority)",
			w.ID, w.Priority, e.MaxPriority)
	}
	if err := w.UnknownLicenses(e.Router.Snapshot().Licenses().Names()); err != nil {
		return "", err
	}
	if e.Router.Snapshot().Namespaces().Get(nil, w.Namespace) == nil {
		return "", structs.MissingNamespace(w.Namespace)
	}
	if !e.Router.Snapshot().NodePools().Has(w.NodePool) {
		return "", structs.Errorf(structs.CodeBadRequest, "workflow %q: node_pool: node pool %q does not exist", w.ID, w.NodePool).
			WithHint("`nomadish node pool list` shows those that do; `nomadish node pool apply` makes one, and so does a node that names it")
	}
	if err := e.checkLend(ctx, w); err != nil {
		return "", err
	}
	lines := w.Warnings()
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			var reply structs.JobValidateReply
			request := &structs.JobRegisterRequest{Job: j.Job, WriteRequest: structs.WriteRequest{Region: e.Router.Region, Namespace: w.Namespace}}
			if err := e.Self(ctx, wire.MethodJobValidate, request, &reply); err != nil {
				return "", err
			}
			if reply.Error != "" {
				return "", structs.Errorf(structs.CodeBadRequest, "workflow %q: stage %q: %s", w.ID, s.Name, reply.Error)
			}
			for line := range strings.Lines(reply.Warnings) {
				lines = append(lines, fmt.Sprintf("job %q: %s", j.Name, strings.TrimSpace(line)))
			}
		}
	}
	if e.Router.Snapshot().SchedulerConfig(nil).RejectJobRegistration {
		return "", structs.Errorf(structs.CodeForbidden, "job registration is switched off").
			WithHint("an operator set RejectJobRegistration in the scheduler configuration")
	}
	return strings.Join(slices.Compact(lines), "\n"), nil
}

// clearJob clears what servers set themselves, so that nobody can bring it along.
func clearJob(j *structs.Job, region string) {
	if j.Region == "" || j.Region == structs.DefaultRegion { // which clients of Nomad's fill in
		j.Region = region
	}
	j.Submitter, j.Submission, j.Workflow, j.ParentID, j.Dispatched, j.Payload = nil, "", nil, "", false, nil
	j.Stop, j.Stable, j.Version, j.VersionTag, j.Status, j.StatusDescription, j.SubmitTime = false, false, 0, nil, "", "", 0
	j.CreateIndex, j.ModifyIndex, j.JobModifyIndex, j.NomadTokenID, j.DispatchIdempotencyToken = 0, 0, 0, "", ""
}

// submitter returns who runs a workflow.
func (e *Endpoint) submitter(ctx context.Context, id, user string) (*structs.Submitter, string, error) {
	what := fmt.Sprintf("workflow %q", id)
	submitter, known, err := e.Identity.Submitter(ctx, what, user)
	if err != nil || submitter == nil || known {
		return submitter, "", err
	}
	return submitter, fmt.Sprintf("user %q is not known to the servers' user database, and counts as a member of no group", user), nil
}

func (e *Endpoint) run(ctx context.Context, args *structs.WorkflowRunRequest) (*structs.WorkflowRunReply, error) {
	warnings, err := e.admit(ctx, args)
	if err != nil {
		return nil, err
	}
	submitter, warning, err := e.submitter(ctx, args.Workflow.ID, args.User)
	if err != nil {
		return nil, err
	}
	return e.started(ctx, args.Workflow.Namespace, args.Workflow.ID, strings.TrimPrefix(warnings+"\n"+warning, "\n"), &structs.WorkflowRunEntry{
		Workflow: args.Workflow, Submitter: submitter, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano(),
	})
}

// started applies the entry of a new run.
func (e *Endpoint) started(ctx context.Context, namespace, id, warnings string, entry *structs.WorkflowRunEntry) (*structs.WorkflowRunReply, error) {
	index, err := e.Applier.Apply(ctx, structs.LogWorkflowRun, entry)
	if err != nil {
		return nil, err
	}
	reply := &structs.WorkflowRunReply{Warnings: strings.TrimSpace(warnings), WriteMeta: structs.WriteMeta{Index: index}}
	if r := e.Router.Snapshot().Workflows(nil).Get(namespace, id); r != nil {
		reply.Run = r.Run
	}
	return reply, nil
}

func (e *Endpoint) plan(ctx context.Context, args *structs.WorkflowRunRequest) (*structs.WorkflowPlanReply, error) {
	warnings, err := e.admit(ctx, args)
	if err != nil {
		return nil, err
	}
	submitter, warning, err := e.submitter(ctx, args.Workflow.ID, args.User)
	if err != nil {
		return nil, err
	}
	select {
	case e.planning <- struct{}{}:
		defer func() { <-e.planning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	plan, err := args.Workflow.Plan()
	if err != nil {
		return nil, err
	}
	snap := e.Router.Snapshot()
	plan.Warnings = strings.TrimSpace(warnings + "\n" + warning)
	if r := snap.Workflows(nil).Get(plan.Namespace, plan.ID); r != nil && r.Alive() {
		plan.Alive = r.Run
	}
	if err := packed(snap, args.Workflow, plan, e.Now()); err != nil {
		return nil, err
	}
	if args.Forecast {
		e.planForecast(ctx, plan, &structs.WorkflowRunEntry{Workflow: args.Workflow, Submitter: submitter, Time: e.Now().UnixNano()})
	}
	return &structs.WorkflowPlanReply{Plan: plan, WriteMeta: structs.WriteMeta{Index: snap.Index()}}, ctx.Err()
}

// oneByOneText warns of a reservation in which the gangs of a stage may have to wait for each other.
const oneByOneText = "no room was found for all gangs of a stage at once where they have their required levels of topology: what is reserved has room for each by itself, " +
	"and one may wait in its stage until others end"

// packed states in a plan how the reservation would lie on nodes at a time, now.
func packed(snap *state.Snapshot, w *structs.Workflow, plan *structs.WorkflowPlan, now time.Time) error {
	run, err := structs.StartRun(w, 1, 0)
	if err != nil {
		return err
	}
	bands := driver.BandsAt(snap, now)
	bands.Priority = w.Priority
	stages := stagesOf(run)
	c := scheduler.ReserveOrPreempt(snap.World(), structs.WorkflowKey(w.Namespace, w.ID), w.NodePool, stages, w.Reserve, true, bands)
	plan.Packing, plan.Posted, plan.Missing, plan.Never = c.Parts, c.Posted, c.Missing, c.Never && !c.Slots // the next week may have others
	if c.PerCore > 0 {
		w.CountMHz(plan, c.CPU, c.PerCore)
	}
	never, some := scheduler.TooSmallForStages(snap.World(), w.NodePool, stages)
	if never != "" && !plan.Never {
		plan.Never, plan.Missing = true, never
	}
	if c.OneByOne {
		some = append(some, oneByOneText)
	}
	plan.Warnings = strings.TrimSpace(plan.Warnings + "\n" + strings.Join(some, "\n"))
	plan.Missing = withCells(snap, w.Namespace, w.NodePool, plan.Missing)
	if plan.Never || plan.Alive > 0 { // others may have what comes free when the run ends
		if plan.Packing, plan.Posted = nil, false; plan.Alive > 0 && !plan.Never {
			plan.Missing = ""
		}
		return nil
	}
	if plan.Leaving = len(c.Stops); c.Preempts {
		plan.Leaving, plan.Preempted = 0, plan.Leaving
	}
	plan.Leavers = leaversOf(snap, c.Stops)
	for i := range plan.Packing {
		if n := snap.Node(nil, plan.Packing[i].NodeID); n != nil {
			plan.Nodes = append(plan.Nodes, n.Name)
		}
	}
	return nil
}

// stagesOf returns the jobs of a run by stage, as it would register them.
func stagesOf(run *structs.WorkflowRun) (list []scheduler.WorkflowStage) {
	specs := run.Workflow.Jobs()
	for _, s := range run.Stages {
		var jobs scheduler.WorkflowStage
		for _, j := range s.Jobs {
			jobs = append(jobs, run.JobOf(s, specs[j.Name], 1))
		}
		list = append(list, jobs)
	}
	return list
}

// stored returns a workflow, or an error that there is none.
func (e *Endpoint) stored(namespace, id string) (*structs.WorkflowRun, error) {
	namespace = cmp.Or(namespace, structs.DefaultNamespace)
	if r := e.Router.Snapshot().Workflows(nil).Get(namespace, id); r != nil {
		return r, nil
	}
	return nil, structs.Errorf(structs.CodeNotFound, "workflow %q in namespace %q: not found", structs.Clip(id, structs.MaxUserBytes), namespace).
		WithHint("`nomadish workflow list` lists those that there are")
}

func (e *Endpoint) retry(ctx context.Context, args *structs.WorkflowRetryRequest) (*structs.WorkflowRunReply, error) {
	r, err := e.stored(args.Namespace, args.ID)
	if err != nil {
		return nil, err
	}
	from := args.Stage
	if from == "" {
		from = firstOpen(r)
	}
	if r.StageIndex(from) < 0 {
		from = firstPart(r, from)
	}
	if r.StageIndex(from) < 0 {
		return nil, structs.Errorf(structs.CodeBadRequest, "workflow %q: it has no stage %q", r.ID, structs.Clip(from, structs.MaxUserBytes)).
			WithHint("its stages are %s", stageNames(r))
	}
	if err := mayBegin(r, from); err != nil {
		return nil, err
	}
	// What is run again is what is stored, by the rules of today.
	warnings, err := e.admit(ctx, &structs.WorkflowRunRequest{Workflow: r.Workflow.Copy()})
	if err != nil {
		return nil, err
	}
	submitter, warning, err := e.submitter(ctx, r.ID, args.User)
	if err != nil {
		return nil, err
	}
	warning = strings.TrimPrefix(warnings+"\n"+warning, "\n")
	return e.started(ctx, r.Namespace, r.ID, warning, &structs.WorkflowRunEntry{
		Namespace: r.Namespace, ID: r.ID, From: from, Submitter: submitter, CAS: true, CheckIndex: r.ModifyIndex, Time: e.Now().UnixNano(),
	})
}

// mayBegin returns an error if a stage cannot be the first that is run again, as one before it has not ended: what that should have done is not there. With
// on_failure = "continue" a failed stage has ended.
func mayBegin(r *structs.WorkflowRun, from string) error {
	for _, s := range r.Stages[:r.StageIndex(from)] {
		ended := s.State == structs.StageComplete || s.State == structs.StageFailed && r.Workflow.OnFailure == structs.OnFailureContinue
		if !ended {
			return structs.Errorf(structs.CodeBadRequest, "workflow %q: stage %q cannot be the first that is run again: stage %q before it is not complete",
				r.ID, from, s.Name).WithHint("begin with that one: `nomadish workflow retry -stage %s %s`", s.Name, r.ID)
		}
	}
	return nil
}

// firstOpen returns the first stage of a run that is not complete; of one that is complete, its first stage.
func firstOpen(r *structs.WorkflowRun) string {
	for _, s := range r.Stages {
		if s.State != structs.StageComplete {
			return s.Name
		}
	}
	return r.Stages[0].Name
}

// firstPart returns the first of the stages that a stage as written is, as its jobs depend on each other; other names as they are.
func firstPart(r *structs.WorkflowRun, stage string) string {
	written := slices.ContainsFunc(r.Workflow.Stages, func(s *structs.WorkflowStage) bool { return s.Name == stage })
	if first := stage + "-1"; written && r.StageIndex(first) >= 0 {
		return first
	}
	return stage
}

// stagesNamed is how many stages an error names.
const stagesNamed = 20

func stageNames(r *structs.WorkflowRun) string {
	var names []string
	for _, s := range r.Stages[:min(len(r.Stages), stagesNamed)] {
		names = append(names, s.Name)
	}
	if more := len(r.Stages) - stagesNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// act pauses, resumes or cancels a workflow.
func (e *Endpoint) act(ctx context.Context, action string, args *structs.WorkflowActionRequest) (*structs.WriteReply, error) {
	r, err := e.mayChange(args)
	if err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogWorkflowState, &structs.WorkflowStateEntry{
		Namespace: r.Namespace, ID: r.ID, Action: action, EvalSeed: e.NewID(), Time: e.Now().UnixNano(),
	})
}

func (e *Endpoint) delete(ctx context.Context, args *structs.WorkflowActionRequest) (*structs.WriteReply, error) {
	r, err := e.mayChange(args)
	if err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogWorkflowDelete, &structs.WorkflowDeleteEntry{Namespace: r.Namespace, ID: r.ID, Time: e.Now().UnixNano()})
}

// mayChange returns the workflow that a request is to change.
func (e *Endpoint) mayChange(args *structs.WorkflowActionRequest) (*structs.WorkflowRun, error) {
	if err := e.Identity.Check(fmt.Sprintf("workflow %q", structs.Clip(args.ID, structs.MaxUserBytes)), args.User); err != nil {
		return nil, err
	}
	return e.stored(args.Namespace, args.ID)
}

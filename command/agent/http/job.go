package httpapi

import (
	"slices"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// jobFields are the extra columns of a list of jobs.
var jobFields = map[string]bool{"meta": false}

func jobList(r *request) (any, error) {
	fields, err := r.fields(jobFields)
	if err != nil {
		return nil, err
	}
	args := structs.ListRequest{QueryOptions: r.opts, Fields: fields}
	return readList(r, wire.MethodJobList, &args, func(a *structs.JobListReply) []*structs.JobListStub { return a.Jobs })
}

// jobParse turns a job file into JSON. Warnings go into a header: Nomad's clients
// take the body for the job itself.
func jobParse(r *request) (any, error) {
	var body struct {
		JobHCL       string
		Variables    string
		Canonicalize bool
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if body.JobHCL == "" {
		return nil, badRequest("JobHCL: missing; it holds the text of the job file")
	}
	if r.s.cfg.ParseJob == nil {
		return nil, unsupported("parsing job files")
	}
	parsed, err := r.s.cfg.ParseJob(r.Context(), body.JobHCL, body.Variables, body.Canonicalize)
	if err != nil {
		return nil, err
	}
	for _, w := range parsed.Warnings {
		r.w.Header().Add("X-Nomad-Warning", printable.EscapeLine(w))
	}
	return parsed.Job, nil
}

// ownJob puts the job of a body into the namespace and region that the request means, and has the body state what the request does: the query comes
// before the body, and that before the job's own. A job without an ID is refused if needsID.
func (r *request) ownJob(job *structs.Job, body *structs.WriteRequest, needsID bool) error {
	w := r.write()
	if job == nil {
		return badRequest("Job: missing; the body must be an object with the job under Job")
	}
	if job.ID == "" && needsID {
		return badRequest("Job.ID: missing")
	}
	if len(r.ids) > 0 && r.id() != job.ID {
		return badRequest("Job.ID %q: does not match %q in the path", job.ID, r.id())
	}
	stated := first(r.query.Get("namespace"), r.Header.Get("X-Nomad-Namespace"), body.Namespace)
	w.Namespace = first(stated, job.Namespace, structs.DefaultNamespace)
	job.Namespace = w.Namespace
	var err error
	if w.Region, err = r.jobRegion(job, body.Region); err != nil {
		return err
	}
	if w.Region != "" && !structs.ValidRegion(w.Region) {
		return badRequest("region %q: must be 1 to 128 letters, digits, dashes or underscores", structs.Clip(w.Region, 64))
	}
	job.Region = w.Region
	if job.Namespace == structs.AllNamespaces {
		return badRequest("namespace %q: a job lives in one namespace", job.Namespace)
	}
	*body = w
	return nil
}

// jobRegion is the region that a job is for: that of the request, or the job's own, or the agent's. Clients
// of Nomad's fill in "global" where a job states none, so that it counts as stated only where
// there is such a region.
func (r *request) jobRegion(job *structs.Job, body string) (string, error) {
	requested := first(r.query.Get("region"), r.Header.Get("X-Nomad-Region"), body)
	own := r.s.cfg.Agent.Self().Region
	switch {
	case job.Multiregion != nil: // whichever server is called sees to all of them
		return first(requested, own), nil
	case requested != "" && job.Region != "" && job.Region != requested && job.Region != structs.DefaultRegion:
		return "", badRequest("Job.Region %q: the request is for region %q; state one of them only", job.Region, requested)
	case requested != "":
		return requested, nil
	case job.Region != structs.DefaultRegion || own == structs.DefaultRegion:
		return first(job.Region, own), nil
	}
	var known structs.StringsReply
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodRegions, &structs.EmptyRequest{}, &known); err != nil {
		return "", err
	}
	if slices.Contains(known.Values, structs.DefaultRegion) {
		return structs.DefaultRegion, nil
	}
	return own, nil
}

func jobRegister(r *request) (any, error) {
	var args structs.JobRegisterRequest
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := r.ownJob(args.Job, &args.WriteRequest, true); err != nil {
		return nil, err
	}
	var err error
	if args.Opportunistic, err = r.bool("opportunistic", args.Opportunistic); err != nil {
		return nil, err
	}
	return changed[structs.JobRegisterReply](r, wire.MethodJobRegister, codec.Given{V: &args})
}

// jobValidate answers 200 whatever the job is: what is wrong with it is in the body, its missing ID too.
func jobValidate(r *request) (any, error) {
	var args structs.JobRegisterRequest
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := r.ownJob(args.Job, &args.WriteRequest, false); err != nil {
		return nil, err
	}
	var reply structs.JobValidateReply
	if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodJobValidate, &args, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

func jobPlan(r *request) (any, error) {
	var args structs.JobPlanRequest
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := r.ownJob(args.Job, &args.WriteRequest, true); err != nil {
		return nil, err
	}
	return changed[structs.JobPlanReply](r, wire.MethodJobPlan, &args)
}

func jobGet(r *request) (any, error) {
	return readByID(r, wire.MethodJobGet, "job", func(a *structs.JobReply) *structs.Job { return a.Job })
}

func jobStop(r *request) (any, error) {
	args := structs.JobDeregisterRequest{JobID: r.id(), WriteRequest: r.write()}
	var err error
	if args.Purge, err = r.bool("purge", false); err != nil {
		return nil, err
	}
	if args.Global, err = r.bool("global", false); err != nil {
		return nil, err
	}
	if args.NoShutdownDelay, err = r.bool("no_shutdown_delay", false); err != nil {
		return nil, err
	}
	priority, err := uintParam(r.query, "eval_priority")
	if err != nil {
		return nil, err
	}
	if priority > structs.JobMaxPriority {
		return nil, badRequest("eval_priority %d: must be from 0 (the job's own) to %d", priority, structs.JobMaxPriority)
	}
	args.EvalPriority = int(priority)
	return changed[structs.JobRegisterReply](r, wire.MethodJobDeregister, &args)
}

func jobVersions(r *request) (any, error) {
	diffs, err := r.bool("diffs", false)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"diff_tag", "diff_version"} {
		if r.query.Get(name) != "" {
			return nil, unsupported("comparing with a chosen version (" + name + ")")
		}
	}
	var reply structs.JobVersionsReply
	args := structs.JobVersionsRequest{ID: r.id(), Diffs: diffs, QueryOptions: r.opts}
	if err := r.read(wire.MethodJobVersions, &args, &reply); err != nil {
		return nil, err
	}
	if len(reply.Versions) == 0 {
		return nil, notFound("job")
	}
	return &reply, nil
}

func jobAllocs(r *request) (any, error) {
	all, err := r.bool("all", false)
	if err != nil {
		return nil, err
	}
	args := structs.JobAllocsRequest{ID: r.id(), All: all, QueryOptions: r.opts}
	return readList(r, wire.MethodJobAllocs, &args, func(a *structs.AllocListReply) []*structs.AllocListStub { return a.Allocations })
}

func jobEvals(r *request) (any, error) {
	return readList(r, wire.MethodJobEvals, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, func(a *structs.EvalListReply) []*structs.Evaluation { return a.Evaluations })
}

func jobSummary(r *request) (any, error) {
	return readByID(r, wire.MethodJobSummary, "job", func(a *structs.JobSummaryReply) *structs.JobSummary { return a.JobSummary })
}

func jobEvaluate(r *request) (any, error) {
	var body struct {
		JobID       string
		EvalOptions struct{ ForceReschedule bool }
	}
	if err := r.decodeOptional(&body); err != nil {
		return nil, err
	}
	if err := r.same("JobID", body.JobID); err != nil {
		return nil, err
	}
	args := structs.JobEvaluateRequest{JobID: r.id(), ForceReschedule: body.EvalOptions.ForceReschedule, WriteRequest: r.write()}
	return changed[structs.JobRegisterReply](r, wire.MethodJobEvaluate, &args)
}

func jobScaleStatus(r *request) (any, error) {
	return readByID(r, wire.MethodJobScaleStatus, "job", func(a *structs.JobScaleStatusReply) *structs.JobScaleStatus { return a.JobScaleStatus })
}

func jobScale(r *request) (any, error) {
	var body struct {
		Count          *int64
		Target         map[string]string
		Message        string
		Error          bool
		Meta           map[string]any
		PolicyOverride bool
		JobModifyIndex uint64
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("JobID", body.Target["Job"]); err != nil {
		return nil, err
	}
	switch {
	case body.Target["Group"] == "":
		return nil, badRequest("Target: must name the group to scale under Group")
	case body.Count != nil && *body.Count < 0:
		return nil, badRequest("Count %d: must not be negative", *body.Count)
	case body.Error && body.Count != nil:
		return nil, badRequest("Count: must be absent in a report of an error")
	}
	args := structs.JobScaleRequest{
		JobID: r.id(), Target: body.Target, Count: body.Count, Message: body.Message, Error: body.Error,
		Meta: body.Meta, PolicyOverride: body.PolicyOverride, WriteRequest: r.write(),
		EnforceIndex: body.JobModifyIndex > 0, JobModifyIndex: body.JobModifyIndex,
	}
	return changed[structs.JobRegisterReply](r, wire.MethodJobScale, &args)
}

func jobRevert(r *request) (any, error) {
	var body struct {
		JobID               string
		JobVersion          *uint64
		EnforcePriorVersion *uint64
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("JobID", body.JobID); err != nil {
		return nil, err
	}
	if body.JobVersion == nil {
		return nil, badRequest("JobVersion: missing; the version to revert to")
	}
	args := structs.JobRevertRequest{
		JobID: r.id(), JobVersion: *body.JobVersion, EnforcePriorVersion: body.EnforcePriorVersion, WriteRequest: r.write(),
	}
	return changed[structs.JobRegisterReply](r, wire.MethodJobRevert, &args)
}

func jobStability(r *request) (any, error) {
	var body struct {
		JobID      string
		JobVersion *uint64
		Stable     bool
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	if err := r.same("JobID", body.JobID); err != nil {
		return nil, err
	}
	if body.JobVersion == nil {
		return nil, badRequest("JobVersion: missing; the version that is meant")
	}
	args := structs.JobStabilityRequest{JobID: r.id(), JobVersion: *body.JobVersion, Stable: body.Stable, WriteRequest: r.write()}
	return changed[structs.JobStabilityReply](r, wire.MethodJobStability, &args)
}

func jobSubmission(r *request) (any, error) {
	if r.query.Get("version") == "" {
		return nil, badRequest("version: missing; name the job's version")
	}
	version, err := uintParam(r.query, "version")
	if err != nil {
		return nil, err
	}
	var reply structs.JobSubmissionReply
	args := structs.JobSubmissionRequest{ID: r.id(), Version: version, QueryOptions: r.opts}
	if err := r.read(wire.MethodJobSubmission, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Submission == nil {
		return nil, notFound("job source")
	}
	return reply.Submission, nil
}

// Deployments come later; until then no job has any.

func noDeployments(r *request) (any, error) {
	if err := r.fixed(); err != nil {
		return nil, err
	}
	return []empty{}, nil
}

func noDeployment(r *request) (any, error) {
	if err := r.fixed(); err != nil {
		return nil, err
	}
	return null, nil
}

// noDeploymentAllocs answers for any ID: Nomad does not report whether there is such a deployment.
func noDeploymentAllocs(r *request) (any, error) { return noDeployments(r) }

func deploymentGet(*request) (any, error) { return nil, notFound("deployment") }

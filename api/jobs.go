package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// List lists jobs.
func (j Jobs) List(ctx context.Context, q *Query) (jobs []*structs.JobListStub, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/jobs", q, &jobs)
	return jobs, meta, err
}

// Info reads a job's newest version.
func (j Jobs) Info(ctx context.Context, id string, q *Query) (job *structs.Job, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id), q, &job)
	return job, meta, err
}

// Register stores a job and has it evaluated.
func (j Jobs) Register(ctx context.Context, req *structs.JobRegisterRequest) (reply *structs.JobRegisterReply, err error) {
	_, err = j.client.Put(ctx, "/v1/jobs", &Query{Namespace: req.Job.Namespace}, req, &reply)
	return reply, err
}

// Plan returns what a registration would do.
func (j Jobs) Plan(ctx context.Context, req *structs.JobPlanRequest) (reply *structs.JobPlanReply, err error) {
	_, err = j.client.Put(ctx, "/v1/job/"+seg(req.Job.ID)+"/plan", &Query{Namespace: req.Job.Namespace}, req, &reply)
	return reply, err
}

// Validate lists what is wrong with a job.
func (j Jobs) Validate(ctx context.Context, job *structs.Job) (reply *structs.JobValidateReply, err error) {
	_, err = j.client.Put(ctx, "/v1/validate/job", &Query{Namespace: job.Namespace}, &structs.JobRegisterRequest{Job: job}, &reply)
	return reply, err
}

// Deregister stops a job, or purges it.
func (j Jobs) Deregister(ctx context.Context, id string, purge bool, q *Query) (reply *structs.JobRegisterReply, err error) {
	q = q.with("purge", strconv.FormatBool(purge))
	_, err = j.client.Delete(ctx, "/v1/job/"+seg(id), q, &reply)
	return reply, err
}

// Evaluate has a job looked at again.
func (j Jobs) Evaluate(ctx context.Context, id string, force bool, q *Query) (reply *structs.JobRegisterReply, err error) {
	body := map[string]any{"JobID": id, "EvalOptions": map[string]bool{"ForceReschedule": force}}
	_, err = j.client.Put(ctx, "/v1/job/"+seg(id)+"/evaluate", q, body, &reply)
	return reply, err
}

// Scale changes a group's count.
func (j Jobs) Scale(ctx context.Context, id, group string, count int64, message string, q *Query) (reply *structs.JobRegisterReply, err error) {
	return j.client.Jobs().ScaleAt(ctx, id, group, count, message, 0, q)
}

// ScaleAt is JobScale, refused unless the job's modify index is index. 0: whatever it is.
func (j Jobs) ScaleAt(
	ctx context.Context, id, group string, count int64, message string, index uint64, q *Query,
) (reply *structs.JobRegisterReply, err error) {
	body := &structs.JobScaleRequest{
		JobID: id, Target: map[string]string{"Group": group, "Job": id}, Count: &count, Message: message,
		EnforceIndex: index > 0, JobModifyIndex: index,
	}
	_, err = j.client.Put(ctx, "/v1/job/"+seg(id)+"/scale", q, body, &reply)
	return reply, err
}

// ScaleStatus counts the instances of a job's groups, and lists how they were scaled, newest first.
func (j Jobs) ScaleStatus(ctx context.Context, id string, q *Query) (status *structs.JobScaleStatus, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/scale", q, &status)
	return status, meta, err
}

// Revert makes an older version the newest.
func (j Jobs) Revert(ctx context.Context, id string, version uint64, q *Query) (reply *structs.JobRegisterReply, err error) {
	body := map[string]any{"JobID": id, "JobVersion": version}
	_, err = j.client.Put(ctx, "/v1/job/"+seg(id)+"/revert", q, body, &reply)
	return reply, err
}

// Stable marks a version of a job as one that runs well, or takes that back. All servers must be of a version that knows how
// (structs.CodeUnsupported).
func (j Jobs) Stable(ctx context.Context, id string, version uint64, stable bool, q *Query) (reply *structs.JobStabilityReply, err error) {
	body := map[string]any{"JobID": id, "JobVersion": version, "Stable": stable}
	_, err = j.client.Put(ctx, "/v1/job/"+seg(id)+"/stable", q, body, &reply)
	return reply, err
}

// Versions lists a job's versions, newest first.
func (j Jobs) Versions(ctx context.Context, id string, diffs bool, q *Query) (reply *structs.JobVersionsReply, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/versions", q.with("diffs", strconv.FormatBool(diffs)), &reply)
	return reply, meta, err
}

// Allocations lists a job's allocations.
func (j Jobs) Allocations(ctx context.Context, id string, all bool, q *Query) (allocs []*structs.AllocListStub, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/allocations", q.with("all", strconv.FormatBool(all)), &allocs)
	return allocs, meta, err
}

// Evaluations lists a job's evaluations.
func (j Jobs) Evaluations(ctx context.Context, id string, q *Query) (evals []*structs.Evaluation, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/evaluations", q, &evals)
	return evals, meta, err
}

// Summary counts a job's allocations.
func (j Jobs) Summary(ctx context.Context, id string, q *Query) (summary *structs.JobSummary, meta Meta, err error) {
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/summary", q, &summary)
	return summary, meta, err
}

// Submission reads the text that a version was registered from.
func (j Jobs) Submission(ctx context.Context, id string, version uint64, q *Query) (sub *structs.JobSubmission, err error) {
	_, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/submission", q.with("version", fmt.Sprint(version)), &sub)
	return sub, err
}

// with returns a copy of q with one more parameter; q may be nil.
func (q *Query) with(key, value string) *Query {
	c := Query{}
	if q != nil {
		c = *q
	}
	params := map[string]string{key: value}
	for k, v := range c.Params {
		params[k] = v
	}
	c.Params = params
	return &c
}

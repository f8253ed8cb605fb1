package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// JobList lists jobs.
func (c *Client) JobList(ctx context.Context, q *Query) (jobs []*structs.JobListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/jobs", q, &jobs)
	return jobs, meta, err
}

// Job reads a job's newest version.
func (c *Client) Job(ctx context.Context, id string, q *Query) (job *structs.Job, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id), q, &job)
	return job, meta, err
}

// JobRegister stores a job and has it evaluated.
func (c *Client) JobRegister(ctx context.Context, req *structs.JobRegisterRequest) (reply *structs.JobRegisterReply, err error) {
	_, err = c.Put(ctx, "/v1/jobs", &Query{Namespace: req.Job.Namespace}, req, &reply)
	return reply, err
}

// JobPlan says what a registration would do.
func (c *Client) JobPlan(ctx context.Context, req *structs.JobPlanRequest) (reply *structs.JobPlanReply, err error) {
	_, err = c.Put(ctx, "/v1/job/"+seg(req.Job.ID)+"/plan", &Query{Namespace: req.Job.Namespace}, req, &reply)
	return reply, err
}

// JobValidate lists what is wrong with a job.
func (c *Client) JobValidate(ctx context.Context, job *structs.Job) (reply *structs.JobValidateReply, err error) {
	_, err = c.Put(ctx, "/v1/validate/job", &Query{Namespace: job.Namespace}, &structs.JobRegisterRequest{Job: job}, &reply)
	return reply, err
}

// JobDeregister stops a job, or purges it.
func (c *Client) JobDeregister(ctx context.Context, id string, purge bool, q *Query) (reply *structs.JobRegisterReply, err error) {
	q = q.with("purge", strconv.FormatBool(purge))
	_, err = c.Delete(ctx, "/v1/job/"+seg(id), q, &reply)
	return reply, err
}

// JobEvaluate has a job looked at again.
func (c *Client) JobEvaluate(ctx context.Context, id string, force bool, q *Query) (reply *structs.JobRegisterReply, err error) {
	body := map[string]any{"JobID": id, "EvalOptions": map[string]bool{"ForceReschedule": force}}
	_, err = c.Put(ctx, "/v1/job/"+seg(id)+"/evaluate", q, body, &reply)
	return reply, err
}

// JobScale changes a group's count.
func (c *Client) JobScale(ctx context.Context, id, group string, count int64, message string, q *Query) (reply *structs.JobRegisterReply, err error) {
	return c.JobScaleAt(ctx, id, group, count, message, 0, q)
}

// JobScaleAt is JobScale, refused unless the job's modify index is index. 0: whatever it is.
func (c *Client) JobScaleAt(
	ctx context.Context, id, group string, count int64, message string, index uint64, q *Query,
) (reply *structs.JobRegisterReply, err error) {
	body := &structs.JobScaleRequest{
		JobID: id, Target: map[string]string{"Group": group, "Job": id}, Count: &count, Message: message,
		EnforceIndex: index > 0, JobModifyIndex: index,
	}
	_, err = c.Put(ctx, "/v1/job/"+seg(id)+"/scale", q, body, &reply)
	return reply, err
}

// JobScaleStatus counts the instances of a job's groups, and lists how they were scaled, newest first.
func (c *Client) JobScaleStatus(ctx context.Context, id string, q *Query) (status *structs.JobScaleStatus, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id)+"/scale", q, &status)
	return status, meta, err
}

// JobRevert makes an older version the newest.
func (c *Client) JobRevert(ctx context.Context, id string, version uint64, q *Query) (reply *structs.JobRegisterReply, err error) {
	body := map[string]any{"JobID": id, "JobVersion": version}
	_, err = c.Put(ctx, "/v1/job/"+seg(id)+"/revert", q, body, &reply)
	return reply, err
}

// JobStable says of a version of a job that it runs well, or takes that back. All servers must be of a version that knows how
// (structs.CodeUnsupported).
func (c *Client) JobStable(ctx context.Context, id string, version uint64, stable bool, q *Query) (reply *structs.JobStabilityReply, err error) {
	body := map[string]any{"JobID": id, "JobVersion": version, "Stable": stable}
	_, err = c.Put(ctx, "/v1/job/"+seg(id)+"/stable", q, body, &reply)
	return reply, err
}

// JobVersions lists a job's versions, newest first.
func (c *Client) JobVersions(ctx context.Context, id string, diffs bool, q *Query) (reply *structs.JobVersionsReply, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id)+"/versions", q.with("diffs", strconv.FormatBool(diffs)), &reply)
	return reply, meta, err
}

// JobAllocs lists a job's allocations.
func (c *Client) JobAllocs(ctx context.Context, id string, all bool, q *Query) (allocs []*structs.AllocListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id)+"/allocations", q.with("all", strconv.FormatBool(all)), &allocs)
	return allocs, meta, err
}

// JobEvals lists a job's evaluations.
func (c *Client) JobEvals(ctx context.Context, id string, q *Query) (evals []*structs.Evaluation, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id)+"/evaluations", q, &evals)
	return evals, meta, err
}

// JobSummary counts a job's allocations.
func (c *Client) JobSummary(ctx context.Context, id string, q *Query) (summary *structs.JobSummary, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/job/"+seg(id)+"/summary", q, &summary)
	return summary, meta, err
}

// JobSubmission reads the text that a version was registered from.
func (c *Client) JobSubmission(ctx context.Context, id string, version uint64, q *Query) (sub *structs.JobSubmission, err error) {
	_, err = c.Get(ctx, "/v1/job/"+seg(id)+"/submission", q.with("version", fmt.Sprint(version)), &sub)
	return sub, err
}

// with gives a copy of q with one more parameter; q may be nil.
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

package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// List lists the workflows by name.
func (w Workflows) List(ctx context.Context, q *Query) (workflows []*structs.WorkflowStub, meta Meta, err error) {
	meta, err = w.client.Get(ctx, "/v1/workflows", q, &workflows)
	return workflows, meta, err
}

// Info reads a workflow with its last run.
func (w Workflows) Info(ctx context.Context, id string, q *Query) (workflow *structs.WorkflowStatus, meta Meta, err error) {
	meta, err = w.client.Get(ctx, "/v1/workflow/"+seg(id), q, &workflow)
	return workflow, meta, err
}

// Run starts a run of a workflow. It is refused while the last one has not ended.
func (w Workflows) Run(ctx context.Context, workflow *structs.Workflow, check Check) (reply *structs.WorkflowRunReply, err error) {
	q := check.query()
	q.Namespace = workflow.Namespace
	_, err = w.client.Put(ctx, "/v1/workflow/"+seg(workflow.ID), q, workflow, &reply)
	return reply, err
}

// Plan returns what a workflow would do, and changes nothing. With forecast it states when its stages would start and end if it were run now, as far as
// that is known within 2 s.
func (w Workflows) Plan(ctx context.Context, workflow *structs.Workflow, forecast bool) (plan *structs.WorkflowPlan, err error) {
	q := &Query{Namespace: workflow.Namespace}
	if forecast {
		q = q.with("forecast", "true")
	}
	_, err = w.client.Put(ctx, "/v1/workflow/"+seg(workflow.ID)+"/plan", q, workflow, &plan)
	return plan, err
}

// Pause keeps further stages of the run from starting. Jobs that were started run on.
func (w Workflows) Pause(ctx context.Context, id string, q *Query) error {
	return w.act(ctx, id, "pause", q)
}

// Resume ends a pause.
func (w Workflows) Resume(ctx context.Context, id string, q *Query) error {
	return w.act(ctx, id, "resume", q)
}

// Cancel ends the run, and stops all of its jobs.
func (w Workflows) Cancel(ctx context.Context, id string, q *Query) error {
	return w.act(ctx, id, "cancel", q)
}

func (w Workflows) act(ctx context.Context, id, action string, q *Query) error {
	_, err := w.client.Put(ctx, "/v1/workflow/"+seg(id)+"/"+action, q, nil, nil)
	return err
}

// Retry runs a workflow again from a stage on; an empty one is the first that is not complete.
func (w Workflows) Retry(ctx context.Context, id, stage string, q *Query) (reply *structs.WorkflowRunReply, err error) {
	if stage != "" {
		q = q.with("stage", stage)
	}
	_, err = w.client.Put(ctx, "/v1/workflow/"+seg(id)+"/retry", q, nil, &reply)
	return reply, err
}

// Delete deletes a workflow whose run has ended. The jobs of its runs stay.
func (w Workflows) Delete(ctx context.Context, id string, q *Query) error {
	_, err := w.client.Delete(ctx, "/v1/workflow/"+seg(id), q, nil)
	return err
}

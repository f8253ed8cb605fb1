package httpapi

import (
	"cmp"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func workflowList(r *request) (any, error) {
	return readList(r, wire.MethodWorkflowList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.WorkflowListReply) []*structs.WorkflowStub { return a.Workflows })
}

func workflowGet(r *request) (any, error) {
	var reply structs.WorkflowGetReply
	if err := r.read(wire.MethodWorkflowGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	w := reply.Workflow
	if w == nil {
		return nil, notFound("workflow")
	}
	w.Parts, w.LentTo, w.Stages, w.Previous = list(w.Parts), list(w.LentTo), list(w.Stages), list(w.Previous)
	for i := range w.Stages {
		w.Stages[i].Jobs = list(w.Stages[i].Jobs)
	}
	for i := range w.LentTo {
		w.LentTo[i].Allocs = list(w.LentTo[i].Allocs)
	}
	return w, nil
}

// workflowRequest reads the workflow of the body, which the path names.
func (r *request) workflowRequest() (*structs.WorkflowRunRequest, error) {
	args := &structs.WorkflowRunRequest{Workflow: &structs.Workflow{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.Workflow); err != nil {
		return nil, err
	}
	w := args.Workflow
	if err := r.same("ID", w.ID); err != nil {
		return nil, err
	}
	if ns := r.query.Get("namespace"); ns != "" && w.Namespace != "" && w.Namespace != ns {
		return nil, badRequest("Namespace %q: does not match %q in the query", w.Namespace, ns)
	}
	w.ID, w.Namespace = r.id(), cmp.Or(w.Namespace, args.Namespace)
	var err error
	args.CAS, args.CheckIndex, err = r.check()
	return args, err
}

// workflowRun runs the workflow of the body.
func workflowRun(r *request) (any, error) {
	args, err := r.workflowRequest()
	if err != nil {
		return nil, err
	}
	return changed[structs.WorkflowRunReply](r, wire.MethodWorkflowRun, args)
}

func workflowPlan(r *request) (any, error) {
	args, err := r.workflowRequest()
	if err != nil {
		return nil, err
	}
	if args.Forecast, err = r.bool("forecast", false); err != nil {
		return nil, err
	}
	var reply structs.WorkflowPlanReply
	if err := r.change(wire.MethodWorkflowPlan, args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	reply.Plan.Stages, reply.Plan.Packing, reply.Plan.Nodes = list(reply.Plan.Stages), list(reply.Plan.Packing), list(reply.Plan.Nodes)
	return reply.Plan, nil
}

// workflowAction returns what calls a method that takes nothing but the name of a workflow.
func workflowAction(method string) func(*request) (any, error) {
	return func(r *request) (any, error) {
		return written(r, method, &structs.WorkflowActionRequest{ID: r.id(), WriteRequest: r.write()})
	}
}

// workflowRetry runs the workflow again from the stage of the parameter on.
func workflowRetry(r *request) (any, error) {
	return changed[structs.WorkflowRunReply](r, wire.MethodWorkflowRetry, &structs.WorkflowRetryRequest{ID: r.id(), Stage: r.query.Get("stage"), WriteRequest: r.write()})
}

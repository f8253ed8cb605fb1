package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func (r *request) evalFilter() structs.EvalListRequest {
	return structs.EvalListRequest{Job: r.query.Get("job"), Status: r.query.Get("status"), QueryOptions: r.opts}
}

func evalList(r *request) (any, error) {
	args := r.evalFilter()
	return readList(r, wire.MethodEvalList, &args, func(a *structs.EvalListReply) []*structs.Evaluation { return a.Evaluations })
}

func evalDelete(r *request) (any, error) {
	var body struct {
		EvalIDs []string
		Filter  string
	}
	if err := r.decode(&body); err != nil {
		return nil, err
	}
	var reply structs.EvalDeleteReply
	args := structs.EvalDeleteRequest{EvalIDs: body.EvalIDs, Filter: body.Filter, WriteRequest: r.write()}
	if err := r.change(wire.MethodEvalDelete, &args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return struct{ Count int }{reply.Count}, nil
}

func evalCount(r *request) (any, error) {
	var reply structs.CountReply
	args := r.evalFilter()
	if err := r.read(wire.MethodEvalCount, &args, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

func evalGet(r *request) (any, error) {
	related, err := r.bool("related", false)
	if err != nil {
		return nil, err
	}
	var reply structs.EvalReply
	args := structs.EvalGetRequest{ID: r.id(), Related: related, QueryOptions: r.opts}
	if err := r.read(wire.MethodEvalGet, &args, &reply); err != nil {
		return nil, err
	}
	if reply.Eval == nil {
		return nil, notFound("eval")
	}
	return reply.Eval, nil
}

func evalAllocs(r *request) (any, error) {
	return readList(r, wire.MethodEvalAllocs, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, func(a *structs.AllocListReply) []*structs.AllocListStub { return a.Allocations })
}

package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func flowList(r *request) (any, error) {
	var reply structs.FlowListReply
	if err := r.read(wire.MethodFlowList, &structs.ListRequest{QueryOptions: r.opts}, &reply, &reply.QueryMeta); err != nil {
		return nil, err
	}
	return list(reply.Flows), nil
}

func flowGet(r *request) (any, error) {
	var reply structs.FlowReply
	if err := r.read(wire.MethodFlowGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply, &reply.QueryMeta); err != nil {
		return nil, err
	}
	if reply.Flow == nil {
		return nil, notFound("flow")
	}
	return reply.Flow, nil
}

// flowUpsert makes or replaces the flow of the path.
func flowUpsert(r *request) (any, error) {
	args := structs.FlowUpsertRequest{Flow: &structs.Flow{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.Flow); err != nil {
		return nil, err
	}
	if name := args.Flow.Name; name != "" && name != r.id() {
		return nil, badRequest("Name %q: does not match %q in the path", name, r.id())
	}
	args.Flow.Name = r.id()
	var err error
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	return written(r, wire.MethodFlowUpsert, &args)
}

func flowDelete(r *request) (any, error) {
	return written(r, wire.MethodFlowDelete, &structs.FlowDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}

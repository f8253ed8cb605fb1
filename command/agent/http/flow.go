package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func flowList(r *request) (any, error) {
	return readList(r, wire.MethodFlowList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.FlowListReply) []*structs.Flow { return a.Flows })
}

func flowGet(r *request) (any, error) {
	return readByID(r, wire.MethodFlowGet, "flow", func(a *structs.FlowReply) *structs.Flow { return a.Flow })
}

// flowUpsert makes or replaces the flow of the path.
func flowUpsert(r *request) (any, error) {
	args := structs.FlowUpsertRequest{Flow: &structs.Flow{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.Flow); err != nil {
		return nil, err
	}
	err := r.setName(&args.Flow.Name)
	if err != nil {
		return nil, err
	}
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	return written(r, wire.MethodFlowUpsert, &args)
}

func flowDelete(r *request) (any, error) {
	return written(r, wire.MethodFlowDelete, &structs.FlowDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}

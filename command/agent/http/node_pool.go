package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func poolList(r *request) (any, error) {
	return readList(r, wire.MethodNodePoolList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.NodePoolListReply) []*structs.NodePool { return a.NodePools })
}

func poolGet(r *request) (any, error) {
	return readByID(r, wire.MethodNodePoolGet, "node pool", func(a *structs.NodePoolReply) *structs.NodePool { return a.NodePool })
}

// poolUpsert makes a node pool or replaces it. Its body is the pool; where the path names it, the body need not.
func poolUpsert(r *request) (any, error) {
	args := structs.NodePoolUpsertRequest{NodePool: &structs.NodePool{}, WriteRequest: r.write()}
	if err := r.decode(args.NodePool); err != nil {
		return nil, err
	}
	if len(r.ids) > 0 {
		if err := r.setName(&args.NodePool.Name); err != nil {
			return nil, err
		}
	}
	return written(r, wire.MethodNodePoolUpsert, &args)
}

func poolDelete(r *request) (any, error) {
	return written(r, wire.MethodNodePoolDelete, &structs.NodePoolDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}

func poolNodes(r *request) (any, error) {
	fields, err := r.fields(nodeFields)
	if err != nil {
		return nil, err
	}
	args := structs.NodePoolListRequest{Name: r.id(), ListRequest: structs.ListRequest{QueryOptions: r.opts, Fields: fields}}
	return readList(r, wire.MethodNodePoolNodes, &args, func(a *structs.NodeListReply) []*structs.NodeListStub { return a.Nodes })
}

// poolJobs lists the jobs that name the pool: those of "all" are the ones that name it.
func poolJobs(r *request) (any, error) {
	fields, err := r.fields(jobFields)
	if err != nil {
		return nil, err
	}
	args := structs.NodePoolListRequest{Name: r.id(), ListRequest: structs.ListRequest{QueryOptions: r.opts, Fields: fields}}
	return readList(r, wire.MethodNodePoolJobs, &args, func(a *structs.JobListReply) []*structs.JobListStub { return a.Jobs })
}

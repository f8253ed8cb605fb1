package node

import (
	"context"
	"iter"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// lastPoolEntry is the newest type of log entry that node pools take.
const lastPoolEntry = structs.LogNodePoolDelete

func (e *Endpoint) poolList(ctx context.Context, args *structs.ListRequest) (*structs.NodePoolListReply, error) {
	reply := &structs.NodePoolListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.NodePools, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.NodePools().List(ws, args.Prefix, args.Reverse),
			func(p *structs.NodePool) string { return p.Name })
		return snap.TableIndex(state.TableNodePools), err
	})
}

func (e *Endpoint) poolGet(ctx context.Context, args *structs.IDRequest) (*structs.NodePoolReply, error) {
	reply := &structs.NodePoolReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.NodePool = snap.NodePools().Get(ws, args.ID)
		if reply.NodePool == nil {
			return snap.TableIndex(state.TableNodePools), nil
		}
		return reply.NodePool.ModifyIndex, nil
	})
}

func (e *Endpoint) poolNodes(ctx context.Context, args *structs.NodePoolListRequest) (*structs.NodeListReply, error) {
	reply := &structs.NodeListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		if !snap.NodePools().Has(args.Name) {
			return 0, rpc.NotFound("node pool", args.Name)
		}
		var err error
		reply.Nodes, err = pageNodes(&args.ListRequest, &reply.QueryMeta, snap.Nodes(ws, args.Prefix, args.Reverse), args.Name)
		return snap.TableIndex(state.TableNodes), err
	})
}

// pageNodes takes a page of those nodes that are in a pool.
func pageNodes(args *structs.ListRequest, meta *structs.QueryMeta, nodes iter.Seq[*structs.Node], pool string) ([]*structs.NodeListStub, error) {
	return rpc.Page(&args.QueryOptions, meta, func(yield func(*structs.NodeListStub) bool) {
		for n := range nodes {
			if n.InPool(pool) && !yield(nodeStub(n, args.Fields)) {
				return
			}
		}
	}, func(n *structs.NodeListStub) string { return n.ID })
}

// poolJobs lists the jobs that name a pool: those of the pool all are the ones that name it, not all jobs.
func (e *Endpoint) poolJobs(ctx context.Context, args *structs.NodePoolListRequest) (*structs.JobListReply, error) {
	reply := &structs.JobListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		if !snap.NodePools().Has(args.Name) {
			return 0, rpc.NotFound("node pool", args.Name)
		}
		var err error
		reply.Jobs, err = rpc.PageJobs(&args.ListRequest, &reply.QueryMeta, ws, snap, args.Name)
		return max(snap.WrittenIndex(state.TableJobs), snap.WrittenIndex(state.TableSummaries)), err
	})
}

func (e *Endpoint) poolUpsert(ctx context.Context, args *structs.NodePoolUpsertRequest) (*structs.WriteReply, error) {
	pool := args.NodePool
	if err := pool.Validate(); err != nil {
		return nil, err
	}
	if c := pool.SchedulerConfiguration; c != nil && *c != (structs.NodePoolSchedulerConfiguration{}) {
		return nil, structs.Errorf(structs.CodeBadRequest, "node pool %q: scheduler_config: all node pools of a region have one scheduler configuration here", pool.Name).
			WithHint("leave it out; `nomadish operator scheduler set-config` sets that of the region")
	}
	pool.SchedulerConfiguration = nil
	return rpc.Applied(ctx, e.Applier, structs.LogNodePoolUpsert, &structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{pool}, Time: e.Now().UnixNano()})
}

func (e *Endpoint) poolDelete(ctx context.Context, args *structs.NodePoolDeleteRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogNodePoolDelete, &structs.NodePoolDeleteEntry{Name: args.Name, Time: e.Now().UnixNano()})
}

// makeNodePool makes the pool that a node names, if there is none of the name. While some server of the region does not know node
// pools the node does without: the leader makes it later.
func (e *Endpoint) makeNodePool(ctx context.Context, name string) error {
	if e.Router.Snapshot().NodePools().Get(nil, name) != nil {
		return nil
	}
	_, err := e.applyBounded(ctx, structs.LogNodePoolUpsert, &structs.NodePoolUpsertEntry{
		Pools: []*structs.NodePool{{Name: name}}, IfAbsent: true, Time: e.Now().UnixNano(),
	})
	if structs.CodeOf(err) == structs.CodeUnsupported {
		return nil
	}
	return err
}

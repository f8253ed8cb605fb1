// Package virtualcluster answers the RPC methods of virtual clusters: what namespaces own of a region's devices. It must never
// decide what can be owned: that is for the state to say, when an edit is applied.
package virtualcluster

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lastEntry is the newest type of log entry that virtual clusters take.
const lastEntry = structs.LogExchangeWithdraw

// Endpoint answers the methods of virtual clusters.
type Endpoint struct{ rpc.Parts }

// New returns a new endpoint.
func New(p rpc.Parts) *Endpoint { return &Endpoint{p} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodVirtualClusterList, Handler: rpc.VersionedRead(r, lastEntry, e.list)},
		{Name: wire.MethodVirtualClusterGet, Handler: rpc.VersionedRead(r, lastEntry, e.get)},
		{Name: wire.MethodVirtualClusterUpsert, Handler: rpc.VersionedWrite(r, lastEntry, e.upsert)},
		{Name: wire.MethodVirtualClusterDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.delete)},
		{Name: wire.MethodVirtualClusterShift, Handler: rpc.VersionedWrite(r, lastEntry, e.shift)},
		{Name: wire.MethodVirtualClusterPoints, Handler: rpc.VersionedWrite(r, lastEntry, e.points)},
		{Name: wire.MethodExchangeList, Handler: rpc.VersionedRead(r, lastEntry, e.exchangeList)},
		{Name: wire.MethodExchangePut, Handler: rpc.VersionedWrite(r, lastEntry, e.exchangePut)},
		{Name: wire.MethodExchangeWithdraw, Handler: rpc.VersionedWrite(r, lastEntry, e.exchangeWithdraw)},
	}
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.VirtualClusterListReply, error) {
	reply := &structs.VirtualClusterListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		list, err := rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.VirtualClusters(ws).List(args.Prefix, args.Reverse),
			func(v *structs.VirtualCluster) string { return v.Name })
		reply.VirtualClusters = []*structs.VirtualClusterStatus{}
		views := scheduler.ClaimViews(snap.World(), "", false)
		for _, v := range list {
			reply.VirtualClusters = append(reply.VirtualClusters, snap.VirtualClusters(nil).Status(v, views))
		}
		return snap.ClaimsIndex(ws), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.VirtualClusterReply, error) {
	reply := &structs.VirtualClusterReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.VirtualCluster = nil
		if v := snap.VirtualClusters(ws).Get(args.ID); v != nil {
			reply.VirtualCluster = snap.VirtualClusters(nil).Status(v, scheduler.ClaimViews(snap.World(), v.Name, true))
		}
		return snap.ClaimsIndex(ws), nil
	})
}

func (e *Endpoint) upsert(ctx context.Context, args *structs.VirtualClusterUpsertRequest) (*structs.WriteReply, error) {
	if err := args.VirtualCluster.Validate(); err != nil {
		return nil, err
	}
	if err := args.VirtualCluster.ValidateCounts(); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogVirtualClusterUpsert, &structs.VirtualClusterUpsertEntry{
		VirtualCluster: args.VirtualCluster, WhenFree: args.WhenFree, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano(), EvalSeed: e.NewID(),
	})
}

func (e *Endpoint) delete(ctx context.Context, args *structs.VirtualClusterDeleteRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogVirtualClusterDelete, &structs.VirtualClusterDeleteEntry{Name: args.Name, Time: e.Now().UnixNano(), EvalSeed: e.NewID()})
}

// Package namespace answers the RPC methods of namespaces, the tenants of a region. It must never look at
// what is in them: that a namespace is not in use is decided by the state, when it is deleted.
package namespace

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// lastEntry is the newest type of log entry that namespaces take.
const lastEntry = structs.LogNamespaceDelete

// Endpoint answers the methods of namespaces.
type Endpoint struct{ rpc.Parts }

// New returns a new endpoint.
func New(p rpc.Parts) *Endpoint { return &Endpoint{p} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodNamespaceList, Handler: rpc.VersionedRead(r, lastEntry, e.list)},
		{Name: wire.MethodNamespaceGet, Handler: rpc.VersionedRead(r, lastEntry, e.get)},
		{Name: wire.MethodNamespaceUpsert, Handler: rpc.VersionedWrite(r, lastEntry, e.upsert)},
		{Name: wire.MethodNamespaceDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.delete)},
	}
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.NamespaceListReply, error) {
	reply := &structs.NamespaceListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Namespaces, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.Namespaces().List(ws, args.Prefix, args.Reverse),
			func(n *structs.Namespace) string { return n.Name })
		return snap.TableIndex(state.TableNamespaces), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.NamespaceReply, error) {
	reply := &structs.NamespaceReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		if reply.Definition = snap.Namespaces().Get(ws, args.ID); reply.Definition != nil {
			return reply.Definition.ModifyIndex, nil
		}
		return snap.TableIndex(state.TableNamespaces), nil
	})
}

func (e *Endpoint) upsert(ctx context.Context, args *structs.NamespaceUpsertRequest) (*structs.WriteReply, error) {
	if err := args.Definition.Validate(); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogNamespaceUpsert, &structs.NamespaceUpsertEntry{Namespace: args.Definition, Time: e.Now().UnixNano()})
}

func (e *Endpoint) delete(ctx context.Context, args *structs.NamespaceDeleteRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogNamespaceDelete, &structs.NamespaceDeleteEntry{Name: args.Name, Time: e.Now().UnixNano()})
}

// Package license answers the RPC methods of licenses. It must never decide what may be used: that is for the scheduler.
package license

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lastEntry is the newest type of log entry that licenses take.
const lastEntry = structs.LogLicenseDelete

// Endpoint answers the methods of licenses.
type Endpoint struct{ rpc.Parts }

// New returns a new endpoint.
func New(p rpc.Parts) *Endpoint { return &Endpoint{p} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodLicenseList, Handler: rpc.VersionedRead(r, lastEntry, e.list)},
		{Name: wire.MethodLicenseGet, Handler: rpc.VersionedRead(r, lastEntry, e.get)},
		{Name: wire.MethodLicenseUpsert, Handler: rpc.VersionedWrite(r, lastEntry, e.upsert)},
		{Name: wire.MethodLicenseDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.delete)},
	}
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.LicenseListReply, error) {
	reply := &structs.LicenseListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Licenses, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, func(yield func(*structs.LicenseStub) bool) {
			for l := range snap.Licenses().List(nil, args.Prefix, args.Reverse) {
				if !yield(scheduler.LicenseUse(snap.World(), l)) {
					return
				}
			}
		}, func(l *structs.LicenseStub) string { return l.Name })
		return snap.Licenses().UseIndex(ws), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.LicenseReply, error) {
	reply := &structs.LicenseReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.License = nil
		if l := snap.Licenses().Get(nil, args.ID); l != nil {
			reply.License = scheduler.LicenseUsers(snap.World(), l)
		}
		return snap.Licenses().UseIndex(ws), nil
	})
}

func (e *Endpoint) upsert(ctx context.Context, args *structs.LicenseUpsertRequest) (*structs.WriteReply, error) {
	if err := args.License.Validate(); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogLicenseUpsert, &structs.LicenseUpsertEntry{
		License: args.License, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano(),
	})
}

func (e *Endpoint) delete(ctx context.Context, args *structs.LicenseDeleteRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogLicenseDelete, &structs.LicenseDeleteEntry{
		Name: args.Name, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano(),
	})
}

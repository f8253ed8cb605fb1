package rpc

import (
	"context"
	"fmt"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// routing is the part of every request that says who may answer it.
type routing struct {
	Region     string
	AllowStale bool
}

// write registers a method that only the leader answers.
func write[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.routed(false, wire.Unary(f))
}

// fromServers registers a write that only servers of this region may ask for, as far as
// their certificates tell: what workers do.
func fromServers[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return serversOnly(e, write(e, f))
}

// serversOnly lets only servers of this region call, as far as their certificates tell.
func serversOnly(e *Endpoints, allowed wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		if call.Session == nil || call.Session.Peer().Server(e.Region) {
			return allowed(ctx, call)
		}
		peer := call.Session.Peer()
		if e.told.First(call.Method+" "+peer.String(), e.Now()) {
			e.Logger.Warn("refused a call that only servers may make; more of this kind are not logged for an hour",
				"method", call.Method, "from", call.Session.Addr(), "certificate", peer)
		}
		return structs.Errorf(structs.CodeForbidden, "%s is for the servers of region %q: a certificate %s may not call it", call.Method, e.Region, peer)
	}
}

// read registers a read: the leader answers it, having made sure that it still
// leads, or any server if the caller allows stale answers.
func read[A, R any](e *Endpoints, f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return e.routed(true, wire.Unary(f))
}

// local registers a method that every server answers for itself.
func local[A, R any](f func(ctx context.Context, args *A) (*R, error)) wire.Handler {
	return wire.Unary(f)
}

func (e *Endpoints) routed(isRead bool, here wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		var r routing
		if err := call.Args(&r); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		if r.Region != "" && r.Region != e.Region {
			return structs.Errorf(structs.CodeBadRequest, "region %q: not known; this cluster's is %q", r.Region, e.Region)
		}
		if isRead && r.AllowStale {
			return here(ctx, call)
		}
		if e.Cluster.IsLeader() {
			if !isRead {
				return here(ctx, call)
			}
			if err := e.Cluster.Verify(); err == nil {
				return here(ctx, call)
			}
		}
		addr, id := e.Cluster.Leader()
		if addr == "" || e.Cluster.IsLeader() {
			return noLeader()
		}
		session, err := e.Pool.Session(ctx, addr)
		if err != nil {
			return structs.Errorf(structs.CodeNoLeader, "leader %s at %s: %w", id, addr, err).WithHint("try again")
		}
		if err := call.Relay(ctx, session); err != nil {
			return fmt.Errorf("leader %s: %w", id, err)
		}
		return nil
	}
}

func noLeader() error {
	return structs.Errorf(structs.CodeNoLeader, "No cluster leader").WithHint("an election may be going on; try again")
}

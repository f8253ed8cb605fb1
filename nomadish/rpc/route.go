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

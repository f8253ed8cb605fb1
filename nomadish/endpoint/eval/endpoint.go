// Package eval answers the RPC methods of evaluations: what the state contains about them, and how workers of all servers take them from
// the leader and hand in their plans.
package eval

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// Plans judges and commits plans; it answers only on the leader.
type Plans interface {
	Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error)
	// Withdraw takes requests out of the queue and ends the reservations of nodes.
	Withdraw(ctx context.Context, requests []*structs.RequestUpdate, nodes []string) error
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router  *rpc.Router
	Applier rpc.Applier
	Broker  queue.Evaluations
	Plans   Plans
	Now     func() time.Time
	Logger  hclog.Logger
}

// Endpoint answers the methods of evaluations and plans.
type Endpoint struct {
	Deps
	leased *leased
}

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{Deps: d, leased: newLeased()} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	forWorkers := func(here wire.Handler) wire.Handler { return r.OwnRegion(r.Routed(false, here)) }
	return []rpc.Method{
		{Name: wire.MethodEvalList, Handler: rpc.Read(r, e.list)},
		{Name: wire.MethodEvalCount, Handler: rpc.Read(r, e.count)},
		{Name: wire.MethodEvalGet, Handler: rpc.Read(r, e.get)},
		{Name: wire.MethodEvalAllocs, Handler: rpc.Read(r, e.allocs)},
		{Name: wire.MethodEvalDelete, Handler: rpc.Write(r, e.delete)},
		{Name: wire.MethodEvalDequeue, Handler: forWorkers(e.dequeue)},
		{Name: wire.MethodEvalAck, Handler: forWorkers(e.answered(func(id, token string) error { return e.Broker.Ack(id, token) }))},
		{Name: wire.MethodEvalNack, Handler: forWorkers(e.answered(func(id, token string) error { return e.Broker.Nack(id, token) }))},
		{Name: wire.MethodEvalUpdate, Handler: r.OwnRegion(rpc.Write(r, e.update))},
		{Name: wire.MethodPlanSubmit, Handler: r.OwnRegion(rpc.Write(r, e.planSubmit))},
	}
}

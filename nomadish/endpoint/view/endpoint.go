// Package view answers the RPC methods that look at the whole cluster: its topology, its queue, why a job is placed as it is, searches
// and the stream of events. None of them writes.
package view

import (
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router *rpc.Router
	// Typical returns what the policy least-fragmentation keeps room for when a job is explained;
	// nil: it packs.
	Typical func(*state.Snapshot, *structs.Job, *structs.SchedulerConfiguration) *scheduler.Typical
	Now     func() time.Time
}

// Endpoint answers the methods that look at the whole cluster.
type Endpoint struct {
	Deps
	queue *queueview.Reader
	// explaining has a slot for each caller that makes an explanation.
	explaining chan struct{}
}

// New returns a new endpoint.
func New(d Deps) *Endpoint {
	return &Endpoint{Deps: d, queue: queueview.NewReader(d.Now), explaining: make(chan struct{}, maxExplaining)}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodTopology, Handler: rpc.Read(r, e.topology)},
		{Name: wire.MethodQueue, Handler: rpc.Read(r, e.queueList)},
		{Name: wire.MethodJobExplain, Handler: rpc.Read(r, e.jobExplain)},
		{Name: wire.MethodAllocExplain, Handler: rpc.Read(r, e.allocExplain)},
		{Name: wire.MethodEventStream, Handler: r.Routed(false, wire.Streaming(e.eventStream))},
		{Name: wire.MethodSearch, Handler: rpc.Read(r, e.search)},
	}
}

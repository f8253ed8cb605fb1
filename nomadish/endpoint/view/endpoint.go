// Package view answers the RPC methods that look at the whole cluster: its topology, its queue, why a job is placed as it is, searches
// and the stream of events. None of them writes.
package view

import (
	"context"
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
	// Forecasts are those of the queue; nil: there are none.
	Forecasts Forecasts
	Now       func() time.Time
}

// Forecasts are the forecasts that this server makes of the queue.
type Forecasts interface {
	Horizon() time.Duration
	// Last returns the last one, which must not be changed; nil: there is none, and why.
	Last() (f *structs.Forecast, why string)
	// Await waits until there is one of a state after an index, none can be made, or ctx ends.
	Await(ctx context.Context, after uint64)
	// Job makes one of a job alone, of the newest state.
	Job(ctx context.Context, job structs.NamespacedID) (*structs.Forecast, error)
	// Moved waits for latest starts that move after those that the caller has seen, and returns where to go on from; from 0 on: from now on.
	Moved(ctx context.Context, from uint64) (moves []*structs.ForecastMove, next uint64, err error)
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
	if d.Forecasts == nil {
		d.Forecasts = noForecasts{}
	}
	return &Endpoint{Deps: d, queue: queueview.NewReader(d.Now), explaining: make(chan struct{}, maxExplaining)}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodTopology, Handler: rpc.Read(r, e.topology)},
		{Name: wire.MethodQueue, Handler: rpc.Read(r, e.queueList)},
		{Name: wire.MethodForecast, Handler: rpc.Read(r, e.forecast)},
		{Name: wire.MethodJobExplain, Handler: rpc.Read(r, e.jobExplain)},
		{Name: wire.MethodAllocExplain, Handler: rpc.Read(r, e.allocExplain)},
		{Name: wire.MethodEventStream, Handler: r.Routed(false, wire.Streaming(e.eventStream))},
		{Name: wire.MethodSearch, Handler: rpc.Read(r, e.search)},
	}
}

// Package alloc answers the RPC methods of allocations and of the history of those that are gone.
package alloc

import (
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
)

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router  *rpc.Router
	Applier rpc.Applier
	NewID   func() string
	Now     func() time.Time
}

// Endpoint answers the methods of allocations.
type Endpoint struct{ Deps }

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{d} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodAllocList, Handler: rpc.Read(r, e.list)},
		{Name: wire.MethodAllocGet, Handler: rpc.Read(r, e.get)},
		{Name: wire.MethodAllocStop, Handler: rpc.Write(r, e.stop)},
		{Name: wire.MethodAllocSuspend, Handler: rpc.Write(r, e.suspend)},
		{Name: wire.MethodHistoryList, Handler: rpc.Read(r, e.history)},
	}
}

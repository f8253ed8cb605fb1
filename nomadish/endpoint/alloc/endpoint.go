// Package alloc answers the RPC methods of allocations and of the history of those that are gone.
package alloc

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
)

// Endpoint answers the methods of allocations.
type Endpoint struct{ rpc.Parts }

// New returns a new endpoint.
func New(p rpc.Parts) *Endpoint { return &Endpoint{p} }

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

package agent

import (
	"context"

	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/internal/wire"
)

// localNode answers calls about the allocations of the agent's own node.
type localNode interface {
	httpapi.Backend
	// Serves reports whether a call is about them.
	Serves(args any) bool
}

// ownNode is the backend of an agent that runs a client and no server: what is about its own node it answers by
// itself, and servers answer the rest. With TLS, servers refuse to answer a client's agent about allocations.
type ownNode struct {
	httpapi.Backend
	local localNode
}

// Call implements httpapi.Backend.
func (o ownNode) Call(ctx context.Context, method string, args, reply any) error {
	if o.local.Serves(args) {
		return o.local.Call(ctx, method, args, reply)
	}
	return o.Backend.Call(ctx, method, args, reply)
}

// Stream implements httpapi.Backend.
func (o ownNode) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	if o.local.Serves(args) {
		return o.local.Stream(ctx, method, args)
	}
	return o.Backend.Stream(ctx, method, args)
}

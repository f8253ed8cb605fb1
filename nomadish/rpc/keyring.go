package rpc

import (
	"context"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// Keyrings changes the keys of this server's gossip pools, on all their members.
type Keyrings interface {
	Change(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error)
}

// ownAgent lets only the agent that the server runs in call: no client or other server may
// ask for the keys, whatever its certificate.
func ownAgent(allowed wire.Handler) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		if call.Session == nil {
			return allowed(ctx, call)
		}
		return structs.Errorf(structs.CodeForbidden, "%s is for the server's own agent", call.Method).
			WithHint("ask the HTTP API of an agent that runs a server")
	}
}

func (e *Endpoints) keyring(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error) {
	return e.Keyrings.Change(ctx, args)
}

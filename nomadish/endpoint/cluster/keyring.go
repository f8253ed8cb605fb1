package cluster

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Keyrings changes the keys of this server's gossip pools, on all their members.
type Keyrings interface {
	Change(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error)
}

func (e *Endpoint) keyring(ctx context.Context, args *structs.KeyringRequest) (*structs.KeyringReply, error) {
	return e.Keyrings.Change(ctx, args)
}

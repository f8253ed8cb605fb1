package agent

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// remote passes calls on to the servers: the backend of an agent that runs none.
type remote struct {
	pool    *wire.Pool
	servers func() []string
	next    atomic.Uint32 // where to begin: the server that answered last
}

func newRemote(servers func() []string, secure *wire.TLS, logger hclog.Logger) (httpapi.Backend, func()) {
	r := &remote{pool: wire.NewPool(wire.Config{Logger: logger.Named("rpc"), TLS: secure}, nil), servers: servers}
	return r, r.pool.Close
}

// session reaches a server. Only what could not be reached at all is tried
// elsewhere: of a call that was sent, nobody knows whether it was carried out.
func (r *remote) session(ctx context.Context) (*wire.Session, error) {
	addrs := r.servers()
	if len(addrs) == 0 {
		return nil, structs.Errorf(structs.CodeNoLeader, "no server is known; name one under client { servers }")
	}
	first := r.next.Load()
	var errs []error
	for i := range addrs {
		at := first + uint32(i) //nolint:gosec // wraps, as it may
		s, err := r.pool.Session(ctx, addrs[at%uint32(len(addrs))])
		if err == nil {
			r.next.Store(at)
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, structs.Errorf(structs.CodeNoLeader, "no server can be reached: %w", errors.Join(errs...))
}

// Call implements httpapi.Backend.
func (r *remote) Call(ctx context.Context, method string, args, reply any) error {
	s, err := r.session(ctx)
	if err != nil {
		return err
	}
	return s.Call(ctx, method, args, reply)
}

// Stream implements httpapi.Backend.
func (r *remote) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	s, err := r.session(ctx)
	if err != nil {
		return nil, err
	}
	return s.Stream(ctx, method, args)
}

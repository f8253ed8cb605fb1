package rpc

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoints) registerCheck(mux *wire.Mux) {
	mux.Handle(wire.MethodCheck, read(e, e.check))
}

// check checks one consistent snapshot of this server's state. One check is at work at a
// time: of a large state it may take a core for half a minute.
func (e *Endpoints) check(ctx context.Context, _ *structs.CheckRequest) (*structs.CheckReply, error) {
	select {
	case e.checking <- struct{}{}:
		defer func() { <-e.checking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	from, snap := e.Now(), e.Store.Snapshot()
	report, err := check.Run(ctx, snap, check.Options{Now: from})
	if err != nil {
		return nil, err
	}
	report.Server, report.Hash, report.Took = e.Name, snap.Hash(), e.Now().Sub(from)
	return &structs.CheckReply{Report: report, QueryMeta: e.contact(max(1, snap.Index()))}, nil
}

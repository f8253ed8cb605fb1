package operator

import (
	"context"

	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/structs"
)

// check checks one consistent snapshot of this server's state. One check is at work at a
// time: of a large state it may take a core for half a minute.
func (e *Endpoint) check(ctx context.Context, _ *structs.CheckRequest) (*structs.CheckReply, error) {
	select {
	case e.checking <- struct{}{}:
		defer func() { <-e.checking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	from, snap := e.Now(), e.Router.Snapshot()
	report, err := check.Run(ctx, snap, check.Options{Now: from})
	if err != nil {
		return nil, err
	}
	report.Server, report.Hash, report.Took = e.Router.Name, snap.Hash(), e.Now().Sub(from)
	return &structs.CheckReply{Report: report, QueryMeta: e.Router.Contact(max(1, snap.Index()))}, nil
}

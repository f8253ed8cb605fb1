package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Check has the leader check one consistent snapshot of its state, or with q.Stale the
// server that is called. It may take half a minute where there is a million allocations.
func (o Operator) Check(ctx context.Context, q *Query) (report *structs.CheckReport, err error) {
	_, err = o.client.Get(ctx, "/v1/operator/check", q, &report)
	return report, err
}

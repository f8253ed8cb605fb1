package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Queue reads a page of the queue in its order: of a node pool, or (empty) of all, one
// after the other. A page has at most 1,000 entries: Meta.NextToken is where the next
// begins. Query.Prefix is that of job IDs.
func (c *Client) Queue(ctx context.Context, nodePool string, q *Query) (entries []*structs.QueueEntry, meta Meta, err error) {
	if nodePool != "" {
		q = q.with("node_pool", nodePool)
	}
	meta, err = c.Get(ctx, "/v1/queue", q, &entries)
	return entries, meta, err
}

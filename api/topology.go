package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Topology reads a page of nodes with the numbers of their devices and free cells; with
// details every cell, every device and who holds it. A page has at most 1,000 nodes
// (128 with details): Meta.NextToken is where the next begins.
func (c *Client) Topology(ctx context.Context, details bool, q *Query) (t *structs.Topology, meta Meta, err error) {
	if details {
		q = q.with("details", "true")
	}
	meta, err = c.Get(ctx, "/v1/topology", q, &t)
	return t, meta, err
}

// Topology reads one node, by its ID, with details.
func (n Nodes) Topology(ctx context.Context, id string, q *Query) (t *structs.Topology, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/topology/node/"+seg(id), q, &t)
	return t, meta, err
}

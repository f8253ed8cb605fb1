package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// NodePoolList lists the node pools by name, those that are built in among them.
func (c *Client) NodePoolList(ctx context.Context, q *Query) (pools []*structs.NodePool, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/node/pools", q, &pools)
	return pools, meta, err
}

// NodePool reads a node pool.
func (c *Client) NodePool(ctx context.Context, name string, q *Query) (pool *structs.NodePool, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/node/pool/"+seg(name), q, &pool)
	return pool, meta, err
}

// NodePoolApply makes a node pool, or replaces the one of its name.
func (c *Client) NodePoolApply(ctx context.Context, pool *structs.NodePool) error {
	_, err := c.Put(ctx, "/v1/node/pools", nil, pool, nil)
	return err
}

// NodePoolDelete deletes a node pool that no node is in and no job that is not dead names.
func (c *Client) NodePoolDelete(ctx context.Context, name string) error {
	_, err := c.Delete(ctx, "/v1/node/pool/"+seg(name), nil, nil)
	return err
}

// NodePoolNodes lists the nodes of a pool.
func (c *Client) NodePoolNodes(ctx context.Context, name string, q *Query) (nodes []*structs.NodeListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/node/pool/"+seg(name)+"/nodes", q, &nodes)
	return nodes, meta, err
}

// NodePoolJobs lists the jobs that name a pool.
func (c *Client) NodePoolJobs(ctx context.Context, name string, q *Query) (jobs []*structs.JobListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/node/pool/"+seg(name)+"/jobs", q, &jobs)
	return jobs, meta, err
}

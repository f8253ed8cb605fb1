package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// List lists the node pools by name, those that are built in among them.
func (n NodePools) List(ctx context.Context, q *Query) (pools []*structs.NodePool, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/pools", q, &pools)
	return pools, meta, err
}

// Info reads a node pool.
func (n NodePools) Info(ctx context.Context, name string, q *Query) (pool *structs.NodePool, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/pool/"+seg(name), q, &pool)
	return pool, meta, err
}

// Register makes a node pool, or replaces the one of its name.
func (n NodePools) Register(ctx context.Context, pool *structs.NodePool) error {
	_, err := n.client.Put(ctx, "/v1/node/pools", nil, pool, nil)
	return err
}

// Delete deletes a node pool that no node is in and no job that is not dead names.
func (n NodePools) Delete(ctx context.Context, name string) error {
	_, err := n.client.Delete(ctx, "/v1/node/pool/"+seg(name), nil, nil)
	return err
}

// ListNodes lists the nodes of a pool.
func (n NodePools) ListNodes(ctx context.Context, name string, q *Query) (nodes []*structs.NodeListStub, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/pool/"+seg(name)+"/nodes", q, &nodes)
	return nodes, meta, err
}

// ListJobs lists the jobs that name a pool.
func (n NodePools) ListJobs(ctx context.Context, name string, q *Query) (jobs []*structs.JobListStub, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/pool/"+seg(name)+"/jobs", q, &jobs)
	return jobs, meta, err
}

package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// List lists the flows by name.
func (f Flows) List(ctx context.Context, q *Query) (flows []*structs.Flow, meta Meta, err error) {
	meta, err = f.client.Get(ctx, "/v1/flows", q, &flows)
	return flows, meta, err
}

// Info reads a flow.
func (f Flows) Info(ctx context.Context, name string, q *Query) (flow *structs.Flow, meta Meta, err error) {
	meta, err = f.client.Get(ctx, "/v1/flow/"+seg(name), q, &flow)
	return flow, meta, err
}

// Register makes a flow, or replaces the one of its name. It returns the index of the change.
func (f Flows) Register(ctx context.Context, flow *structs.Flow, check Check) (index uint64, err error) {
	meta, err := f.client.Put(ctx, "/v1/flow/"+seg(flow.Name), check.query(), flow, nil)
	return meta.Index, err
}

// Delete deletes a flow that no project follows.
func (f Flows) Delete(ctx context.Context, name string) error {
	_, err := f.client.Delete(ctx, "/v1/flow/"+seg(name), nil, nil)
	return err
}

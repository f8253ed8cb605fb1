package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Explain returns why a job is placed as it is, what holds the rest of it, and the
// smallest changes that would place it. group is one of its groups; "": all.
func (j Jobs) Explain(ctx context.Context, id, group string, q *Query) (x *structs.JobExplanation, meta Meta, err error) {
	if group != "" {
		q = q.with("group", group)
	}
	meta, err = j.client.Get(ctx, "/v1/job/"+seg(id)+"/explain", q, &x)
	return x, meta, err
}

// Explain returns why an allocation, by its ID, is where it is, and what it may lose
// that to.
func (a Allocations) Explain(ctx context.Context, id string, q *Query) (x *structs.AllocExplanation, meta Meta, err error) {
	meta, err = a.client.Get(ctx, "/v1/allocation/"+seg(id)+"/explain", q, &x)
	return x, meta, err
}

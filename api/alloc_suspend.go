package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Suspend suspends an allocation's tasks in place. It keeps its memory and disk, and
// releases everything else until it is resumed.
func (a Allocations) Suspend(ctx context.Context, id string) error {
	_, err := a.client.Put(ctx, "/v1/client/allocation/"+seg(id)+"/suspend", nil, nil, nil)
	return err
}

// Resume lets a suspended allocation go on when there is room for it; the
// evaluation that it names reports whether there is.
func (a Allocations) Resume(ctx context.Context, id string) (reply *structs.AllocStopReply, err error) {
	_, err = a.client.Put(ctx, "/v1/client/allocation/"+seg(id)+"/resume", nil, nil, &reply)
	return reply, err
}

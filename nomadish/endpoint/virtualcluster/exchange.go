package virtualcluster

import (
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) shift(ctx context.Context, args *structs.VirtualClusterShiftRequest) (*structs.WriteReply, error) {
	if err := args.Shift.Validate(); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogVirtualClusterShift, &structs.VirtualClusterShiftEntry{Name: args.Name, Shift: args.Shift, Time: e.Now().UnixNano(), EvalSeed: e.NewID()})
}

func (e *Endpoint) points(ctx context.Context, args *structs.VirtualClusterPointsRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogVirtualClusterPoints, &structs.VirtualClusterPointsEntry{Name: args.Name, Points: args.Points, Time: e.Now().UnixNano()})
}

func (e *Endpoint) exchangeList(ctx context.Context, args *structs.ListRequest) (*structs.ExchangeListReply, error) {
	reply := &structs.ExchangeListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Exchanges, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.VirtualClusters(ws).Exchanges(), func(x *structs.Exchange) string { return x.ID })
		slices.SortStableFunc(reply.Exchanges, func(a, b *structs.Exchange) int { return a.From.Compare(b.From) })
		return snap.TableIndex(state.TableExchanges), err
	})
}

func (e *Endpoint) exchangePut(ctx context.Context, args *structs.ExchangePutRequest) (*structs.ExchangePutReply, error) {
	now := args.Exchange
	if err := now.Validate(); err != nil {
		return nil, err
	}
	now.ID = e.NewID()
	index, err := e.Applier.Apply(ctx, structs.LogExchangePut, &structs.ExchangePutEntry{Exchange: now, Time: e.Now().UnixNano()})
	if err != nil {
		return nil, err
	}
	return &structs.ExchangePutReply{ID: now.ID, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoint) exchangeWithdraw(ctx context.Context, args *structs.ExchangeWithdrawRequest) (*structs.WriteReply, error) {
	return rpc.Applied(ctx, e.Applier, structs.LogExchangeWithdraw, &structs.ExchangeWithdrawEntry{ID: args.ID, Time: e.Now().UnixNano()})
}

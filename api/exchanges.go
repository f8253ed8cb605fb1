package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// List lists the offers and bids that are not settled yet.
func (x Exchanges) List(ctx context.Context, q *Query) (exchanges []*structs.Exchange, meta Meta, err error) {
	meta, err = x.client.Get(ctx, "/v1/exchanges", q, &exchanges)
	return exchanges, meta, err
}

// Offer offers cells of a virtual cluster to others, for points. It returns the ID of the offer.
func (x Exchanges) Offer(ctx context.Context, offer *structs.Exchange) (id string, err error) {
	return x.put(ctx, "offer", offer)
}

// Bid bids points for cells of others. It returns the ID of the bid.
func (x Exchanges) Bid(ctx context.Context, bid *structs.Exchange) (id string, err error) {
	return x.put(ctx, "bid", bid)
}

func (x Exchanges) put(ctx context.Context, what string, exchange *structs.Exchange) (string, error) {
	var reply struct{ ID string }
	_, err := x.client.Put(ctx, "/v1/exchange/"+what, nil, exchange, &reply)
	return reply.ID, err
}

// Withdraw takes an offer or a bid back before it is settled.
func (x Exchanges) Withdraw(ctx context.Context, id string) error {
	_, err := x.client.Delete(ctx, "/v1/exchange/"+seg(id), nil, nil)
	return err
}

// Shift moves cells of a virtual cluster from one time to another, as its owner may.
func (v VirtualClusters) Shift(ctx context.Context, namespace string, shift *structs.CellShift) error {
	_, err := v.client.Put(ctx, "/v1/virtual-cluster/"+seg(namespace)+"/shift", nil, shift, nil)
	return err
}

// AddPoints gives a virtual cluster points, or takes some if points is negative.
func (v VirtualClusters) AddPoints(ctx context.Context, namespace string, points int64) error {
	_, err := v.client.Put(ctx, "/v1/virtual-cluster/"+seg(namespace)+"/points", nil, map[string]int64{"Points": points}, nil)
	return err
}

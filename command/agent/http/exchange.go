package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// virtualClusterPoints gives a virtual cluster as many points as the body says, or takes them if there are fewer than none.
func virtualClusterPoints(r *request) (any, error) {
	var body struct{ Points *int64 }
	if err := r.decodeKnown(&body); err != nil {
		return nil, err
	}
	if body.Points == nil {
		return nil, badRequest("Points: missing; it is how many are added, or taken if it is negative")
	}
	args := structs.VirtualClusterPointsRequest{Name: r.id(), Points: *body.Points, WriteRequest: r.write()}
	return written(r, wire.MethodVirtualClusterPoints, &args)
}

func virtualClusterShift(r *request) (any, error) {
	args := structs.VirtualClusterShiftRequest{Name: r.id(), WriteRequest: r.write()}
	if err := r.decodeKnown(&args.Shift); err != nil {
		return nil, err
	}
	return written(r, wire.MethodVirtualClusterShift, &args)
}

func exchangeList(r *request) (any, error) {
	return readList(r, wire.MethodExchangeList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.ExchangeListReply) []*structs.Exchange { return a.Exchanges })
}

func exchangeOffer(r *request) (any, error) { return r.exchangePut(false) }
func exchangeBid(r *request) (any, error)   { return r.exchangePut(true) }

// exchangePut makes the offer or the bid of the body, and answers with its ID.
func (r *request) exchangePut(bid bool) (any, error) {
	args := structs.ExchangePutRequest{WriteRequest: r.write()}
	if err := r.decodeKnown(&args.Exchange); err != nil {
		return nil, err
	}
	args.Exchange.Bid = bid
	var reply structs.ExchangePutReply
	if err := r.change(wire.MethodExchangePut, &args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return map[string]string{"ID": reply.ID}, nil
}

func exchangeWithdraw(r *request) (any, error) {
	return written(r, wire.MethodExchangeWithdraw, &structs.ExchangeWithdrawRequest{ID: r.id(), WriteRequest: r.write()})
}

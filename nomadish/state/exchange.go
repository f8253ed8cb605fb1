package state

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// maxExchanges bounds the offers and bids that are not settled.
const maxExchanges = 10_000

// Event types of the stream.
const (
	eventExchangePut       = "ExchangePut"
	eventExchangeWithdrawn = "ExchangeWithdrawn"
)

// Exchanges walks the offers and bids that are not settled, by ID.
func (v VirtualClusters) Exchanges(ws *WatchSet) iter.Seq[*structs.Exchange] {
	return many[structs.Exchange](v.snap.v, ws, false, TableExchanges, byPrefix, "")
}

// VirtualClusterPoints grants points to a virtual cluster, or takes some.
func (w *Writer) VirtualClusterPoints(index uint64, e *structs.VirtualClusterPointsEntry) error {
	return w.commit(index, e.Time, eventVirtualClusterUpserted, "", func(x *txn) error {
		was := get[structs.VirtualCluster](x, TableVirtualClusters, byID, e.Name)
		if was == nil {
			return missing("virtual cluster", e.Name)
		}
		if e.Points > structs.MaxPoints || e.Points < -structs.MaxPoints || was.Points+e.Points < 0 || was.Points+e.Points > structs.MaxPoints {
			return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: it has %d points: %d more would not be 0 to %d", e.Name, was.Points, e.Points,
				int64(structs.MaxPoints))
		}
		now := was.Copy()
		now.Points += e.Points
		now.ModifyIndex = x.index
		x.put(TableVirtualClusters, now)
		note(x, KindVirtualCluster, now.Name, was, now)
		return nil
	})
}

// resolveOne finds the chain of one quota, and returns the quota with it.
func (t claimTable) resolveOne(q structs.CellQuota) (*structs.CellQuota, error) {
	own := q
	own.Chain, own.Pinned = "", nil
	if err := scheduler.ResolveCells(t.x.edit.World(), []*structs.CellQuota{&own}, t.config().SiteLevels()); err != nil {
		return nil, err
	}
	return &own, nil
}

// ExchangePut makes an offer or a bid, open until its cells change hands.
func (w *Writer) ExchangePut(index uint64, e *structs.ExchangePutEntry) error {
	return w.commit(index, e.Time, eventExchangePut, "", func(x *txn) error {
		t, now := claimTable{x}, e.Exchange
		if err := now.Validate(); err != nil {
			return err
		}
		owner := get[structs.VirtualCluster](x, TableVirtualClusters, byID, now.Owner)
		if owner == nil {
			return missing("virtual cluster", now.Owner)
		}
		if err := checkID("exchange", now.ID); err != nil {
			return err
		}
		if now.From.UnixNano() <= t.time() {
			return structs.Errorf(structs.CodeBadRequest, "exchange: from must be to come: it is settled at %s", now.From.UTC().Format(timeFormat))
		}
		if countRows[structs.Exchange](x, TableExchanges) >= maxExchanges {
			return structs.Errorf(structs.CodeTooLarge, "exchange: there are %d offers and bids, and no more are allowed", maxExchanges)
		}
		cells, err := t.resolveOne(now.Cells)
		if err != nil {
			return structs.Errorf(structs.CodeBadRequest, "exchange: %w", err)
		}
		now.Cells, now.From, now.Until, now.Index, now.CreatedAt = *cells, now.From.UTC(), now.Until.UTC(), x.index, x.now
		if err := t.checkExchange(owner, &now); err != nil {
			return err
		}
		x.put(TableExchanges, &now)
		note(x, KindExchange, now.ID, nil, &now)
		return nil
	})
}

// checkExchange refuses offers of what is not owned, bids beyond a balance, and bids that could only be met by one's own offers.
func (t claimTable) checkExchange(owner *structs.VirtualCluster, now *structs.Exchange) error {
	if !now.Bid {
		has := owner.LeastOwned(&now.Cells, now.From.UnixNano(), now.Until.UnixNano()) - t.offered(owner.Name, &now.Cells, now.From.UnixNano(), now.Until.UnixNano())
		if has < now.Cells.Count {
			return structs.Errorf(structs.CodeConflict, "offer: virtual cluster %q owns %d such cells that are neither pinned nor offered yet in that time, not %d", owner.Name, max(has, 0),
				now.Cells.Count)
		}
		return nil
	}
	if int64(now.Cells.Count) > owner.Points/now.Points {
		return structs.Errorf(structs.CodeConflict, "bid: virtual cluster %q has %d points: %d cells for %d each are too many", owner.Name, owner.Points, now.Cells.Count,
			now.Points).WithHint("an operator grants points with `nomadish vc points`")
	}
	own, others := 0, 0
	for o := range rows[structs.Exchange](t.x, false, TableExchanges, byID) {
		if !o.Bid && o.Meets(now) {
			if o.Owner == now.Owner {
				own++
			} else {
				others++
			}
		}
	}
	if own > 0 && others == 0 {
		return structs.Errorf(structs.CodeConflict, "bid: the only offer of these cells for that time is of virtual cluster %q itself", now.Owner).
			WithHint("`nomadish vc withdraw` takes an offer back")
	}
	return nil
}

// offered returns how many cells an owner has offered for some time of an interval.
func (t claimTable) offered(owner string, cells *structs.CellQuota, from, until int64) (n int) {
	for o := range rows[structs.Exchange](t.x, false, TableExchanges, byID) {
		if !o.Bid && o.Owner == owner && o.Cells.SameCells(cells) && o.From.UnixNano() < until && from < o.Until.UnixNano() {
			n += o.Cells.Count
		}
	}
	return n
}

// ExchangeWithdraw takes an offer or a bid back.
func (w *Writer) ExchangeWithdraw(index uint64, e *structs.ExchangeWithdrawEntry) error {
	return w.commit(index, e.Time, eventExchangeWithdrawn, "", func(x *txn) error {
		was := get[structs.Exchange](x, TableExchanges, byID, e.ID)
		if was == nil {
			return missing("exchange", e.ID)
		}
		if was.From.UnixNano() <= (claimTable{x}).time() {
			return structs.Errorf(structs.CodeConflict, "exchange %s: it is being settled since %s", e.ID, was.From.Format(timeFormat))
		}
		x.drop(TableExchanges, was)
		note(x, KindExchange, was.ID, was, nil)
		return nil
	})
}

// settleExchanges settles all offers and bids that are due: by time, kind, level and size.
func (t claimTable) settleExchanges(now int64) {
	var due []*structs.Exchange
	for o := range rows[structs.Exchange](t.x, false, TableExchanges, byID) {
		if o.From.UnixNano() <= now {
			due = append(due, o)
		}
	}
	slices.SortFunc(due, func(a, b *structs.Exchange) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Cells.NodePool, b.Cells.NodePool), strings.Compare(a.Cells.Kind, b.Cells.Kind),
			strings.Compare(a.Cells.Level, b.Cells.Level), cmp.Compare(a.Cells.Size, b.Cells.Size), a.Until.Compare(b.Until), cmp.Compare(a.Index, b.Index))
	})
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].Meets(due[0]) {
			n++
		}
		t.settleOne(due[:n])
		due = due[n:]
	}
}

// settleOne settles offers and bids of the same cells and times.
func (t claimTable) settleOne(list []*structs.Exchange) {
	x := t.x
	var offers, bids []*structs.Exchange
	for _, o := range list {
		if o.Bid {
			bids = append(bids, o)
		} else {
			offers = append(offers, o)
		}
		x.drop(TableExchanges, o)
		note(x, KindExchange, o.ID, o, nil)
	}
	offers = t.owned(offers)
	sales := structs.Settle(offers, bids, func(owner string) int64 {
		if v := get[structs.VirtualCluster](x, TableVirtualClusters, byID, owner); v != nil {
			return v.Points
		}
		return 0
	})
	for _, s := range sales {
		points := int64(s.Cells) * s.Bid.Points
		t.trade(s, s.Offer.Owner, -s.Cells, points)
		t.trade(s, s.Bid.Owner, s.Cells, -points)
	}
}

// owned returns offers of the same cells and times, in their order, each of no more cells than its owner still owns in that time: an edit
// may have taken some away since the offer was made.
func (t claimTable) owned(offers []*structs.Exchange) (list []*structs.Exchange) {
	offered := map[string]int{}
	for _, o := range offers {
		v := get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, o.Owner)
		if v == nil {
			continue
		}
		own := *o
		own.Cells.Count = min(o.Cells.Count, v.LeastOwned(&o.Cells, o.From.UnixNano(), o.Until.UnixNano())-offered[o.Owner])
		offered[o.Owner] += own.Cells.Count
		list = append(list, &own)
	}
	return list
}

// trade books a sale for one of the two: its cells and points more, or less.
func (t claimTable) trade(s structs.Sale, owner string, count int, points int64) {
	was := get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, owner)
	if was == nil {
		return // a virtual cluster with open exchanges is not deleted
	}
	of := s.Offer
	c := change(&of.Cells, count, of.From.UnixNano(), of.Until.UnixNano(), structs.CellChangeWon)
	c.With, c.Points = of.Owner, max(points, -points)
	if count < 0 {
		c.Why, c.With = structs.CellChangeSold, s.Bid.Owner
	}
	now := was.Copy()
	now.Points += points
	now.Changes = append(now.Changes, c)
	now.ModifyIndex = t.x.index
	t.x.put(TableVirtualClusters, now)
	note(t.x, KindVirtualCluster, owner, was, now)
}

package claimtable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// maxExchanges bounds the offers and bids that are not settled.
const maxExchanges = 10_000

// grant grants points to a virtual cluster, or takes some.
func (x Edit) grant(e *structs.VirtualClusterPointsEntry) error {
	was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, e.Name)
	if was == nil {
		return memtable.Missing("virtual cluster", e.Name)
	}
	if e.Points > structs.MaxPoints || e.Points < -structs.MaxPoints || was.Points+e.Points < 0 || was.Points+e.Points > structs.MaxPoints {
		return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: it has %d points: %d more would not be 0 to %d", e.Name, was.Points, e.Points,
			int64(structs.MaxPoints))
	}
	now := was.Copy()
	now.Points += e.Points
	now.ModifyIndex = x.Index
	x.Put(VirtualClusters, now)
	note(x, VirtualClusters, now.Name, was, now)
	return nil
}

// resolveOne finds the chain of one quota, and returns the quota with it.
func (x Edit) resolveOne(q structs.CellQuota) (*structs.CellQuota, error) {
	own := q
	own.Chain, own.Pinned = "", nil
	if err := scheduler.ResolveCells(x.world(), []*structs.CellQuota{&own}, x.Sites); err != nil {
		return nil, err
	}
	return &own, nil
}

// putExchange makes an offer or a bid, open until its cells change hands.
func (x Edit) putExchange(e *structs.ExchangePutEntry) error {
	now := e.Exchange
	if err := now.Validate(); err != nil {
		return err
	}
	owner := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, now.Owner)
	if owner == nil {
		return memtable.Missing("virtual cluster", now.Owner)
	}
	if err := memtable.CheckKey("exchange", now.ID); err != nil {
		return err
	}
	if now.From.UnixNano() <= x.time() {
		return structs.Errorf(structs.CodeBadRequest, "exchange: from must be to come: it is settled at %s", now.From.UTC().Format(timeFormat))
	}
	if memtable.Count(x.Rows, Exchanges) >= maxExchanges {
		return structs.Errorf(structs.CodeTooLarge, "exchange: there are %d offers and bids, and no more are allowed", maxExchanges)
	}
	cells, err := x.resolveOne(now.Cells)
	if err != nil {
		return structs.Errorf(structs.CodeBadRequest, "exchange: %w", err)
	}
	now.Cells, now.From, now.Until, now.Index, now.CreatedAt = *cells, now.From.UTC(), now.Until.UTC(), x.Index, x.Now
	if err := x.checkExchange(owner, &now); err != nil {
		return err
	}
	x.Put(Exchanges, &now)
	note(x, Exchanges, now.ID, nil, &now)
	return nil
}

// checkExchange refuses offers of what is not owned, bids beyond a balance, and bids that could only be met by one's own offers.
func (x Edit) checkExchange(owner *structs.VirtualCluster, now *structs.Exchange) error {
	if !now.Bid {
		has := owner.LeastOwned(&now.Cells, now.From.UnixNano(), now.Until.UnixNano()) - x.offered(owner.Name, &now.Cells, now.From.UnixNano(), now.Until.UnixNano())
		if has < now.Cells.Count {
			return structs.Errorf(structs.CodeConflict, "offer: virtual cluster %q owns %s neither pinned nor offered yet in that time, not %d", owner.Name, countText(int64(max(has, 0)), "such cell"),
				now.Cells.Count)
		}
		return nil
	}
	if int64(now.Cells.Count) > owner.Points/now.Points {
		return structs.Errorf(structs.CodeConflict, "bid: virtual cluster %q has %s, too few for %s at %s each", owner.Name,
			countText(owner.Points, "point"), countText(int64(now.Cells.Count), "cell"), countText(now.Points, "point")).WithHint("an operator grants points with `nomadish vc points`")
	}
	own, others := 0, 0
	for o := range memtable.Rows[structs.Exchange](x.Rows, false, Exchanges, byID) {
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

// countText returns a number of things, which it names.
func countText(n int64, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprintf("%d %s", n, of)
}

// offered returns how many cells an owner has offered for some time of an interval.
func (x Edit) offered(owner string, cells *structs.CellQuota, from, until int64) (n int) {
	for o := range memtable.Rows[structs.Exchange](x.Rows, false, Exchanges, byID) {
		if !o.Bid && o.Owner == owner && o.Cells.SameCells(cells) && o.From.UnixNano() < until && from < o.Until.UnixNano() {
			n += o.Cells.Count
		}
	}
	return n
}

// withdraw takes an offer or a bid back.
func (x Edit) withdraw(e *structs.ExchangeWithdrawEntry) error {
	was := memtable.Get[structs.Exchange](x.Rows, Exchanges, byID, e.ID)
	if was == nil {
		return memtable.Missing("exchange", e.ID)
	}
	if was.From.UnixNano() <= x.time() {
		return structs.Errorf(structs.CodeConflict, "exchange %s: it is being settled since %s", e.ID, was.From.Format(timeFormat))
	}
	x.Drop(Exchanges, was)
	note(x, Exchanges, was.ID, was, nil)
	return nil
}

// settleExchanges settles all offers and bids that are due: by time, kind, level and size.
func (x Edit) settleExchanges(now int64) {
	var due []*structs.Exchange
	for o := range memtable.Rows[structs.Exchange](x.Rows, false, Exchanges, byID) {
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
		x.settleOne(due[:n])
		due = due[n:]
	}
}

// settleOne settles offers and bids of the same cells and times.
func (x Edit) settleOne(list []*structs.Exchange) {
	var offers, bids []*structs.Exchange
	for _, o := range list {
		if o.Bid {
			bids = append(bids, o)
		} else {
			offers = append(offers, o)
		}
		x.Drop(Exchanges, o)
		note(x, Exchanges, o.ID, o, nil)
	}
	offers = x.owned(offers)
	sales := structs.Settle(offers, bids, func(owner string) int64 {
		if v := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, owner); v != nil {
			return v.Points
		}
		return 0
	})
	for _, s := range sales {
		points := int64(s.Cells) * s.Bid.Points
		x.trade(s, s.Offer.Owner, -s.Cells, points)
		x.trade(s, s.Bid.Owner, s.Cells, -points)
	}
}

// owned returns offers of the same cells and times, in their order, each of no more cells than its owner still owns in that time: an edit
// may have taken some away since the offer was made.
func (x Edit) owned(offers []*structs.Exchange) (list []*structs.Exchange) {
	offered := map[string]int{}
	for _, o := range offers {
		v := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, o.Owner)
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
func (x Edit) trade(s structs.Sale, owner string, count int, points int64) {
	was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, owner)
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
	now.ModifyIndex = x.Index
	x.Put(VirtualClusters, now)
	note(x, VirtualClusters, owner, was, now)
}

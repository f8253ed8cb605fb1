package structs

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Reasons for which the number of cells changes for a time.
const (
	CellChangeShift = "shift" // the owner's own, from one time to another
	CellChangeWon   = "won"   // bought in an exchange
	CellChangeSold  = "sold"  // sold in an exchange
)

// CellChange is a number of cells more, or less, for a time. It is added to what the cells and windows give then.
type CellChange struct {
	Cells CellQuota // as resolved; Count may be negative
	From  int64     // Unix nanoseconds
	Until int64
	Why   string // one of the CellChange constants
	// With is the other owner of an exchange, and Points are what it paid or was paid for all these cells. Changes that servers of an
	// earlier version made have neither.
	With   string `json:",omitempty" codec:",omitempty"`
	Points int64  `json:",omitempty" codec:",omitempty"`
}

// in reports whether a change holds at a time.
func (c *CellChange) in(t int64) bool { return c.From <= t && t < c.Until }

// in reports whether a window holds at a time, in Unix nanoseconds.
func (w *CellWindow) in(t int64) bool { return w.From.UnixNano() <= t && t < w.To.UnixNano() }

// Claim returns the claim on all cells of a quota whose chain was found, without an order.
func (c *CellQuota) Claim() CellClaim {
	parts := strings.SplitN(c.Kind, "/", 4)
	for len(parts) < 4 {
		parts = append(parts, "")
	}
	return CellClaim{
		NodePool: c.NodePool, Vendor: parts[0], Type: parts[1], Model: parts[2], Tree: parts[3], Chain: c.Chain, Level: c.Level, Size: c.Size, Count: c.Count,
		Pins: slices.Clone(c.Pinned),
	}
}

// SameCells reports whether two quotas whose chains were found are of the same cells.
func (c *CellQuota) SameCells(o *CellQuota) bool {
	a, b := c.Claim(), o.Claim()
	return a.SameCells(&b)
}

// CellsAt returns what is owned at a time, in Unix nanoseconds: a line for each kind, level and size, in the order in which they are
// stated. No count is below that of the pins: a pinned cell never leaves its owner while it is stated.
func (v *VirtualCluster) CellsAt(t int64) []CellQuota {
	list := v.sumsAt(t, true)
	for i := range list {
		list[i].Count = max(list[i].Count, len(list[i].Pinned))
	}
	return list
}

// sumsAt adds up what is stated for a time, with shifts and exchanges or without. Counts may be below 0.
func (v *VirtualCluster) sumsAt(t int64, changes bool) (list []CellQuota) {
	at := func(c *CellQuota) *CellQuota {
		for i := range list {
			if list[i].SameCells(c) {
				return &list[i]
			}
		}
		list = append(list, *c)
		line := &list[len(list)-1]
		line.Count = 0
		return line
	}
	for _, c := range v.Cells {
		at(c).Count = c.Count
	}
	for _, w := range v.Windows {
		if w.in(t) {
			for _, c := range w.Cells {
				at(c).Count = c.Count
			}
		}
	}
	for i := range v.Changes {
		if c := &v.Changes[i]; changes && c.in(t) {
			at(&c.Cells).Count += c.Cells.Count
		}
	}
	return list
}

// ClaimsAt returns the claims at a time, in Unix nanoseconds. What is claimed now keeps its place in the order of admission; what is
// new comes at an index of the log, after all others. What waits comes last.
func (v *VirtualCluster) ClaimsAt(t int64, index uint64) []CellClaim {
	return v.claimsAt(t, index, false)
}

// DueAt is as ClaimsAt, and what is new waits.
func (v *VirtualCluster) DueAt(t int64, index uint64) []CellClaim { return v.claimsAt(t, index, true) }

func (v *VirtualCluster) claimsAt(t int64, index uint64, wait bool) (claims []CellClaim) {
	for i, line := range v.CellsAt(t) {
		c := line.Claim()
		c.Waits = wait
		claims = append(claims, c.inOrderOfAdmission(v.Claims, index<<16|uint64(i))...) // few
	}
	sortClaims(claims)
	return claims
}

func sortClaims(claims []CellClaim) {
	slices.SortStableFunc(claims, func(a, b CellClaim) int {
		switch {
		case a.Waits == b.Waits:
			return cmp.Compare(a.Order, b.Order)
		case a.Waits:
			return 1
		}
		return -1
	})
}

// inOrderOfAdmission divides a claim into what was admitted before, in its order, what waits, and what is new.
func (c *CellClaim) inOrderOfAdmission(was []CellClaim, order uint64) (list []CellClaim) {
	left := c.Count
	add := func(n int, order uint64, waits bool) {
		part := *c
		part.Count, part.Order, part.Waits, part.Pins = n, order, waits, nil
		list = append(list, part)
		left -= n
	}
	for _, waits := range []bool{false, true} {
		for i := range was {
			if n := min(left, was[i].Count); n > 0 && was[i].Waits == waits && was[i].SameCells(c) {
				add(n, was[i].Order, waits)
			}
		}
	}
	if left > 0 {
		add(left, order, c.Waits)
	}
	if len(list) > 0 {
		list[0].Pins = c.Pins
	}
	return list
}

// Edges returns the times after t, in Unix nanoseconds, at which what is owned may change; sorted, each once.
func (v *VirtualCluster) Edges(t int64) (edges []int64) {
	for _, w := range v.Windows {
		edges = append(edges, w.From.UnixNano(), w.To.UnixNano())
	}
	for i := range v.Changes {
		edges = append(edges, v.Changes[i].From, v.Changes[i].Until)
	}
	edges = slices.DeleteFunc(edges, func(e int64) bool { return e <= t })
	slices.Sort(edges)
	return slices.Compact(edges)
}

// LeastOwned returns the least number of cells of a quota's kind, beside those that are pinned, that are owned at any time of an
// interval, in Unix nanoseconds.
func (v *VirtualCluster) LeastOwned(c *CellQuota, from, until int64) int {
	least := -1
	for _, t := range append([]int64{from}, v.Edges(from)...) {
		if t >= until {
			break
		}
		n := 0
		for _, line := range v.CellsAt(t) {
			if line.SameCells(c) {
				n = line.Count - len(line.Pinned)
			}
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

// CellShift moves cells of a virtual cluster from one time to another.
type CellShift struct {
	Cells       CellQuota
	From, Until time.Time // fewer
	To, UntilTo time.Time // more
}

// Validate returns an error of CodeBadRequest if a shift gains cell-hours, or its times are out of order.
func (s *CellShift) Validate() error {
	if err := validateCells([]*CellQuota{&s.Cells}, func(format string, args ...any) *Error {
		return Errorf(CodeBadRequest, "shift: "+format, args...)
	}, "cells"); err != nil {
		return err
	}
	switch {
	case s.Cells.Count < 1:
		return Errorf(CodeBadRequest, "shift: count must be at least 1, not %d", s.Cells.Count)
	case !s.From.Before(s.Until) || !s.To.Before(s.UntilTo):
		return Errorf(CodeBadRequest, "shift: from must be before until, and to before until-to")
	case s.UntilTo.Sub(s.To) > s.Until.Sub(s.From):
		return Errorf(CodeBadRequest, "shift: it would gain %s for %s: a shift must not gain cell-hours", s.UntilTo.Sub(s.To), s.Until.Sub(s.From)).
			WithHint("shorten the time that gains")
	case s.From.Before(s.UntilTo) && s.To.Before(s.Until):
		return Errorf(CodeBadRequest, "shift: the two times overlap")
	}
	return nil
}

// Exchange is an offer of cells for a time, or a bid for some.
type Exchange struct {
	ID        string
	Bid       bool   // else it is an offer
	Owner     string // the namespace
	Cells     CellQuota
	From      time.Time // also when it is settled
	Until     time.Time
	Points    int64 // per cell, of a bid
	Index     uint64
	CreatedAt int64 // Unix nanoseconds
}

// Validate returns an error of CodeBadRequest if there can be no such offer or bid.
func (x *Exchange) Validate() error {
	what := "offer"
	if x.Bid {
		what = "bid"
	}
	bad := func(format string, args ...any) *Error { return Errorf(CodeBadRequest, what+": "+format, args...) }
	if err := validateCells([]*CellQuota{&x.Cells}, bad, "cells"); err != nil {
		return err
	}
	switch {
	case !ValidNamespace(x.Owner):
		return bad("the name of the virtual cluster is missing")
	case x.Cells.Count < 1:
		return bad("count must be at least 1, not %d", x.Cells.Count)
	case len(x.Cells.Pin) > 0:
		return bad("pinned cells cannot be exchanged")
	case !x.From.Before(x.Until):
		return bad("from must be before until")
	case x.Bid && (x.Points < 1 || x.Points > MaxPoints):
		return bad("points must be 1 to %d for each cell, not %d", int64(MaxPoints), x.Points)
	}
	return nil
}

// Meets reports whether an offer and a bid are of the same cells and times.
func (x *Exchange) Meets(o *Exchange) bool {
	return x.Cells.SameCells(&o.Cells) && x.From.Equal(o.From) && x.Until.Equal(o.Until)
}

// Sale is what one bid takes of one offer.
type Sale struct {
	Offer, Bid *Exchange
	Cells      int
}

// Settle returns what offers and bids of the same cells and times come to: bids by points, then in the order of the log; each takes
// what it wants, as far as cells are left and its owner's balance suffices, of the offers in their order, none of its own (semantics part
// 2, "Exchange"). balance returns an owner's points before the settlement.
func Settle(offers, bids []*Exchange, balance func(owner string) int64) (sales []Sale) {
	byIndex := func(a, b *Exchange) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) }
	offers, bids = slices.SortedFunc(slices.Values(offers), byIndex), slices.SortedFunc(slices.Values(bids), byIndex)
	slices.SortStableFunc(bids, func(a, b *Exchange) int { return cmp.Compare(b.Points, a.Points) })
	left := make([]int, len(offers))
	for i, o := range offers {
		left[i] = o.Cells.Count
	}
	moved := map[string]int64{}
	for _, b := range bids {
		want := min(int64(b.Cells.Count), (balance(b.Owner)+moved[b.Owner])/b.Points)
		for i, o := range offers {
			n := min(int(want), left[i])
			if n < 1 || o.Owner == b.Owner {
				continue
			}
			left[i] -= n
			want -= int64(n)
			moved[b.Owner] -= int64(n) * b.Points
			moved[o.Owner] += int64(n) * b.Points
			sales = append(sales, Sale{o, b, n})
		}
	}
	return sales
}

// What is called of time, shifts, points and exchanges.
type (
	// ClaimsTimeEntry moves the time of what is owned on: windows begin and end, exchanges are settled. A time before the last one changes
	// nothing.
	ClaimsTimeEntry struct {
		Now      int64
		EvalSeed string
		// Week is the week that it is by the calendar of the leader; nil: there are no projects, or the leader is of a version that does not
		// state it.
		Week *WeekSpan `json:",omitempty" codec:",omitempty"`
	}
	// WeekSpan is a week, such as 2026-W48, from when to when, in Unix nanoseconds.
	WeekSpan struct {
		Week string
		From int64
		To   int64
	}
	// ClaimsTime is the time up to which what is owned has been moved on, in Unix nanoseconds.
	ClaimsTime struct {
		Now         int64
		ModifyIndex uint64
		// Week is the week whose use by projects is counted; nil: none yet. Servers that apply log entries do not compute it: their time zone
		// databases may differ.
		Week *WeekSpan `json:",omitempty" codec:",omitempty"`
	}
	// VirtualClusterShiftEntry moves cells of a virtual cluster in time.
	VirtualClusterShiftEntry struct {
		Name     string
		Shift    CellShift
		Time     int64
		EvalSeed string
	}
	// VirtualClusterPointsEntry grants points to a virtual cluster, or takes some.
	VirtualClusterPointsEntry struct {
		Name   string
		Points int64
		Time   int64
	}
	// ExchangePutEntry makes an offer or a bid.
	ExchangePutEntry struct {
		Exchange Exchange
		Time     int64
	}
	// ExchangeWithdrawEntry takes an offer or a bid back.
	ExchangeWithdrawEntry struct {
		ID   string
		Time int64
	}
	// VirtualClusterShiftRequest moves cells of a virtual cluster in time.
	VirtualClusterShiftRequest struct {
		Name  string
		Shift CellShift
		WriteRequest
	}
	// VirtualClusterPointsRequest grants points to a virtual cluster, or takes some.
	VirtualClusterPointsRequest struct {
		Name   string
		Points int64
		WriteRequest
	}
	// ExchangePutRequest makes an offer or a bid.
	ExchangePutRequest struct {
		Exchange Exchange
		WriteRequest
	}
	// ExchangePutReply names it.
	ExchangePutReply struct {
		ID string
		WriteMeta
	}
	// ExchangeWithdrawRequest takes an offer or a bid back.
	ExchangeWithdrawRequest struct {
		ID string
		WriteRequest
	}
	// ExchangeListReply lists offers and bids that are not settled.
	ExchangeListReply struct {
		Exchanges []*Exchange
		QueryMeta
	}
)

package state

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// later is a time after all those that entries of a test have.
func later(hours int) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(hours) * time.Hour).UTC()
}

func (w *world) advance(at time.Time) {
	w.t.Helper()
	w.must(&structs.ClaimsTimeEntry{Now: at.UnixNano(), EvalSeed: fmt.Sprint("turn-", w.index)})
}

func (w *world) given(name, level string) (n int) {
	for _, c := range w.store.Snapshot().VirtualClusters(nil).Get(name).Claims {
		if c.Level == level {
			n += c.Count
		}
	}
	return n
}

func exchange(id, owner string, count int, points int64, from, until time.Time) *structs.ExchangePutEntry {
	return &structs.ExchangePutEntry{Exchange: structs.Exchange{
		ID: id, Owner: owner, Bid: points > 0, Points: points, Cells: *cellsOf("node", 0, count), From: from, Until: until,
	}}
}

// TestExchangeGolden holds the golden example of exchanges (semantics part 2), and that everything comes back at the end.
func TestExchangeGolden(t *testing.T) {
	w := tenantWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		e := owns(name, cellsOf("node", 0, 1))
		e.VirtualCluster.Points = 10
		w.must(e)
	}
	ws := NewWatchSet()
	w.store.Snapshot().ClaimsIndex(ws)
	w.must(exchange("offer", "c", 1, 0, later(1), later(2)))
	if s := w.store.Snapshot(); s.ClaimsIndex(nil) != s.Index() {
		t.Errorf("an offer at index %d, which virtual clusters show, has not changed their index %d", s.Index(), s.ClaimsIndex(nil))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !ws.Wait(ctx) {
		t.Error("who waits for virtual clusters is not woken by an offer")
	}
	w.must(exchange("bid-a", "a", 1, 2, later(1), later(2)))
	w.must(exchange("bid-b", "b", 1, 3, later(1), later(2)))
	w.refusesWith(exchange("again", "c", 1, 0, later(1), later(2)), structs.CodeConflict, "owns 0 such cells")
	w.refusesWith(exchange("own", "c", 1, 1, later(1), later(2)), structs.CodeConflict, "the only offer")
	w.refusesWith(exchange("rich", "a", 4, 3, later(1), later(2)), structs.CodeConflict, "has 10 points, too few for 4 cells at 3 points each")
	w.refusesWith(exchange("richer", "a", 1, 11, later(1), later(2)), structs.CodeConflict, "has 10 points, too few for 1 cell at 11 points each")
	w.refusesWith(&structs.VirtualClusterDeleteEntry{Name: "c"}, structs.CodeConflict, "is open")
	if snap := w.store.Snapshot(); snap.VirtualClusters(nil).Status(snap.VirtualClusters(nil).Get("c"), scheduler.ClaimViews(snap.World(), "c", true)).Cells[0].Offered != 1 {
		t.Error("what is offered is not shown")
	}
	if edge := w.store.Snapshot().VirtualClusters(nil).ClaimsEdge(); edge != later(1).UnixNano() {
		t.Errorf("the next edge is %v", time.Unix(0, edge).UTC())
	}
	points := func() string {
		s := w.store.Snapshot().VirtualClusters(nil)
		return fmt.Sprint(s.Get("a").Points, s.Get("b").Points, s.Get("c").Points)
	}
	w.advance(later(1))
	if points() != "10 7 13" || w.given("b", "node") != 2 || w.given("c", "node") != 0 || w.given("a", "node") != 1 {
		t.Errorf("settled: points %s, cells %d %d %d", points(), w.given("a", "node"), w.given("b", "node"), w.given("c", "node"))
	}
	status := func(name string) *structs.CellStatus {
		snap := w.store.Snapshot()
		return snap.VirtualClusters(nil).Status(snap.VirtualClusters(nil).Get(name), scheduler.ClaimViews(snap.World(), name, true)).Cells[0]
	}
	if b := status("b"); b.Given != 1 || b.Won != 1 || b.Free() != 2 {
		t.Errorf("as it is shown: %+v", b)
	}
	with := func(name string) (list []string) {
		for _, c := range w.store.Snapshot().VirtualClusters(nil).Get(name).Changes {
			list = append(list, fmt.Sprint(c.Why, " ", c.Cells.Count, " with ", c.With, " for ", c.Points))
		}
		return list
	}
	if got := fmt.Sprint(with("a"), with("b"), with("c")); got != "[] [won 1 with c for 3] [sold -1 with b for 3]" {
		t.Errorf("what is kept of it: %s", got)
	}
	w.advance(later(1)) // a time that has passed already changes nothing
	w.advance(later(2))
	if points() != "10 7 13" || w.given("b", "node") != 1 || w.given("c", "node") != 1 {
		t.Errorf("at the end: points %s, cells %d %d", points(), w.given("b", "node"), w.given("c", "node"))
	}
	if edge := w.store.Snapshot().VirtualClusters(nil).ClaimsEdge(); edge != 0 {
		t.Errorf("there is an edge left at %v", time.Unix(0, edge).UTC())
	}
}

// TestExchangeOfCellsTakenAway: what an edit takes away after it was offered is not sold; what is left is, in the order of the offers.
func TestExchangeOfCellsTakenAway(t *testing.T) {
	for _, c := range []struct{ left, won int }{{3, 3}, {2, 2}, {0, 0}} {
		w := tenantWorld(t)
		w.must(owns("c", cellsOf("node", 0, 3)))
		e := owns("b")
		e.VirtualCluster.Points = 10
		w.must(e)
		w.must(exchange("offer-1", "c", 2, 0, later(1), later(2)))
		w.must(exchange("offer-2", "c", 1, 0, later(1), later(2)))
		w.must(exchange("bid", "b", 3, 2, later(1), later(2)))
		w.must(owns("c", cellsOf("node", 0, c.left)))
		w.advance(later(1))
		s := w.store.Snapshot().VirtualClusters(nil)
		if got := w.given("b", "node"); got != c.won || s.Get("b").Points != 10-2*int64(c.won) || s.Get("c").Points != 2*int64(c.won) {
			t.Errorf("of %d cells that are left, %d are won; points %d and %d", c.left, got, s.Get("b").Points, s.Get("c").Points)
		}
		if got := w.given("c", "node"); got != 0 {
			t.Errorf("of %d cells that are left, the seller keeps %d", c.left, got)
		}
		w.advance(later(2))
		if w.given("b", "node") != 0 || w.given("c", "node") != c.left {
			t.Errorf("at the end: %d and %d cells, want 0 and %d", w.given("b", "node"), w.given("c", "node"), c.left)
		}
	}
}

// TestWindows: a window replaces the cells of its kind for a time, what it needs is refused if others own it then, and a shift gives
// up as much as it gains.
func TestWindows(t *testing.T) {
	w := tenantWorld(t)
	window := func(from, to time.Time, count int) *structs.CellWindow {
		return &structs.CellWindow{From: from, To: to, Cells: []*structs.CellQuota{cellsOf("node", 0, count)}}
	}
	a := owns("a", cellsOf("node", 0, 1))
	a.VirtualCluster.Windows = []*structs.CellWindow{window(later(1), later(2), 3)}
	w.must(a)
	w.refusesWith(owns("b", cellsOf("node", 0, 2)), structs.CodeConflict, "level node: 1 short from")
	w.must(owns("b", cellsOf("node", 0, 1)))
	bad := owns("c")
	bad.VirtualCluster.Windows = []*structs.CellWindow{window(later(2), later(1), 1)}
	w.refusesWith(bad, structs.CodeBadRequest, "before it begins")
	bad.VirtualCluster.Windows = []*structs.CellWindow{window(later(1), later(3), 1), window(later(2), later(4), 1)}
	w.refusesWith(bad, structs.CodeBadRequest, "overlaps window")

	shift := func(from, until, to, untilTo int, count int) *structs.VirtualClusterShiftEntry {
		return &structs.VirtualClusterShiftEntry{Name: "b", Shift: structs.CellShift{
			Cells: *cellsOf("node", 0, count), From: later(from), Until: later(until), To: later(to), UntilTo: later(untilTo),
		}}
	}
	w.refusesWith(shift(3, 4, 5, 7, 1), structs.CodeBadRequest, "must not gain cell-hours")
	w.refusesWith(shift(3, 4, 5, 6, 2), structs.CodeConflict, "owns 1 cells")
	w.refusesWith(shift(3, 4, 1, 2, 1), structs.CodeConflict, "level node: 1 short from")
	w.must(shift(3, 4, 5, 6, 1))
	for _, at := range []struct{ hour, a, b int }{{1, 3, 1}, {2, 1, 1}, {3, 1, 0}, {4, 1, 1}, {5, 1, 2}, {6, 1, 1}} {
		w.advance(later(at.hour))
		if w.given("a", "node") != at.a || w.given("b", "node") != at.b {
			t.Errorf("hour %d: a owns %d, b %d; want %d and %d", at.hour, w.given("a", "node"), w.given("b", "node"), at.a, at.b)
		}
	}
}

// TestOrderAtOneEdge: what several are given at one time has the same order in a World that grew with the entries as in one that is made
// of the rows (w.must compares them), and so has what one is given of several kinds: it decides what is doomed.
func TestOrderAtOneEdge(t *testing.T) {
	w := tenantWorld(t)
	at := func(cells ...*structs.CellQuota) []*structs.CellWindow {
		return []*structs.CellWindow{{From: later(1), To: later(2), Cells: cells}}
	}
	a := owns("a", cellsOf("gpu", 0, 0), cellsOf("pcie", 0, 0))
	a.VirtualCluster.Windows = at(cellsOf("node", 0, 2))
	b := owns("b")
	b.VirtualCluster.Windows = at(cellsOf("node", 0, 2))
	w.must(a)
	w.must(b)
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
	w.advance(later(1))

	w = tenantWorld(t)
	w.must(owns("a", cellsOf("node", 0, 1)))
	w.must(owns("a", cellsOf("rack", 2, 1), cellsOf("node", 0, 2)))
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r1-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
	w.must(&structs.NodeStatusEntry{NodeIDs: []string{"r2-n0"}, Status: structs.NodeStatusDown, Time: w.now()})
}

// TestPendingEdits: an edit that is not admitted waits with WhenFree, and is admitted as soon as it can be.
func TestPendingEdits(t *testing.T) {
	w := tenantWorld(t)
	w.must(owns("b", cellsOf("node", 0, 4)))
	a := owns("a", cellsOf("node", 0, 2))
	a.WhenFree = true
	w.must(a)
	pending := func() *structs.PendingCells { return w.store.Snapshot().VirtualClusters(nil).Get("a").Pending }
	if p := pending(); p == nil || w.given("a", "node") != 0 {
		t.Fatalf("pending %+v, given %d", p, w.given("a", "node"))
	}
	w.must(owns("b", cellsOf("node", 0, 3)))
	if pending() == nil {
		t.Error("one node is free, and two were admitted")
	}
	w.must(owns("b", cellsOf("node", 0, 2)))
	if pending() != nil || w.given("a", "node") != 2 {
		t.Errorf("pending %+v, given %d", pending(), w.given("a", "node"))
	}
}

// TestExchangesConserve: whatever is offered, bid for and settled, no point and no cell comes or goes, and all cells are back at the end.
func TestExchangesConserve(t *testing.T) {
	sold := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := tenantWorld(t)
		names := []string{"a", "b", "c"}
		for _, name := range names {
			e := owns(name, cellsOf("node", 0, rapid.IntRange(0, 1).Draw(rt, "cells")))
			e.VirtualCluster.Points = int64(rapid.IntRange(0, 9).Draw(rt, "points"))
			w.must(e)
		}
		total := func() (points int64, cells int) {
			for _, name := range names {
				points += w.store.Snapshot().VirtualClusters(nil).Get(name).Points
				cells += w.given(name, "node")
			}
			return points, cells
		}
		points, cells := total()
		for i := range 12 {
			from := rapid.IntRange(1, 3).Draw(rt, "from")
			_ = w.apply(exchange(fmt.Sprint("x", i), rapid.SampledFrom(names).Draw(rt, "owner"), 1, int64(rapid.IntRange(0, 4).Draw(rt, "points")), later(from), later(from+2)))
			if i%4 == 3 {
				w.advance(later(i / 4))
			}
		}
		for hour := range 6 {
			w.advance(later(hour))
			if p, c := total(); p != points || c != cells {
				rt.Fatalf("hour %d: %d points and %d cells, %d and %d before", hour, p, c, points, cells)
			}
			for _, name := range names {
				v := w.store.Snapshot().VirtualClusters(nil).Get(name)
				sold += len(v.Changes)
				if v.Points < 0 {
					rt.Fatalf("%s has %d points", name, v.Points)
				}
			}
		}
		for _, name := range names {
			if v := w.store.Snapshot().VirtualClusters(nil).Get(name); len(v.Changes) != 0 {
				rt.Fatalf("%s: %+v after the end", name, v.Changes)
			}
		}
	})
	if sold == 0 {
		t.Error("nothing was sold: the test tries nothing")
	}
}

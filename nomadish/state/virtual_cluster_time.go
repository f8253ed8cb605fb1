package state

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// What is owned changes with time: windows begin and end, shifts and exchanges take effect. Time enters by log entries of the leader
// alone, and never goes back.

const eventClaimsTime = "VirtualClusterTurned"

// time returns the time up to which what is owned has been moved on, or that of the entry if it is later.
func (t claimTable) time() int64 {
	now := t.x.now
	if row := get[structs.ClaimsTime](t.x, TableClaimsTime, byID); row != nil {
		now = max(now, row.Now)
	}
	return now
}

// ClaimsEdge returns the next time at which what is owned changes, or what an edit that waits would change, in Unix nanoseconds: after the
// time up to which it has been moved on. It is 0 if there is none.
func (v VirtualClusters) ClaimsEdge(ws *WatchSet) int64 {
	passed, next := int64(0), int64(0)
	if row := one[structs.ClaimsTime](v.snap.v, ws, TableClaimsTime, byID); row != nil {
		passed = row.Now
	}
	note := func(t int64) {
		if t > passed && (next == 0 || t < next) {
			next = t
		}
	}
	for c := range v.List(ws, "", false) {
		for _, t := range c.Edges(passed) {
			note(t)
		}
		if c.Pending != nil { // with its windows over, an edit may be admitted
			for _, t := range c.Waiting().Edges(passed) {
				note(t)
			}
		}
	}
	for x := range v.Exchanges(ws) {
		note(x.From.UnixNano())
	}
	return next
}

// ClaimsTime moves the time of what is owned on. Exchanges that are due are settled first; then what shrinks comes before what grows.
func (w *Writer) ClaimsTime(index uint64, e *structs.ClaimsTimeEntry) error {
	return w.commit(index, e.Now, eventClaimsTime, e.EvalSeed, func(x *txn) error {
		t := claimTable{x}
		if row := get[structs.ClaimsTime](x, TableClaimsTime, byID); row != nil && e.Now <= row.Now {
			return nil
		}
		x.put(TableClaimsTime, &structs.ClaimsTime{Now: e.Now, ModifyIndex: x.index})
		t.settleExchanges(e.Now)
		for _, shrinks := range []bool{true, false} {
			for _, was := range collect(rows[structs.VirtualCluster](x, false, TableVirtualClusters, byID)) {
				t.updateClaims(was, shrinks)
			}
		}
		return nil
	})
}

// updateClaims sets what a virtual cluster owns now. First only what it has less of: what others get must be free then. What it has more
// of waits: tryPending gives it as far as bindings permit.
func (t claimTable) updateClaims(was *structs.VirtualCluster, shrinks bool) {
	now := was.Copy()
	now.Claims = was.DueAt(t.time(), t.x.index)
	if shrinks {
		now.Claims = common(was.Claims, now.Claims)
	} else {
		now.Changes = slices.DeleteFunc(now.Changes, func(c structs.CellChange) bool { return c.Until <= t.time() })
	}
	if slices.EqualFunc(was.Claims, now.Claims, equalClaims) && len(was.Changes) == len(now.Changes) {
		return
	}
	now.ModifyIndex = t.x.index
	t.put(was, now)
}

// common returns what of earlier claims there is still.
func common(was, is []structs.CellClaim) (list []structs.CellClaim) {
	for _, c := range was {
		for i := range is {
			if is[i].SameCells(&c) && is[i].Order == c.Order && is[i].Waits == c.Waits {
				c.Count, c.Pins = min(c.Count, is[i].Count), is[i].Pins
				list = append(list, c)
			}
		}
	}
	return list
}

func equalClaims(a, b structs.CellClaim) bool {
	return a.SameCells(&b) && a.Count == b.Count && a.Order == b.Order && a.Waits == b.Waits && slices.Equal(a.Pins, b.Pins)
}

// settle ends an entry: what has lost its claim is written back, and edits that wait are tried if cells may have come free, or time went on.
func (t claimTable) settle() {
	x := t.x
	x.edit.RetryPins()
	t.writeLost()
	if !x.tables.has(TableAllocs) && !x.tables.has(TableNodes) && !x.tables.has(TableVirtualClusters) && !x.tables.has(TableClaimsTime) || memtable.Open(x.Txn, false, TableVirtualClusters, byPending, byPending).Next() == nil {
		return
	}
	t.tryPending()
	x.edit.RetryPins()
	t.writeLost()
}

// pending returns the virtual clusters with edits that wait, in the order in which these came, and the cells that are due and wait.
func (t claimTable) pending() ([]*structs.VirtualCluster, []structs.DueCells) {
	waiting := collect(rows[structs.VirtualCluster](t.x, false, TableVirtualClusters, byPending, byPending))
	due := structs.Due(waiting)
	waiting = slices.DeleteFunc(waiting, func(v *structs.VirtualCluster) bool { return v.Pending == nil })
	slices.SortStableFunc(waiting, func(a, b *structs.VirtualCluster) int {
		return cmp.Or(cmp.Compare(a.Pending.Index, b.Pending.Index), strings.Compare(a.Name, b.Name))
	})
	return waiting, due
}

// giveDue gives cells that are due as far as that can be admitted, in the order in which they became due.
func (t claimTable) giveDue(due []structs.DueCells) (before []structs.Waiter) {
	for _, d := range due {
		was, more := get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, d.Owner), structs.WaitingCells(d)
		at := slices.IndexFunc(was.Claims, func(c structs.CellClaim) bool { return equalClaims(c, d.Claim) })
		if at < 0 || structs.Behind(before, was.Name, more.More) != nil {
			before = append(before, more)
			continue
		}
		now, w := was.Copy(), t.x.edit.World()
		n := sort.Search(d.Claim.Count, func(n int) bool { // the fewest after which one more is too many
			return scheduler.AdmitClaims(w, was.Name, was.WithGiven(at, n+1, t.x.index)) != nil
		})
		if n > 0 {
			now.Claims, now.ModifyIndex = was.WithGiven(at, n, t.x.index), t.x.index
			t.put(was, now)
		}
		if n < d.Claim.Count {
			before = append(before, more)
		}
	}
	return before
}

// admitNext admits a new edit. It does not overtake pending ones of others that need cells of the same level.
func (t claimTable) admitNext(was, now *structs.VirtualCluster) error {
	if err := t.admit(now); err != nil {
		return err
	}
	var before []structs.Waiter
	edits, due := t.pending()
	for _, d := range due {
		before = append(before, structs.WaitingCells(d))
	}
	for _, v := range edits {
		if v.Name != now.Name {
			before = append(before, structs.WaitingEdit(v, v.Waiting().Growth(v, t.time())))
		}
	}
	return structs.Behind(before, now.Name, now.Growth(was, t.time()))
}

// tryPending gives what is due, then admits edits that wait, in the order in which they came. One that needs cells of the same level as one before
// it that still waits, waits behind it.
func (t claimTable) tryPending() {
	edits, due := t.pending()
	before := t.giveDue(due)
	for _, was := range edits {
		was = get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, was.Name) // it may have been given cells just now
		now := was.Waiting()
		now.ModifyIndex = t.x.index
		more := now.Growth(was, t.time())
		err := structs.Behind(before, now.Name, more)
		if err == nil {
			err = t.admit(now)
		}
		if err == nil {
			t.put(was, now)
			continue
		}
		before = append(before, structs.WaitingEdit(was, more))
		if why := reasonOf(err); why != was.Pending.Reason {
			late := was.Copy()
			late.Pending.Reason = why
			t.x.put(TableVirtualClusters, late)
		}
	}
}

// VirtualClusterShift moves cells of a virtual cluster from one time to another.
func (w *Writer) VirtualClusterShift(index uint64, e *structs.VirtualClusterShiftEntry) error {
	return w.commit(index, e.Time, eventVirtualClusterUpserted, e.EvalSeed, func(x *txn) error {
		t := claimTable{x}
		was := get[structs.VirtualCluster](x, TableVirtualClusters, byID, e.Name)
		if was == nil {
			return missing("virtual cluster", e.Name)
		}
		s := e.Shift
		if err := s.Validate(); err != nil {
			return err
		}
		if s.From.UnixNano() < t.time() || s.To.UnixNano() < t.time() {
			return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: shift: its times must be to come", e.Name)
		}
		cells, err := t.resolveOne(s.Cells)
		if err != nil {
			return err
		}
		least := was.LeastOwned(cells, s.From.UnixNano(), s.Until.UnixNano()) - t.offered(e.Name, cells, s.From.UnixNano(), s.Until.UnixNano())
		if least < s.Cells.Count {
			return structs.Errorf(structs.CodeConflict, "virtual cluster %q: shift: it owns %d cells of level %s that are neither pinned nor offered from %s until %s, not %d", e.Name,
				max(least, 0), s.Cells.Level, s.From.UTC().Format(timeFormat), s.Until.UTC().Format(timeFormat), s.Cells.Count)
		}
		now := was.Copy()
		now.ModifyIndex = x.index
		now.Changes = append(now.Changes, change(cells, -s.Cells.Count, s.From.UnixNano(), s.Until.UnixNano(), structs.CellChangeShift),
			change(cells, s.Cells.Count, s.To.UnixNano(), s.UntilTo.UnixNano(), structs.CellChangeShift))
		if len(now.Changes) > maxCellChanges {
			return structs.Errorf(structs.CodeTooLarge, "virtual cluster %q: it has %d shifts and exchanges to come, and no more are allowed", e.Name, len(was.Changes))
		}
		if err := t.admit(now); err != nil {
			return err
		}
		t.put(was, now)
		return nil
	})
}

// timeFormat is how errors write times.
const timeFormat = "2006-01-02T15:04:05Z07:00"

// maxCellChanges bounds the shifts and exchanges of a virtual cluster.
const maxCellChanges = 1_000

func change(cells *structs.CellQuota, count int, from, until int64, why string) structs.CellChange {
	c := structs.CellChange{Cells: *cells, From: from, Until: until, Why: why}
	c.Cells.Count, c.Cells.Pin, c.Cells.Pinned = count, nil, nil
	return c
}

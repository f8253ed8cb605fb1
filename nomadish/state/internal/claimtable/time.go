package claimtable

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

// time returns the time up to which what is owned has been moved on, or that of the entry if it is later.
func (x Edit) time() int64 {
	now := x.Now
	if row := memtable.Get[structs.ClaimsTime](x.Rows, ClaimsTime, byID); row != nil {
		now = max(now, row.Now)
	}
	return now
}

// advance moves the time of what is owned on. Exchanges that are due are settled first; then what shrinks comes before what grows.
func (x Edit) advance(e *structs.ClaimsTimeEntry) error {
	was := memtable.Get[structs.ClaimsTime](x.Rows, ClaimsTime, byID)
	if was != nil && e.Now <= was.Now {
		return nil
	}
	now := &structs.ClaimsTime{Now: e.Now, ModifyIndex: x.Index, Week: e.Week}
	if now.Week == nil && was != nil {
		now.Week = was.Week
	}
	x.Put(ClaimsTime, now)
	x.settleExchanges(e.Now)
	for _, shrinks := range []bool{true, false} {
		for _, was := range slices.Collect(memtable.Rows[structs.VirtualCluster](x.Rows, false, VirtualClusters, byID)) {
			x.updateClaims(was, shrinks)
		}
	}
	return nil
}

// updateClaims sets what a virtual cluster owns now. First only what it has less of: what others get must be free then. What it has more
// of waits: [Edit.TryPending] gives it as far as bindings permit.
func (x Edit) updateClaims(was *structs.VirtualCluster, shrinks bool) {
	now := was.Copy()
	now.Claims = was.DueAt(x.time(), x.Index)
	if shrinks {
		now.Claims = common(was.Claims, now.Claims)
	} else {
		now.Changes = slices.DeleteFunc(now.Changes, func(c structs.CellChange) bool { return c.Until <= x.time() })
	}
	if slices.EqualFunc(was.Claims, now.Claims, equalClaims) && len(was.Changes) == len(now.Changes) {
		return
	}
	now.ModifyIndex = x.Index
	x.assign(was, now)
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

// pending returns the virtual clusters with edits that wait, in the order in which these came, and the cells that are due and wait.
func (x Edit) pending() ([]*structs.VirtualCluster, []structs.DueCells) {
	waiting := slices.Collect(memtable.Rows[structs.VirtualCluster](x.Rows, false, VirtualClusters, byPending, byPending))
	due := structs.Due(waiting)
	waiting = slices.DeleteFunc(waiting, func(v *structs.VirtualCluster) bool { return v.Pending == nil })
	slices.SortStableFunc(waiting, func(a, b *structs.VirtualCluster) int {
		return cmp.Or(cmp.Compare(a.Pending.Index, b.Pending.Index), strings.Compare(a.Name, b.Name))
	})
	return waiting, due
}

// giveDue gives cells that are due as far as that can be admitted, in the order in which they became due.
func (x Edit) giveDue(due []structs.DueCells) (before []structs.Waiter) {
	for _, d := range due {
		was, more := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, d.Owner), structs.WaitingCells(d)
		at := slices.IndexFunc(was.Claims, func(c structs.CellClaim) bool { return equalClaims(c, d.Claim) })
		if at < 0 || structs.Behind(before, was.Name, more.More) != nil {
			before = append(before, more)
			continue
		}
		now, w := was.Copy(), x.world()
		n := sort.Search(d.Claim.Count, func(n int) bool { // the fewest after which one more is too many
			return scheduler.AdmitClaims(w, was.Name, was.WithGiven(at, n+1, x.Index)) != nil
		})
		if n > 0 {
			now.Claims, now.ModifyIndex = was.WithGiven(at, n, x.Index), x.Index
			x.assign(was, now)
		}
		if n < d.Claim.Count {
			before = append(before, more)
		}
	}
	return before
}

// admitNext admits a new edit. It does not overtake pending ones of others that need cells of the same level.
func (x Edit) admitNext(was, now *structs.VirtualCluster) error {
	if err := x.admit(now); err != nil {
		return err
	}
	return structs.Behind(x.waiters(now.Name), now.Name, now.Growth(was, x.time()))
}

// waiters returns what waits: cells that are due, then the edits of all virtual clusters but one.
func (x Edit) waiters(but string) (before []structs.Waiter) {
	edits, due := x.pending()
	for _, d := range due {
		before = append(before, structs.WaitingCells(d))
	}
	for _, v := range edits {
		if v.Name != but {
			before = append(before, structs.WaitingEdit(v, v.Waiting().Growth(v, x.time())))
		}
	}
	return before
}

// TryPending gives what is due, then admits edits that wait, in the order in which they came. One that needs cells of the same level as one before
// it that still waits, waits behind it.
func (x Edit) TryPending() {
	edits, due := x.pending()
	before := x.giveDue(due)
	for _, was := range edits {
		was = memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, was.Name) // it may have been given cells just now
		now := was.Waiting()
		now.ModifyIndex = x.Index
		more := now.Growth(was, x.time())
		err := structs.Behind(before, now.Name, more)
		if err == nil {
			err = x.admit(now)
		}
		if err == nil {
			x.assign(was, now)
			continue
		}
		before = append(before, structs.WaitingEdit(was, more))
		if why := reasonOf(err); why != was.Pending.Reason {
			late := was.Copy()
			late.Pending.Reason = why
			x.Put(VirtualClusters, late)
		}
	}
}

// shift moves cells of a virtual cluster from one time to another.
func (x Edit) shift(e *structs.VirtualClusterShiftEntry) error {
	was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, e.Name)
	if was == nil {
		return memtable.Missing("virtual cluster", e.Name)
	}
	s := e.Shift
	if err := s.Validate(); err != nil {
		return err
	}
	if s.From.UnixNano() < x.time() || s.To.UnixNano() < x.time() {
		return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: shift: its times must be to come", e.Name)
	}
	cells, err := x.resolveOne(s.Cells)
	if err != nil {
		return err
	}
	least := was.LeastOwned(cells, s.From.UnixNano(), s.Until.UnixNano()) - x.offered(e.Name, cells, s.From.UnixNano(), s.Until.UnixNano())
	if least < s.Cells.Count {
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: shift: it owns %d cells of level %s that are neither pinned nor offered from %s until %s, not %d", e.Name,
			max(least, 0), s.Cells.Level, s.From.UTC().Format(timeFormat), s.Until.UTC().Format(timeFormat), s.Cells.Count)
	}
	now := was.Copy()
	now.ModifyIndex = x.Index
	now.Changes = append(now.Changes, change(cells, -s.Cells.Count, s.From.UnixNano(), s.Until.UnixNano(), structs.CellChangeShift),
		change(cells, s.Cells.Count, s.To.UnixNano(), s.UntilTo.UnixNano(), structs.CellChangeShift))
	if len(now.Changes) > maxCellChanges {
		return structs.Errorf(structs.CodeTooLarge, "virtual cluster %q: it has %d shifts and exchanges to come, and no more are allowed", e.Name, len(was.Changes))
	}
	if err := x.admit(now); err != nil {
		return err
	}
	x.assign(was, now)
	return nil
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

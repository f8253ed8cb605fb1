package claimtable

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// upsert assigns cells to a namespace, or other ones. It refuses what the cluster cannot hold beside all that others own.
func (x Edit) upsert(e *structs.VirtualClusterUpsertEntry) error {
	if err := e.VirtualCluster.Validate(); err != nil {
		return err
	}
	name := e.VirtualCluster.Name
	if name != structs.DefaultNamespace && !x.HasNamespace(name) {
		return structs.MissingNamespace(name)
	}
	was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, name)
	if err := checkEdit(e, was); err != nil {
		return err
	}
	if was == nil && memtable.Count(x.Rows, VirtualClusters) >= structs.MaxVirtualClusters {
		return structs.Errorf(structs.CodeTooLarge, "virtual cluster %q: there are %d virtual clusters, and no more are allowed", name, structs.MaxVirtualClusters)
	}
	now := e.VirtualCluster.Copy()
	now.Canonicalize()
	now.Claims, now.Changes, now.Pending, now.CreateIndex, now.ModifyIndex = nil, nil, nil, x.Index, x.Index
	if was != nil {
		now.CreateIndex, now.Points = was.CreateIndex, was.Points
		now.Claims, now.Changes = was.Claims, slices.Clone(was.Changes)
	}
	if err := x.resolve(now); err != nil {
		return err
	}
	err := x.admitNext(was, now)
	if structs.CodeOf(err) == structs.CodeConflict && e.WhenFree {
		return x.postpone(was, now, err)
	}
	if err != nil {
		return err
	}
	x.assign(was, now)
	return nil
}

// checkEdit compares an edit with what it replaces.
func checkEdit(e *structs.VirtualClusterUpsertEntry, was *structs.VirtualCluster) error {
	have := uint64(0)
	if was != nil {
		have = was.ModifyIndex
	}
	if e.CAS && e.CheckIndex != have {
		if was == nil {
			return structs.Errorf(structs.CodeConflict, "virtual cluster %q: there is none, so it was not last changed at index %d", e.VirtualCluster.Name, e.CheckIndex)
		}
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: it was last changed at index %d, not %d, and owns %s now", was.Name, have, e.CheckIndex,
			ownedText(was.Cells)).WithHint("read it again, and repeat the change")
	}
	if was != nil && e.VirtualCluster.Points != 0 && e.VirtualCluster.Points != was.Points {
		return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: points: they are stated at creation only; it has %d", was.Name, was.Points).
			WithHint("leave points out")
	}
	return nil
}

// ownedText describes cells in short.
func ownedText(list []*structs.CellQuota) string {
	text := ""
	for _, c := range list {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d of level %s", c.Count, c.Level)
	}
	return cmp.Or(text, "nothing")
}

func usesText(n int) string {
	if n == 1 {
		return "1 allocation uses its cells"
	}
	return fmt.Sprintf("%d allocations use its cells", n)
}

// delete removes a virtual cluster whose cells nobody uses by right.
func (x Edit) delete(e *structs.VirtualClusterDeleteEntry) error {
	was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, e.Name)
	if was == nil {
		return memtable.Missing("virtual cluster", e.Name)
	}
	if n, first := scheduler.ClaimUses(x.world(), e.Name); n > 0 {
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: %s, such as %s", e.Name, usesText(n), structs.ShortID(first)).
			WithHint("stop them first, or let them run on without their guarantee: apply it without cells")
	}
	for o := range memtable.Rows[structs.Exchange](x.Rows, false, Exchanges, byID) {
		if o.Owner == e.Name {
			return structs.Errorf(structs.CodeConflict, "virtual cluster %q: exchange %s is open", e.Name, o.ID).WithHint("`nomadish vc withdraw %s` takes it back", o.ID)
		}
	}
	if slices.ContainsFunc(was.Changes, func(c structs.CellChange) bool {
		return c.Why != structs.CellChangeShift && c.Until > x.time()
	}) {
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: it has exchanged cells until they come back", e.Name)
	}
	x.World.SetQuotas(e.Name, nil)
	x.Drop(VirtualClusters, was)
	note(x, VirtualClusters, e.Name, was, nil)
	return nil
}

// resolve finds the chains and pins of all cells of a virtual cluster. It returns an error of CodeBadRequest if one names nothing.
func (x Edit) resolve(v *structs.VirtualCluster) error {
	w, sites := x.world(), x.Sites
	if err := scheduler.ResolveCells(w, v.Cells, sites); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: %w", v.Name, err)
	}
	for i, window := range v.Windows {
		if err := scheduler.ResolveCells(w, window.Cells, sites); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "virtual cluster %q: window %d: %w", v.Name, i+1, err)
		}
	}
	return v.CheckWindows()
}

// admit finds what a virtual cluster owns now, and tries that, and what it will own, on a World of its own. It returns an error of
// CodeConflict if what others own and use forbids it, of CodeBadRequest if it can never be.
func (x Edit) admit(now *structs.VirtualCluster) error {
	if err := now.CheckOwned(x.time()); err != nil {
		return err
	}
	w := x.world()
	claims := now.ClaimsAt(x.time(), x.Index)
	if err := scheduler.AdmitClaims(w, now.Name, claims); err != nil {
		return structs.Errorf(cmp.Or(structs.CodeOf(err), structs.CodeConflict), "virtual cluster %q: %w", now.Name, err)
	}
	if err := scheduler.AdmitLater(w, x.later(now)); err != nil {
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: %w", now.Name, err).
			WithHint("`nomadish vc list -json` shows the windows of all")
	}
	now.Claims = claims
	return nil
}

// later returns what all own at each time to come at which that changes, with one virtual cluster in place of the stored one.
func (x Edit) later(with *structs.VirtualCluster) (times []scheduler.LaterClaims) {
	all := []*structs.VirtualCluster{with}
	for v := range memtable.Rows[structs.VirtualCluster](x.Rows, false, VirtualClusters, byID) {
		if v.Name != with.Name {
			all = append(all, v)
		}
	}
	weeks := x.slotWeeks()
	for _, at := range edges(all, weeks, x.time()) {
		one := scheduler.LaterClaims{At: timeText(at), All: x.ownedAt(all, weeks, at), Owner: with.Name}
		if was := memtable.Get[structs.VirtualCluster](x.Rows, VirtualClusters, byID, with.Name); was != nil {
			one.Was = was.ClaimsAt(at, x.Index)
		}
		times = append(times, one)
	}
	return times
}

// assign stores a virtual cluster that was admitted, and moves the World on with it.
func (x Edit) assign(was, now *structs.VirtualCluster) {
	first := !x.world().AnyOwner()
	scheduler.SetClaims(x.World, now.Name, now.Claims)
	x.Put(VirtualClusters, now)
	note(x, VirtualClusters, now.Name, was, now)
	x.Evaluate(now.Name)
	if first && x.world().AnyOwner() {
		x.EvaluatePerNode()
	}
}

// postpone stores an edit that waits until it can be admitted.
func (x Edit) postpone(was, edit *structs.VirtualCluster, why error) error {
	now := was.Copy()
	if now == nil {
		now = &structs.VirtualCluster{Name: edit.Name, OverLimit: edit.OverLimit, Points: edit.Points, CreateIndex: x.Index}
	}
	now.ModifyIndex = x.Index
	now.Pending = &structs.PendingCells{OverLimit: edit.OverLimit, Cells: edit.Cells, Windows: edit.Windows, Index: x.Index, Reason: reasonOf(why)}
	x.Put(VirtualClusters, now)
	note(x, VirtualClusters, now.Name, was, now)
	return nil
}

// reasonOf returns why an edit is not admitted, without what its caller may do.
func reasonOf(err error) string {
	var inner *structs.Error
	for e := inner; errors.As(err, &e); err = e.Err {
		inner = e
	}
	if inner == nil {
		return err.Error()
	}
	bare := *inner
	bare.Hint = ""
	return bare.Error()
}

package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/structs"
)

// admission is what an edit is tried on: the rows and the chains before it.
type admission struct {
	rows   map[string]*structs.VirtualCluster
	chains []*oracleChain
}

func (m *tenantMachine) admission() *admission {
	snap := m.store.Snapshot()
	a := &admission{rows: map[string]*structs.VirtualCluster{}, chains: newOracles(snap, m.layouts)}
	for v := range snap.VirtualClusters(nil).List("", false) {
		a.rows[v.Name] = v
	}
	return a
}

// fits reports whether a virtual cluster can be as v says, now and at every edge to come. It is not sure where that depends on which cells
// are unbound for it, or on nodes that are away.
func (a *admission) fits(v *structs.VirtualCluster, at int64) (fits, sure bool) {
	sure = true
	for _, c := range a.chains {
		for _, t := range append([]int64{at}, v.Edges(at)...) {
			if c.overdrawn(v, t) {
				return false, true
			}
		}
		fits, certain := c.fitsLater(v, a.rows, at)
		if certain && !fits {
			return false, true
		}
		sure = sure && certain
	}
	for _, c := range a.chains {
		switch fits, certain := c.fitsNow(v, a.rows[v.Name], at); {
		case certain && !fits:
			return false, true
		case !certain:
			sure = false
		}
	}
	return true, sure
}

// overtakes reports whether an edit needs more cells of a level than there are by its row, as a pending edit of another does.
func (a *admission) overtakes(v *structs.VirtualCluster, at int64) bool {
	if a.behindDue(v, at) {
		return true
	}
	for _, o := range a.rows { // order does not matter: any
		if o.Name == v.Name || o.Pending == nil {
			continue
		}
		edit := o.Copy()
		edit.Cells, edit.Windows = o.Pending.Cells, o.Pending.Windows
		for _, c := range a.chains {
			mine := c.needs(v, a.rows[v.Name], at)
			for level := range c.needs(edit, o, at) { // likewise
				if mine[level] {
					return true
				}
			}
		}
	}
	return false
}

// behindDue reports whether an edit needs more cells of a level of which somebody waits for some that are due.
func (a *admission) behindDue(v *structs.VirtualCluster, at int64) bool {
	for _, c := range a.chains {
		for level := range c.needs(v, a.rows[v.Name], at) { // order does not matter: any
			if slices.ContainsFunc(c.due, func(l oracleLot) bool { return l.kind.level == level }) {
				return true
			}
		}
	}
	return false
}

// needs returns the levels of a chain of which a virtual cluster has more cells than by another row, at some time from at on.
func (c *oracleChain) needs(v, was *structs.VirtualCluster, at int64) map[string]bool {
	if was == nil {
		was = &structs.VirtualCluster{}
	}
	levels := map[string]bool{}
	for _, t := range slices.Concat([]int64{at}, v.Edges(at), was.Edges(at)) {
		before := c.ownedAt(was, t)
		for k, n := range c.ownedAt(v, t) { // order does not matter: a set
			if n > before[k] {
				levels[k.level] = true
			}
		}
	}
	return levels
}

// fitsLater reports whether a chain's healthy devices can hold what v has more than the row that is stored, at every edge to come.
func (c *oracleChain) fitsLater(v *structs.VirtualCluster, rows map[string]*structs.VirtualCluster, at int64) (fits, certain bool) {
	all := maps.Clone(rows)
	all[v.Name] = v
	var edges []int64
	for _, o := range all { // sorted below
		edges = append(edges, o.Edges(at)...)
	}
	slices.Sort(edges)
	for _, t := range slices.Compact(edges) {
		grows, want, before := false, map[cellKind]int{}, map[cellKind]int{}
		for name, o := range all { // order does not matter: sums
			is, was := c.ownedAt(o, t), map[cellKind]int{}
			if rows[name] != nil {
				was = c.ownedAt(rows[name], t)
			}
			for k, n := range is { // likewise
				grows, want[k] = grows || n > was[k], want[k]+n
			}
			for k, n := range was { // likewise
				before[k] += n
			}
		}
		if grows && len(c.nodes) > 0 && !c.embeds(want, c.healthy(true)) {
			return false, c.embeds(before, c.healthy(true)) // else some are doomed already, and count for nothing
		}
	}
	return true, true
}

// fitsNow reports whether an owner can have of a chain what v says, beside all that is bound and owned, and whether that is certain.
func (c *oracleChain) fitsNow(v, was *structs.VirtualCluster, at int64) (fits, certain bool) {
	doomed, want := c.doomed()
	now := c.ownedAt(v, at)
	for _, r := range c.rights(v.Name) {
		now[r.kind] += 0
	}
	grows, certain := false, true
	for k, n := range now { // order does not matter: each by itself
		r := cellRight{v.Name, k}
		bound, away := c.inUse(r)
		n -= min(c.waiting(r), max(0, n-c.given(r))) // goes on waiting
		by := n - c.given(r)
		want[k] += by
		grows = grows || by > 0
		certain = certain && (by >= 0 || doomed[r] == 0 && n >= bound+away)
	}
	free := c.free()
	if grows && certain && !c.embeds(want, free) {
		return false, true
	}
	for _, q := range v.Cells {
		r := cellRight{v.Name, cellKind{q.Level, q.Size}}
		if q.Kind != c.layout.kind() {
			continue
		}
		for _, pin := range q.Pin[:min(len(q.Pin), now[r.kind])] {
			cell, ok := c.pinned(r.kind, pin)
			switch at := c.boundAt(r.kind, cell); {
			case !ok || !cell.ready || doomed[r] > 0 || was != nil && pinsAny(was, c.layout.kind()):
				return true, false
			case at != nil && at.owner != v.Name:
				return false, certain
			case at != nil:
			case free&cell.mask != cell.mask:
				return false, certain
			default:
				free &^= cell.mask
				want[r.kind]--
				certain = certain && want[r.kind] >= 0
			}
		}
	}
	return !certain || !grows && free == c.free() || c.embeds(want, free), certain
}

// pinned returns the cell within a node that a pin names.
func (c *oracleChain) pinned(k cellKind, pin string) (oracleCell, bool) {
	node, path, _ := strings.Cut(pin, "/")
	index, _ := strconv.Atoi(path[strings.LastIndexByte(path, '-')+1:]) // 0 of a node
	return c.named(k, node, index)
}

// boundAt returns who has bound a cell itself; nil if nobody has.
func (c *oracleChain) boundAt(k cellKind, cell oracleCell) *oracleBound {
	for i := range c.bound {
		if b := &c.bound[i]; b.kind == k && b.cell.mask == cell.mask {
			return b
		}
	}
	return nil
}

func pinsAny(v *structs.VirtualCluster, kind string) bool {
	return slices.ContainsFunc(v.Cells, func(q *structs.CellQuota) bool { return q.Kind == kind && len(q.Pin) > 0 })
}

// ownInTheWay is a part of the error of a pin whose owner has bound all its cells elsewhere.
const ownInTheWay = "the owner has no unbound cell of that kind"

// judgeEdit compares what became of an edit with what should.
func (m *tenantMachine) judgeEdit(a *admission, e *structs.VirtualClusterUpsertEntry, err error) {
	if code := structs.CodeOf(err); err != nil && code != structs.CodeConflict {
		if code != structs.CodeBadRequest {
			m.failed("edit: %v", err)
		}
		m.count("wrong edits", 1)
		return
	}
	fits, sure := a.fits(withChanges(e.VirtualCluster, a.rows[e.VirtualCluster.Name]), later(m.hour).UnixNano())
	if fits && a.overtakes(withChanges(e.VirtualCluster, a.rows[e.VirtualCluster.Name]), later(m.hour).UnixNano()) {
		fits, sure = false, true
		m.count("waiting in order", 1)
	}
	p := (*structs.PendingCells)(nil)
	if err == nil {
		p = m.row(e.VirtualCluster.Name).Pending
	}
	admitted := err == nil && p == nil
	if text := fmt.Sprint(err); strings.Contains(text, ownInTheWay) || p != nil && strings.Contains(p.Reason, ownInTheWay) {
		return // which of its own cells a pin may take the place of is not modelled
	}
	for name, o := range a.rows { // order does not matter: any
		if now := m.row(name); name != e.VirtualCluster.Name && o.Pending != nil && now != nil && now.Pending == nil {
			sure = false // it waited behind what this edit replaces, and what it gives up may be what this edit needs
		}
	}
	switch {
	case p != nil && p.Index != m.index:
		m.failed("an edit at %d was accepted, and one of %d is pending: %+v", m.index, p.Index, p)
	case sure && fits != admitted:
		m.failed("edit of %s, %s, windows %s: admitted %v (%v, pending %+v), but that it fits is %v: %v", e.VirtualCluster.Name, cellsText(e.VirtualCluster.Cells),
			windowsText(e.VirtualCluster.Windows), admitted, err, p, fits, a.chains)
	case admitted:
		m.count("admitted", 1)
	case p != nil:
		m.count("pending", 1)
	default:
		m.count("refused", 1)
	}
	if sure {
		m.count("judged exactly", 1)
	}
}

// withChanges returns a virtual cluster with the shifts and exchanges that it has.
func withChanges(v, was *structs.VirtualCluster) *structs.VirtualCluster {
	now := v.Copy()
	if was != nil {
		now.Changes = was.Changes
	}
	return now
}

// judgeShift compares what became of a shift with what should.
func (m *tenantMachine) judgeShift(a *admission, name string, s *structs.CellShift, err error) {
	if err != nil && (structs.CodeOf(err) != structs.CodeConflict || strings.Contains(err.Error(), "it owns")) {
		return
	}
	now := a.rows[name].Copy()
	for _, x := range []structs.CellChange{
		{Cells: s.Cells, From: s.From.UnixNano(), Until: s.Until.UnixNano()},
		{Cells: s.Cells, From: s.To.UnixNano(), Until: s.UntilTo.UnixNano()},
	} {
		if len(now.Changes) == len(a.rows[name].Changes) {
			x.Cells.Count = -x.Cells.Count
		}
		now.Changes = append(now.Changes, x)
	}
	if fits, sure := a.fits(now, later(m.hour).UnixNano()); sure && fits != (err == nil) {
		m.failed("shift of %s: %v, but that it fits is %v: %v", name, err, fits, a.chains)
	}
	m.count(map[bool]string{true: "shifted", false: "shifts refused"}[err == nil], 1)
}

// pending returns the edits that wait, by their owners.
func (m *tenantMachine) pending() map[string]uint64 {
	list := map[string]uint64{}
	for v := range m.store.Snapshot().VirtualClusters(nil).List("", false) {
		if v.Pending != nil {
			list[v.Name] = v.Pending.Index
		}
	}
	return list
}

// checkPending checks that the edit that has waited longest does not fit, if anything has changed since it was tried last.
func (m *tenantMachine) checkPending(was map[string]uint64) {
	snap, is := m.store.Snapshot(), m.pending()
	for name, index := range was { // order does not matter: each by itself
		if v := m.row(name); is[name] == 0 && v != nil && v.ModifyIndex == m.index && index < m.index {
			m.count("admitted later", 1)
		}
	}
	m.checkDue(snap)
	changed := max(snap.TableIndex(TableAllocs), snap.TableIndex(TableNodes), snap.TableIndex(TableVirtualClusters)) == m.index
	if !changed || !maps.Equal(was, is) || len(is) == 0 {
		return
	}
	names := slices.SortedFunc(maps.Keys(is), func(a, b string) int { return int(is[a]) - int(is[b]) }) // few
	a := m.admission()
	v := a.rows[names[0]].Copy()
	v.Cells, v.Windows = v.Pending.Cells, v.Pending.Windows
	if fits, sure := a.fits(v, later(m.hour).UnixNano()); fits && sure && !a.behindDue(v, later(m.hour).UnixNano()) {
		m.failed("the edit of %s waits since %d (%s), and fits: %v", v.Name, v.Pending.Index, v.Pending.Reason, a.chains)
	}
	m.count("still pending", 1)
}

// checkDue checks that cells that are due and not given do not fit: one more of the level that has waited longest.
func (m *tenantMachine) checkDue(snap *Snapshot) {
	for _, c := range newOracles(snap, m.layouts) {
		if len(c.due) == 0 {
			continue
		}
		first := slices.MinFunc(c.due, func(a, b oracleLot) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.owner, b.owner)) })
		doomed, counted := c.doomed()
		counted[first.kind]++
		if len(c.cells[first.kind]) > 0 && doomed[first.cellRight] == 0 && c.embeds(counted, c.free()) {
			m.failed("%v are due and would fit: %v", first, c)
		}
		m.count("due", 1)
	}
}

// run makes one step and checks what must hold after it.
func (m *tenantMachine) run() {
	before, pending := m.admission(), m.pending()
	m.harmed = false
	did := m.step()
	m.log("%s", did)
	snap := m.store.Snapshot()
	w := snap.World()
	if m.fault.world != nil {
		w = m.fault.world(snap)
	}
	if err := w.CheckClaims(); err != nil {
		m.failed("%v", err)
	}
	m.checkRows(snap)
	m.checkPending(pending)
	for _, c := range newOracles(snap, m.layouts) {
		doomed, counted := c.doomed()
		m.checkAccounts(w, c, doomed)
		m.checkOneMore(w, c, counted)
		m.checkDoomed(before, c, doomed)
		m.checkOwned(snap, c)
		for _, owner := range machineOwners {
			m.request(snap, c, owner, doomed)
		}
	}
}

// chainOf returns the World's chain of a layout; nil if nobody owns anything.
func chainOf(w *scheduler.World, s *gpuLayout) *cells.Chain {
	for key, c := range w.Chains {
		if levels := c.Levels(); key.Model == s.model && levels[len(levels)-1].Devices == s.devices() {
			return c
		}
	}
	return nil
}

// checkAccounts compares the accounts of a chain with what is owned, bound and doomed.
func (m *tenantMachine) checkAccounts(w *scheduler.World, c *oracleChain, doomed map[cellRight]int) {
	chain := chainOf(w, c.layout)
	if chain == nil {
		if len(c.lots) > 0 && len(c.nodes) > 0 {
			m.failed("there is no chain of %v", c)
		}
		return
	}
	if have, want := len(chain.Levels()), len(c.layout.levels); have != want {
		m.failed("%d levels, want %d", have, want)
	}
	for _, r := range c.rights("") {
		k, _ := chain.KindOf(r.kind.level, r.kind.size)
		is, want := chain.Account(r.owner, k), cells.Account{Kind: k, Given: c.given(r), Doomed: doomed[r]}
		if want.Bound, want.Away = c.inUse(r); is != want {
			m.failed("%v has %+v, want %+v: %v", r, is, want, c)
		}
		m.count("doomed", min(1, doomed[r]))
		m.count("away", min(1, want.Away))
		if r.kind.size > 0 {
			m.count("racks bound", want.Bound)
		}
	}
	for _, owner := range machineOwners {
		for _, a := range chain.Accounts(owner) {
			if a.Given > 0 && !slices.Contains(c.rights(owner), cellRight{owner, cellKind{chain.LevelName(a.Kind), a.Kind.Size}}) {
				m.failed("%s has %+v, and owns none", owner, a)
			}
		}
	}
}

// checkOneMore compares whether some cells more would be admitted with whether they are found.
func (m *tenantMachine) checkOneMore(w *scheduler.World, c *oracleChain, counted map[cellKind]int) {
	kinds := slices.SortedFunc(maps.Keys(c.cells), func(a, b cellKind) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	chain := chainOf(w, c.layout)
	if chain == nil || len(kinds) == 0 {
		return
	}
	k, n := kinds[m.below(len(kinds))], 1+m.below(2)
	kind, _ := chain.KindOf(k.level, k.size)
	_, short := chain.Short(cells.Change{Kind: kind, Count: n})
	counted[k] += n
	if fits := c.embeds(counted, c.free()); fits != (short == 0) {
		m.failed("%d more of %v: %d are short, but that they fit is %v, counted %v: %v", n, k, short, fits, counted, c)
	}
	counted[k] -= n
}

// checkDoomed checks that only what time or the hardware does dooms anything: no use, no edit, and no release, unless of a cell with a bad
// device, which is bound no more. Where something is doomed already, a release may doom another in its place, but no use may.
func (m *tenantMachine) checkDoomed(before *admission, c *oracleChain, doomed map[cellRight]int) {
	if m.harmed {
		return
	}
	for _, b := range before.chains {
		if b.layout != c.layout || b.pinsAwayBut(c) {
			continue
		}
		was, _ := b.doomed()
		if len(was) == 0 && len(doomed) > 0 && !b.boundBad() || c.usesMore(b) && !maps.Equal(was, doomed) {
			m.failed("%v are doomed, %v were: %v; before: %v", doomed, was, c, b)
		}
	}
}

// usesMore reports whether a chain differs from what it was in nothing but that more is bound, or used by system jobs.
func (c *oracleChain) usesMore(was *oracleChain) bool {
	more := func(a, b oracleNode) bool { return a.id == b.id && a.bad&^b.bad == 0 }
	there := func(b oracleBound) bool {
		return slices.ContainsFunc(c.bound, func(o oracleBound) bool {
			return o.cellRight == b.cellRight && o.cell == b.cell && (o.pinned || !b.pinned || b.cell.ready)
		})
	}
	return !c.pinsAwayBut(was) && slices.EqualFunc(was.nodes, c.nodes, more) && slices.Equal(was.lots, c.lots) && !slices.ContainsFunc(was.bound, func(b oracleBound) bool { return !there(b) })
}

// pinsAwayBut reports whether a cell of a node that is not ready is pinned here, and not in o: it is not doomed while it is.
func (c *oracleChain) pinsAwayBut(o *oracleChain) bool {
	away := func(b oracleBound) bool { return b.pinned && !b.cell.ready }
	return slices.ContainsFunc(c.bound, func(b oracleBound) bool {
		return away(b) && !slices.ContainsFunc(o.bound, func(x oracleBound) bool { return away(x) && x.cellRight == b.cellRight && x.cell == b.cell })
	})
}

// boundBad reports whether a bound cell has a device that may not be used.
func (c *oracleChain) boundBad() bool {
	return slices.ContainsFunc(c.bound, func(b oracleBound) bool { return b.cell.ready && b.cell.mask&^c.healthy(false) != 0 })
}

// checkOwned compares what is owned now with what the rows say.
func (m *tenantMachine) checkOwned(snap *Snapshot, c *oracleChain) {
	for v := range snap.VirtualClusters(nil).List("", false) {
		owned := c.ownedAt(v, later(m.hour).UnixNano())
		for _, r := range c.rights(v.Name) {
			owned[r.kind] -= c.given(r)
		}
		for _, l := range c.due {
			if l.owner == v.Name {
				owned[l.kind] -= l.count
			}
		}
		for k, n := range owned { // order does not matter: each must be 0
			if n != 0 {
				m.failed("%s owns %d of %v more than it is given: %+v", v.Name, n, k, v)
			}
		}
	}
}

// checkRows checks that points and exchanged cells come from somewhere, and that what is over is over.
func (m *tenantMachine) checkRows(snap *Snapshot) {
	points, won := int64(0), map[string]int{}
	for v := range snap.VirtualClusters(nil).List("", false) {
		if points += v.Points; v.Points < 0 {
			m.failed("%s has %d points", v.Name, v.Points)
		}
		for i := range v.Changes {
			c := &v.Changes[i]
			if c.Until <= later(m.hour).UnixNano() {
				m.failed("%s has %+v, which is over", v.Name, c)
			}
			if c.Why != structs.CellChangeShift {
				won[fmt.Sprint(c.Cells.Kind, c.Cells.Level, c.Cells.Size, c.From, c.Until)] += c.Cells.Count
			}
			if (c.Why == structs.CellChangeWon) != (c.Cells.Count > 0) && c.Why != structs.CellChangeShift {
				m.failed("%s has %+v", v.Name, c)
			}
		}
	}
	if points != m.points {
		m.failed("all have %d points, %d were granted", points, m.points)
	}
	for what, n := range won { // order does not matter: each must be 0
		if n != 0 {
			m.failed("%d cells more were won than sold: %s", n, what)
		}
	}
}

// checkPlan checks what a plan takes: nothing that uses a bound cell is taken for others.
func (m *tenantMachine) checkPlan(snap *Snapshot, plan *structs.Plan) {
	chains := newOracles(snap, m.layouts)
	for _, s := range plan.Stop {
		a := snap.Alloc(nil, s.AllocID)
		if s.PreemptedBy == "" || a == nil {
			continue
		}
		m.count("reclaimed", 1)
		for _, c := range chains {
			mask, terms := c.maskOf(a), a.AllocatedResources.Shared.Terms
			for _, b := range c.bound {
				if terms.Claim != "" && terms.Gang == "" && b.cell.ready && b.used&mask != 0 && b.owner == a.Namespace {
					m.failed("%s of %s uses %+v, and is taken for %s of %s", a.ID, a.Namespace, b, plan.JobID, plan.Namespace)
				}
			}
		}
	}
	for _, b := range plan.Place {
		terms, n := b.Resources.Shared.Terms, len(b.Instances)
		switch {
		case terms.PerNode:
			m.count("placed as system instances", n)
		case terms.Claim == "":
			m.count("opportunistic", n)
		case terms.Gang != "":
			m.count("gangs guaranteed", 1)
			fallthrough
		default:
			m.count("guaranteed", n)
		}
		if terms.CellSize > 0 {
			m.count("in racks", n)
		}
	}
}

// request requests the largest instance that fits the free cells of an owner's virtual tree, and at times the largest gang: the
// scheduler places them, guaranteed. Nothing of it is committed.
func (m *tenantMachine) request(snap *Snapshot, c *oracleChain, owner string, doomed map[cellRight]int) {
	rooms := c.rooms(owner, doomed)
	if len(rooms) == 0 {
		return
	}
	m.count("requested", 1)
	gpus := slices.Max(rooms)
	m.requires(snap, c, m.gpuJob(owner, "request", c.layout, 1, gpus))
	if m.below(4) > 0 {
		return
	}
	gpus, count := min(gpus, 1<<m.below(3)), 0
	for _, devices := range rooms {
		count += devices / gpus
	}
	j := m.gpuJob(owner, "request", c.layout, count, gpus)
	j.TaskGroups[0].Gang = &structs.Gang{}
	m.requires(snap, c, j)
}

// requires requires that all instances of a job would be placed by claims.
func (m *tenantMachine) requires(snap *Snapshot, c *oracleChain, j *structs.Job) {
	j.Class = structs.ClassGuaranteed
	j.Canonicalize()
	e := &structs.Evaluation{ID: m.id(), Namespace: j.Namespace, JobID: j.ID, Priority: 1, Type: j.Type, Status: structs.EvalStatusPending}
	plan, err := scheduler.Schedule(snap.World(), e, snap.Input(j, nil, m.input()))
	if err != nil {
		m.failed("%v", err)
	}
	guaranteed := 0
	for _, b := range plan.Place {
		if b.Resources.Shared.Terms.Claim == structs.ClaimCells {
			guaranteed += len(b.Instances)
		}
	}
	if g := j.TaskGroups[0]; guaranteed != g.Count {
		m.failed("%s: %d × %d devices fit what is free of its own, and are not placed (%s): %v", j.Namespace, g.Count, g.Tasks[0].Resources.Devices[0].Count,
			planText(plan), c)
	}
}

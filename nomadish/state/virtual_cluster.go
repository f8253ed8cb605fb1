package state

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Event types of the stream.
const (
	eventVirtualClusterUpserted = "VirtualClusterUpserted"
	eventVirtualClusterDeleted  = "VirtualClusterDeleted"
)

// VirtualClusters reads what the namespaces of a snapshot own.
type VirtualClusters struct{ snap *Snapshot }

// VirtualClusters returns the reads of virtual clusters.
func (s *Snapshot) VirtualClusters() VirtualClusters { return VirtualClusters{s} }

// Get returns the virtual cluster of a namespace; nil if it has none.
func (v VirtualClusters) Get(ws *WatchSet, name string) *structs.VirtualCluster {
	return one[structs.VirtualCluster](v.snap.v, ws, TableVirtualClusters, byID, name)
}

// List walks the virtual clusters whose name begins with prefix, by name, or backwards.
func (v VirtualClusters) List(ws *WatchSet, prefix string, reverse bool) iter.Seq[*structs.VirtualCluster] {
	return many[structs.VirtualCluster](v.snap.v, ws, reverse, TableVirtualClusters, byPrefix, prefix)
}

// VirtualClusterUpsert assigns cells to a namespace, or other ones. It refuses what the cluster cannot hold beside all that others own.
func (w *Writer) VirtualClusterUpsert(index uint64, e *structs.VirtualClusterUpsertEntry) error {
	return w.commit(index, e.Time, eventVirtualClusterUpserted, e.EvalSeed, func(x *txn) error {
		if err := e.VirtualCluster.Validate(); err != nil {
			return err
		}
		name := e.VirtualCluster.Name
		if name != structs.DefaultNamespace && get[structs.Namespace](x, TableNamespaces, byID, name) == nil {
			return structs.MissingNamespace(name)
		}
		was := get[structs.VirtualCluster](x, TableVirtualClusters, byID, name)
		if err := checkEdit(e, was); err != nil {
			return err
		}
		if was == nil && countRows[structs.VirtualCluster](x, TableVirtualClusters) >= structs.MaxVirtualClusters {
			return structs.Errorf(structs.CodeTooLarge, "virtual cluster %q: there are %d virtual clusters, and no more are allowed", name, structs.MaxVirtualClusters)
		}
		now := e.VirtualCluster.Copy()
		now.Canonicalize()
		now.Claims, now.Changes, now.Pending, now.CreateIndex, now.ModifyIndex = nil, nil, nil, x.index, x.index
		if was != nil {
			now.CreateIndex, now.Points = was.CreateIndex, was.Points
			now.Claims, now.Changes = was.Claims, slices.Clone(was.Changes)
		}
		if err := (claimTable{x}).resolve(now); err != nil {
			return err
		}
		err := claimTable{x}.admitNext(was, now)
		if structs.CodeOf(err) == structs.CodeConflict && e.WhenFree {
			return claimTable{x}.postpone(was, now, err)
		}
		if err != nil {
			return err
		}
		claimTable{x}.put(was, now)
		return nil
	})
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

// VirtualClusterDelete removes a virtual cluster whose cells nobody uses by right.
func (w *Writer) VirtualClusterDelete(index uint64, e *structs.VirtualClusterDeleteEntry) error {
	return w.commit(index, e.Time, eventVirtualClusterDeleted, e.EvalSeed, func(x *txn) error {
		was := get[structs.VirtualCluster](x, TableVirtualClusters, byID, e.Name)
		if was == nil {
			return missing("virtual cluster", e.Name)
		}
		if n, first := x.edit.World().GuaranteedUses(e.Name); n > 0 {
			return structs.Errorf(structs.CodeConflict, "virtual cluster %q: %s, such as %s", e.Name, usesText(n), structs.ShortID(first)).
				WithHint("stop them first, or let them run on without their guarantee: apply it without cells")
		}
		for o := range rows[structs.Exchange](x, false, TableExchanges, byID) {
			if o.Owner == e.Name {
				return structs.Errorf(structs.CodeConflict, "virtual cluster %q: exchange %s is open", e.Name, o.ID).WithHint("`nomadish vc withdraw %s` takes it back", o.ID)
			}
		}
		if slices.ContainsFunc(was.Changes, func(c structs.CellChange) bool {
			return c.Why != structs.CellChangeShift && c.Until > (claimTable{x}).time()
		}) {
			return structs.Errorf(structs.CodeConflict, "virtual cluster %q: it has exchanged cells until they come back", e.Name)
		}
		x.edit.SetQuotas(e.Name, nil)
		x.drop(TableVirtualClusters, was)
		note(x, KindVirtualCluster, e.Name, was, nil)
		return nil
	})
}

// claimTable is a txn as what changes what is owned.
type claimTable struct{ x *txn }

// resolve finds the chains and pins of all cells of a virtual cluster. It returns an error of CodeBadRequest if one names nothing.
func (t claimTable) resolve(v *structs.VirtualCluster) error {
	w, sites := t.x.edit.World(), t.config().SiteLevels()
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

func (t claimTable) config() *structs.SchedulerConfiguration { return configOf(t.x) }

// configOf returns the scheduler's configuration, an empty one if none is stored yet.
func configOf(r reader) *structs.SchedulerConfiguration {
	if config := get[structs.SchedulerConfiguration](r, TableConfig, byID); config != nil {
		return config
	}
	return &structs.SchedulerConfiguration{}
}

// admit finds what a virtual cluster owns now, and tries that, and what it will own, on a World of its own. It returns an error of
// CodeConflict if what others own and use forbids it, of CodeBadRequest if it can never be.
func (t claimTable) admit(now *structs.VirtualCluster) error {
	if err := now.CheckOwned(t.time()); err != nil {
		return err
	}
	w := t.x.edit.World()
	claims := now.ClaimsAt(t.time(), t.x.index)
	if err := scheduler.AdmitClaims(w, now.Name, claims); err != nil {
		return structs.Errorf(cmp.Or(structs.CodeOf(err), structs.CodeConflict), "virtual cluster %q: %w", now.Name, err)
	}
	if err := scheduler.AdmitLater(w, t.later(now)); err != nil {
		return structs.Errorf(structs.CodeConflict, "virtual cluster %q: %w", now.Name, err).
			WithHint("`nomadish vc list -json` shows the windows of all")
	}
	now.Claims = claims
	return nil
}

// later returns what all own at each time to come at which that changes, with one virtual cluster in place of the stored one.
func (t claimTable) later(with *structs.VirtualCluster) (times []scheduler.LaterClaims) {
	all := []*structs.VirtualCluster{with}
	for v := range rows[structs.VirtualCluster](t.x, false, TableVirtualClusters, byID) {
		if v.Name != with.Name {
			all = append(all, v)
		}
	}
	var edges []int64
	for _, v := range all {
		edges = append(edges, v.Edges(t.time())...)
	}
	slices.Sort(edges)
	for _, at := range slices.Compact(edges) {
		one := scheduler.LaterClaims{At: timeOf(at).Format(time.RFC3339), All: map[string][]structs.CellClaim{}, Owner: with.Name}
		for _, v := range all {
			one.All[v.Name] = v.ClaimsAt(at, t.x.index)
		}
		if was := get[structs.VirtualCluster](t.x, TableVirtualClusters, byID, with.Name); was != nil {
			one.Was = was.ClaimsAt(at, t.x.index)
		}
		times = append(times, one)
	}
	return times
}

// put stores a virtual cluster that was admitted, and moves the World on with it.
func (t claimTable) put(was, now *structs.VirtualCluster) {
	x := t.x
	first := !x.edit.World().AnyOwner()
	scheduler.SetClaims(x.edit, now.Name, now.Claims)
	x.put(TableVirtualClusters, now)
	note(x, KindVirtualCluster, now.Name, was, now)
	t.evaluate(now.Name)
	if first && x.edit.World().AnyOwner() {
		t.evaluatePerNode()
	}
}

// evaluatePerNode makes evaluations of the system and sysbatch jobs of which something runs, so that no claim takes from it (semantics
// part 0, rule 7): what was placed while nobody owned anything does not state what it is.
func (t claimTable) evaluatePerNode() {
	var jobs []*structs.Job
	for j := range rows[structs.Job](t.x, false, TableJobs, byPerNode, byPerNode) {
		if !j.Stop && t.x.tallyOf(j.Namespace, j.ID).Live > 0 {
			jobs = append(jobs, j)
		}
	}
	t.mint(jobs)
}

// postpone stores an edit that waits until it can be admitted.
func (t claimTable) postpone(was, edit *structs.VirtualCluster, why error) error {
	now := was.Copy()
	if now == nil {
		now = &structs.VirtualCluster{Name: edit.Name, OverLimit: edit.OverLimit, Points: edit.Points, CreateIndex: t.x.index}
	}
	now.ModifyIndex = t.x.index
	now.Pending = &structs.PendingCells{OverLimit: edit.OverLimit, Cells: edit.Cells, Windows: edit.Windows, Index: t.x.index, Reason: reasonOf(why)}
	t.x.put(TableVirtualClusters, now)
	note(t.x, KindVirtualCluster, now.Name, was, now)
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

// maxClaimEvals bounds the evaluations that an edit of a virtual cluster makes: the jobs that were registered first.
const maxClaimEvals = 1_000

// evaluate makes evaluations of the owner's jobs of which something runs, so that it may be raised.
func (t claimTable) evaluate(owner string) {
	x := t.x
	var jobs []*structs.Job
	for j := range rows[structs.Job](x, false, TableJobs, byPrefix, owner, "") {
		if !j.Stop && !j.PerNode() && j.Class != structs.ClassOpportunistic && x.tallyOf(j.Namespace, j.ID).Live > 0 {
			jobs = append(jobs, j)
		}
	}
	t.mint(jobs)
}

// mint makes evaluations of jobs, of those that were registered first if there are too many.
func (t claimTable) mint(jobs []*structs.Job) {
	slices.SortFunc(jobs, func(a, b *structs.Job) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range jobs[:min(len(jobs), maxClaimEvals)] {
		t.x.mint(structs.Evaluation{
			Namespace: j.Namespace, JobID: j.ID, Priority: j.Priority, Type: j.Type, TriggeredBy: structs.EvalTriggerVirtualCluster, JobModifyIndex: j.JobModifyIndex,
		})
	}
}

// writeLost writes back what has lost its claim, so that rows and World agree.
func (t claimTable) writeLost() {
	x := t.x
	for _, id := range x.edit.LostClaims() {
		was := x.alloc(id)
		if was == nil || was.AllocatedResources == nil || was.AllocatedResources.Shared.Terms == nil {
			continue
		}
		now := *was
		now.AllocatedResources = was.AllocatedResources.Copy()
		terms := was.AllocatedResources.Shared.Terms.Opportunistic()
		now.AllocatedResources.Shared.Terms = &terms
		now.DesiredDescription = structs.DescLostClaim
		now.ModifyTime = x.now
		x.putAlloc(was, &now, false)
	}
}

// ClaimsIndex returns the index that last changed anything that virtual clusters show: what is owned, what runs, which nodes
// there are, what is offered, and the time by which windows are looked up. A watch set that is given watches all of it.
func (s *Snapshot) ClaimsIndex(ws *WatchSet) uint64 {
	index := uint64(0)
	for _, table := range []string{TableVirtualClusters, TableNodes, TableAllocs, TableConfig, TableExchanges, TableClaimsTime} {
		if ws != nil {
			ws.store = s.v.store
			ws.addTable(s.v, table)
		}
		index = max(index, s.TableIndex(table))
	}
	return index
}

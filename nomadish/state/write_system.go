package state

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/jobcount"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// SchedulerConfig sets the scheduler's configuration. With CAS and another index it
// answers with a conflict.
func (w *Writer) SchedulerConfig(index uint64, e *structs.SchedulerConfigEntry) error {
	return w.commit(index, e.Time, structs.EventSchedulerConfigUpdated, "", func(x *txn) error {
		if err := e.Config.Validate(); err != nil {
			return err
		}
		was := get[structs.SchedulerConfiguration](x.rows, TableConfig, byID)
		now := e.Config
		now.CreateIndex, now.ModifyIndex = x.index, x.index
		have := uint64(0)
		if was != nil {
			have, now.CreateIndex = was.ModifyIndex, was.CreateIndex
		}
		if e.CAS && e.CheckIndex != have {
			return structs.Errorf(structs.CodeConflict, "scheduler configuration: it was changed at index %d, not %d", have, e.CheckIndex).
				WithHint("read it again and repeat the change")
		}
		x.put(TableConfig, &now)
		x.edit.Configure(&now)
		note(x, KindConfig, "scheduler-configuration", was, &now)
		return nil
	})
}

// AutopilotConfig sets how the leader looks after the servers. With CAS and another
// index it answers with a conflict.
func (w *Writer) AutopilotConfig(index uint64, e *structs.AutopilotConfigEntry) error {
	return w.commit(index, e.Time, "", "", func(x *txn) error {
		if err := e.Config.Validate(); err != nil {
			return err
		}
		now := e.Config
		now.CreateIndex, now.ModifyIndex = x.index, x.index
		have := uint64(0)
		if was := get[structs.AutopilotConfiguration](x.rows, TableAutopilot, byID); was != nil {
			have, now.CreateIndex = was.ModifyIndex, was.CreateIndex
		}
		if e.CAS && e.CheckIndex != have {
			return structs.Errorf(structs.CodeConflict, "autopilot configuration: it was changed at index %d, not %d", have, e.CheckIndex).
				WithHint("read it again and repeat the change")
		}
		x.put(TableAutopilot, &now)
		return nil
	})
}

// ClusterMeta sets the cluster's identity, once.
func (w *Writer) ClusterMeta(index uint64, e *structs.ClusterMetaEntry) error {
	return w.commit(index, e.Time, "", "", func(x *txn) error {
		if get[structs.ClusterMeta](x.rows, TableCluster, byID) == nil {
			x.put(TableCluster, &structs.ClusterMeta{ClusterID: e.ClusterID, CreateTime: e.Time, CreateIndex: x.index})
		}
		return nil
	})
}

// SigningKey adds a key that the servers sign with.
func (w *Writer) SigningKey(index uint64, e *structs.SigningKeyEntry) error {
	return w.commit(index, e.Time, "", "", func(x *txn) error {
		if err := checkID("signing key ID", e.Key.KeyID); err != nil {
			return err
		}
		known := get[structs.SigningKey](x.rows, TableSigningKeys, byID, e.Key.KeyID) != nil
		if known || e.First && memtable.Open(x.rows, false, TableSigningKeys, byID).Next() != nil {
			return nil
		}
		now := e.Key
		now.CreateTime, now.CreateIndex = e.Time, x.index
		x.put(TableSigningKeys, &now)
		return nil
	})
}

// Collect forgets what garbage collection found, as far as it is still over.
func (w *Writer) Collect(index uint64, e *structs.CollectEntry) error {
	return w.commit(index, e.Time, structs.EventCollected, "", func(x *txn) error {
		jobs := map[structs.NamespacedID]bool{}
		for _, id := range e.Jobs {
			jobs[id] = x.jobCollectable(id)
		}
		for _, id := range e.Allocs {
			if a := x.alloc(id); a != nil && x.allocCollectable(a, jobs) {
				x.dropAlloc(a)
			}
		}
		for _, id := range e.Evals {
			if was := get[structs.Evaluation](x.rows, TableEvals, byID, id); was != nil && was.Terminal() {
				x.dropEval(was)
			}
		}
		for _, id := range sortedIDs(jobs) {
			if job := x.job(id.Namespace, id.ID); job != nil && jobs[id] {
				x.purge(job)
			}
		}
		for _, id := range e.Nodes {
			if node := x.node(id); node != nil && x.nodeCollectable(node) {
				x.dropNode(node)
			}
		}
		if e.HistoryBefore > 0 {
			x.forgetHistory(e.HistoryBefore)
		}
		return nil
	})
}

// jobCollectable: it is dead and nothing of it is open or running.
func (x *txn) jobCollectable(id structs.NamespacedID) bool {
	job := x.job(id.Namespace, id.ID)
	t := x.tallyOf(id.Namespace, id.ID)
	return job != nil && job.Status == structs.JobStatusDead && t.Live == 0 && t.Open == 0 && t.Unended == 0
}

// allocCollectable: it has ended (or its node is gone and will never report it), and
// nothing is to be learned from it: it was replaced or stopped, its version is past,
// or its job is over. A batch job's ended allocations show what is done, until then.
func (x *txn) allocCollectable(a *structs.Allocation, jobs map[structs.NamespacedID]bool) bool {
	if !a.ClientTerminal() && (!a.ServerTerminal() || x.node(a.NodeID) != nil) {
		return false
	}
	if a.ServerTerminal() || a.NextAllocation != "" {
		return true
	}
	job := x.job(a.Namespace, a.JobID)
	return job == nil || job.Stop || a.JobVersion < job.Version || jobs[job.NamespacedID()]
}

// nodeCollectable: it is down and nothing on it is unended.
func (x *txn) nodeCollectable(n *structs.Node) bool {
	if n.Status != structs.NodeStatusDown {
		return false
	}
	over := true
	x.allocs.Each(alloctable.ByNode, indexkey.Hash(n.ID), func(r *alloctable.Row) bool {
		over = r.Terminal()
		return over
	})
	return over
}

// Reconcile makes anew what is derived from the tables: summaries, tallies and the
// World. Differences, called before, returns what it mends.
func (w *Writer) Reconcile(index uint64, e *structs.ReconcileEntry) error {
	return w.commit(index, e.Time, structs.EventReconciled, "", func(x *txn) error {
		x.edit = rebuild(x.rows, &x.allocs.Table)
		x.rebuildTallies()
		for row := range rows[structs.Project](x.rows, false, TableProjects, byID) {
			x.moves.Given(row.Name) // its levels are derived again
		}
		requestRows{x}.mendRequests()
		for _, job := range collect(rows[structs.Job](x.rows, false, TableJobs, byID)) {
			if now := x.recounted(job); now != nil {
				x.put(TableSummaries, now)
			}
			x.counts(job.Namespace, job.ID) // its status is derived again
		}
		return nil
	})
}

// recounted is the job's summary counted anew; nil when it is right already. What
// is queued stays as the evaluations reported last.
func (x *txn) recounted(job *structs.Job) *structs.JobSummary {
	was := get[structs.JobSummary](x.rows, TableSummaries, byID, job.Namespace, job.ID)
	now := &structs.JobSummary{
		JobID: job.ID, Namespace: job.Namespace, CreateIndex: x.index, ModifyIndex: x.index,
		Summary: x.recount(job),
	}
	queued := map[string]int{}
	if was != nil {
		now.CreateIndex = was.CreateIndex
		for group, line := range was.Summary { // order does not matter: a map made of a map
			queued[group] = line.Queued
		}
	}
	jobcount.Fit(now.Summary, job, queued)
	if was != nil && maps.Equal(was.Summary, now.Summary) {
		return nil
	}
	return now
}

// tallies counts every job's allocations and evaluations from their rows.
func tallies(r reader, allocs *alloctable.Table) map[structs.NamespacedID]*jobcount.Tally {
	out := map[structs.NamespacedID]*jobcount.Tally{}
	of := func(ns, id string) *jobcount.Tally {
		k := structs.NamespacedID{ID: id, Namespace: ns}
		if out[k] == nil {
			out[k] = &jobcount.Tally{Namespace: ns, JobID: id}
		}
		return out[k]
	}
	for a := range allocs.All {
		of(a.Namespace(), a.JobID().ID).AddAlloc(a, 1)
	}
	for e := range rows[structs.Evaluation](r, false, TableEvals, byID) {
		of(e.Namespace, e.JobID).AddEval(e, 1)
	}
	return out
}

func (x *txn) rebuildTallies() {
	x.tallies, x.live, x.tok = persist.Tree[indexkey.Hashed, *jobcount.Tally]{}, liveOf(&x.allocs.Table), persist.NewToken()
	all := tallies(x.rows, &x.allocs.Table)
	for _, id := range sortedIDs(all) {
		persist.Put(x.tok, &x.tallies, indexkey.HashJob(id.Namespace, id.ID), all[id])
	}
}

// Rebuild makes the World anew from a snapshot's tables. It equals the snapshot's
// own World, or there is a fault in one of the two.
func Rebuild(s *Snapshot) *scheduler.World { return rebuild(s.v.txn, s.v.allocs).World() }

func rebuild(r reader, allocs *alloctable.Table) *scheduler.Edit {
	edit := scheduler.NewWorld().Edit()
	if c := get[structs.SchedulerConfiguration](r, TableConfig, byID); c != nil {
		edit.Configure(c)
	}
	for n := range rows[structs.Node](r, false, TableNodes, byID) {
		edit.UpsertNode(n)
	}
	owned := map[string][]structs.CellClaim{}
	for v := range rows[structs.VirtualCluster](r, false, TableVirtualClusters, byID) {
		if len(v.Claims) > 0 {
			owned[v.Name] = v.Claims
		}
	}
	slotClaims(r, owned)
	scheduler.RestoreClaims(edit, owned)
	for l := range rows[structs.License](r, false, TableLicenses, byID) {
		scheduler.SetLicense(edit, l.Name, l.Count)
	}
	for a := range allocs.All {
		edit.UpsertAlloc(a.Brief())
	}
	for h := range rows[structs.Reservation](r, false, TableReservations, byID) {
		edit.Reserve(h)
	}
	restoreWorkflows(r, edit)
	restoreProjects(r, edit)
	edit.RetryPins()
	return edit
}

// Differences returns where a snapshot's derived parts (World, summaries, tallies,
// job statuses) differ from what its tables contain. None is right; any is a fault of
// ours that a LogReconcile entry mends.
func Differences(s *Snapshot) []string {
	return slices.Clip(append(s.v.world.Diff(Rebuild(s)), TableDifferences(s)...))
}

// TableDifferences is Differences but for the World: what is wrong of requests (these begin
// with "pending request "), tallies, summaries and job statuses.
func TableDifferences(s *Snapshot) []string {
	out := requestFaults(s.v.txn)
	x := &txn{rows: s.v.txn, allocs: s.v.allocs.Edit(), tallies: s.v.tallies, entry: entry{jobs: map[structs.NamespacedID]*counts{}}}
	all := tallies(x.rows, &x.allocs.Table)
	have := map[structs.NamespacedID]*jobcount.Tally{}
	x.tallies.Ascend(nil, func(_ indexkey.Hashed, t *jobcount.Tally) bool {
		have[structs.NamespacedID{ID: t.JobID, Namespace: t.Namespace}] = t
		return true
	})
	for _, id := range sortedIDs(have) {
		if want := all[id]; want == nil || *want != *have[id] {
			out = append(out, fmt.Sprintf("tally of job %s: have %+v, want %+v", id, *have[id], want))
		}
		delete(all, id)
	}
	for _, id := range sortedIDs(all) {
		out = append(out, fmt.Sprintf("tally of job %s: have none, want %+v", id, *all[id]))
	}
	out = append(out, s.ProjectUsage(nil).faults()...)
	for job := range rows[structs.Job](x.rows, false, TableJobs, byID) {
		if want := x.recounted(job); want != nil {
			have := get[structs.JobSummary](x.rows, TableSummaries, byID, job.Namespace, job.ID)
			out = append(out, fmt.Sprintf("summary of job %s: have %+v, want %+v", job.NamespacedID(), have, want))
		}
		t := x.tallyOf(job.Namespace, job.ID)
		if want := jobcount.Status(job, &t); want != job.Status {
			out = append(out, fmt.Sprintf("status of job %s: have %s, want %s", job.NamespacedID(), job.Status, want))
		}
	}
	return slices.Clip(out)
}

package state

import (
	"iter"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// reader is what reads go through: a view's transaction or the writer's own.
type reader = memtable.Reader

// tableRows are the tables of memdb as a transaction has them.
type tableRows = memtable.ReadWriter

// get is the row that a unique index names, or nil.
func get[T any](r reader, table, index string, args ...any) *T {
	return memtable.Get[T](r, table, index, args...)
}

// named is get by a whole key of texts, the fastest of all reads.
func named[T any](r reader, table string, parts ...string) *T {
	return memtable.Named[T](r, table, parts...)
}

// watched is the view's tables, with what is read of them watched by ws.
func (v *view) watched(ws *WatchSet) memtable.Watched {
	if ws == nil {
		return unwatched(v.txn)
	}
	return memtable.Watched{Rows: v.txn, Watch: func(table string, changed <-chan struct{}) { ws.add(v, table, changed) }}
}

// unwatched is tables of which nothing is watched.
func unwatched(r reader) memtable.Watched { return memtable.Watched{Rows: r} }

// one is get on a view, watched by ws.
func one[T any](v *view, ws *WatchSet, table, index string, args ...any) *T {
	return memtable.One[T](v.watched(ws), table, index, args...)
}

// oneNamed is named on a view, watched by ws.
func oneNamed[T any](v *view, ws *WatchSet, table string, parts ...string) *T {
	return memtable.NamedIn[T](v.watched(ws), table, parts...)
}

// rows walks an index in key order, or backwards.
func rows[T any](r reader, reverse bool, table, index string, args ...any) iter.Seq[*T] {
	return memtable.Rows[T](r, reverse, table, index, args...)
}

// many is rows on a view; the whole range is watched by ws as one.
func many[T any](v *view, ws *WatchSet, reverse bool, table, index string, args ...any) iter.Seq[*T] {
	return memtable.Many[T](v.watched(ws), reverse, table, index, args...)
}

// where keeps what passes.
func where[T any](items iter.Seq[*T], pass func(*T) bool) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for item := range items {
			if pass(item) && !yield(item) {
				return
			}
		}
	}
}

// inNamespace keeps the rows of a namespace; structs.AllNamespaces keeps all.
func inNamespace[T any](items iter.Seq[*T], ns string, of func(*T) string) iter.Seq[*T] {
	if ns == structs.AllNamespaces {
		return items
	}
	return where(items, func(row *T) bool { return of(row) == ns })
}

// Job is the newest version of a job; nil if there is none.
func (s *Snapshot) Job(ws *WatchSet, ns, id string) *structs.Job {
	return oneNamed[structs.Job](s.v, ws, TableJobs, ns, id)
}

// JobVersion is one version of a job; nil if it is not kept.
func (s *Snapshot) JobVersion(ns, id string, version uint64) *structs.Job {
	return jobVersion(s.v.txn, ns, id, version)
}

func jobVersion(r reader, ns, id string, version uint64) *structs.Job {
	if now := named[structs.Job](r, TableJobs, ns, id); now != nil && now.Version == version {
		return now
	}
	return get[structs.Job](r, TableVersions, byID, ns, id, version)
}

// JobVersions are the versions kept of a job, newest first.
func (s *Snapshot) JobVersions(ws *WatchSet, ns, id string) []*structs.Job {
	var out []*structs.Job
	if now := s.Job(ws, ns, id); now != nil {
		out = append(out, now)
	}
	for old := range many[structs.Job](s.v, ws, true, TableVersions, byID+"_prefix", ns, id, "") {
		out = append(out, old)
	}
	return out
}

// Jobs walks the newest versions of the jobs of a namespace ("*": all) whose ID begins with prefix, ordered by namespace and ID, or backwards.
func (s *Snapshot) Jobs(ws *WatchSet, ns, prefix string, reverse bool) iter.Seq[*structs.Job] {
	if ns != structs.AllNamespaces {
		return many[structs.Job](s.v, ws, reverse, TableJobs, byPrefix, ns, prefix)
	}
	all := many[structs.Job](s.v, ws, reverse, TableJobs, byID)
	return where(all, func(j *structs.Job) bool { return strings.HasPrefix(j.ID, prefix) })
}

// JobSet is jobs that have something in common, and are found without a look at all others.
type JobSet string

const (
	// ScalingJobs have scaling policies, see structs.Job.HasScaling.
	ScalingJobs JobSet = byScaling
	// JobsPerNode are the system and sysbatch jobs that are not stopped, without those that only make others.
	JobsPerNode JobSet = byPerNode
)

// JobsOf walks the jobs of a set, ordered by namespace and ID.
func (s *Snapshot) JobsOf(ws *WatchSet, set JobSet) iter.Seq[*structs.Job] {
	return many[structs.Job](s.v, ws, false, TableJobs, string(set), string(set))
}

// JobSummary counts a job's allocations; nil if there is no such job.
func (s *Snapshot) JobSummary(ws *WatchSet, ns, id string) *structs.JobSummary {
	return oneNamed[structs.JobSummary](s.v, ws, TableSummaries, ns, id)
}

// JobSummaries walks the summaries of all jobs, by namespace and job ID.
func (s *Snapshot) JobSummaries() iter.Seq[*structs.JobSummary] {
	return many[structs.JobSummary](s.v, nil, false, TableSummaries, byID)
}

// JobSubmission is the text that a version was registered from; nil if none is kept.
func (s *Snapshot) JobSubmission(ns, id string, version uint64) *structs.JobSubmission {
	if row := one[submissionRow](s.v, nil, TableSubmissions, byID, ns, id, version); row != nil {
		return row.Submission
	}
	return nil
}

// ScalingEvents are a job's scaling events by group, newest first.
func (s *Snapshot) ScalingEvents(ws *WatchSet, ns, id string) map[string][]*structs.ScalingEvent {
	if row := one[scalingRow](s.v, ws, TableScaling, byID, ns, id); row != nil {
		return row.Groups
	}
	return nil
}

// Node is a node, with its secret; nil if it is unknown.
func (s *Snapshot) Node(ws *WatchSet, id string) *structs.Node {
	return oneNamed[structs.Node](s.v, ws, TableNodes, id)
}

// Nodes walks the nodes whose ID begins with prefix, by ID, or backwards.
func (s *Snapshot) Nodes(ws *WatchSet, prefix string, reverse bool) iter.Seq[*structs.Node] {
	return many[structs.Node](s.v, ws, reverse, TableNodes, byPrefix, prefix)
}

// Eval is an evaluation; nil if there is none.
func (s *Snapshot) Eval(ws *WatchSet, id string) *structs.Evaluation {
	return oneNamed[structs.Evaluation](s.v, ws, TableEvals, id)
}

// Evals walks the evaluations of a namespace ("*": all) whose ID begins with prefix, by ID, or backwards.
func (s *Snapshot) Evals(ws *WatchSet, ns, prefix string, reverse bool) iter.Seq[*structs.Evaluation] {
	all := many[structs.Evaluation](s.v, ws, reverse, TableEvals, byPrefix, prefix)
	return inNamespace(all, ns, func(e *structs.Evaluation) string { return e.Namespace })
}

// EvalsByJob are a job's evaluations, by ID.
func (s *Snapshot) EvalsByJob(ws *WatchSet, ns, id string) []*structs.Evaluation {
	return collect(many[structs.Evaluation](s.v, ws, false, TableEvals, byJob, ns, id))
}

// EvaluatedJobs walks the IDs, in order, of the jobs of a namespace whose ID begins with prefix and of which there are evaluations, with the index at which the first
// of these was created. A job that was purged is among them as long as one of its allocations has not ended: an evaluation is kept until all of its have.
func (s *Snapshot) EvaluatedJobs(ns, prefix string) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		job, first := "", uint64(0)
		for e := range rows[structs.Evaluation](s.v.txn, false, TableEvals, byJob+"_prefix", ns, prefix) { // by job
			switch {
			case e.JobID == job:
				first = min(first, e.CreateIndex)
			case job != "" && !yield(job, first):
				return
			default:
				job, first = e.JobID, e.CreateIndex
			}
		}
		if job != "" {
			yield(job, first)
		}
	}
}

// PendingEvals are the evaluations that are pending or blocked, each status by ID.
func (s *Snapshot) PendingEvals() []*structs.Evaluation {
	out := collect(rows[structs.Evaluation](s.v.txn, false, TableEvals, byOpen, structs.EvalStatusPending))
	return append(out, collect(rows[structs.Evaluation](s.v.txn, false, TableEvals, byOpen, structs.EvalStatusBlocked))...)
}

// OpenEvals walks the evaluations of a status, pending or blocked, by ID.
func (s *Snapshot) OpenEvals(ws *WatchSet, status string) iter.Seq[*structs.Evaluation] {
	return many[structs.Evaluation](s.v, ws, false, TableEvals, byOpen, status)
}

// Cluster is the cluster's identity; empty in one that is not bootstrapped yet.
func (s *Snapshot) Cluster() structs.ClusterMeta {
	if row := one[structs.ClusterMeta](s.v, nil, TableCluster, byID); row != nil {
		return *row
	}
	return structs.ClusterMeta{}
}

// SigningKeys are the keys that the servers sign with, by ID.
func (s *Snapshot) SigningKeys(ws *WatchSet) []*structs.SigningKey {
	return collect(many[structs.SigningKey](s.v, ws, false, TableSigningKeys, byID))
}

// AutopilotConfig is how the leader looks after the servers, the default if it was never set.
func (s *Snapshot) AutopilotConfig(ws *WatchSet) structs.AutopilotConfiguration {
	if row := one[structs.AutopilotConfiguration](s.v, ws, TableAutopilot, byID); row != nil {
		return *row
	}
	return structs.DefaultAutopilotConfiguration()
}

// SchedulerConfig is the scheduler's configuration, the default one if it was never set.
func (s *Snapshot) SchedulerConfig(ws *WatchSet) structs.SchedulerConfiguration {
	if row := one[structs.SchedulerConfiguration](s.v, ws, TableConfig, byID); row != nil {
		return *row
	}
	return structs.DefaultSchedulerConfiguration()
}

// History walks the records of ended allocations of a namespace ("*": all) whose
// job ID begins with prefix, latest end first.
func (s *Snapshot) History(ws *WatchSet, ns, prefix string) iter.Seq[*structs.HistoryRecord] {
	if ws != nil {
		ws.store = s.v.store
		ws.channels.Add(s.v.abandoned)
		ws.addTable(s.v, TableHistory)
	}
	all := inNamespace(s.v.past.LatestFirst, ns, func(h *structs.HistoryRecord) string { return h.Namespace })
	return where(all, func(h *structs.HistoryRecord) bool { return strings.HasPrefix(h.JobID, prefix) })
}

func collect[T any](items iter.Seq[*T]) []*T {
	var out []*T
	for item := range items {
		out = append(out, item)
	}
	return out
}

// Package gc forgets what is over and old: evaluations, allocations, dead jobs, workflows that have ended, nodes
// that stay away, history past its retention.
//
// It runs on the leader. It only proposes: whether a thing is still over is checked
// again when the log entry is applied.
package gc

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var collectTime = telemetry.NewTimer("nomad.gc.collect")

// entryLimit bounds the things that one log entry forgets.
const entryLimit = 1024

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options sets how old things must be. Zero values are replaced by the defaults named.
type Options struct {
	Interval  time.Duration // between collections (5 min)
	Eval      time.Duration // ended evaluations of services and of system jobs, with their allocations (1 h)
	BatchEval time.Duration // of batch jobs: their allocations show that they ran (24 h)
	Job       time.Duration // dead jobs, and workflows whose run has ended (4 h)
	Node      time.Duration // nodes that are down (24 h)
	History   time.Duration // history records; negative: kept (90 days)
	Clock     clock.Clock   // (the machine's)
	Logger    hclog.Logger
}

// Collector forgets.
type Collector struct {
	opts  Options
	store *state.Store
	apply Applier
}

// New makes a collector.
func New(opts Options, store *state.Store, apply Applier) *Collector {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&opts.Interval, 5*time.Minute)
	set(&opts.Eval, time.Hour)
	set(&opts.BatchEval, 24*time.Hour)
	set(&opts.Job, 4*time.Hour)
	set(&opts.Node, 24*time.Hour)
	set(&opts.History, 90*24*time.Hour)
	opts.Clock = clock.Or(opts.Clock)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Collector{opts: opts, store: store, apply: apply}
}

// Run collects at every interval until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	tick := time.NewTicker(c.opts.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
			c.opts.Logger.Error("collect garbage", "error", err)
		}
	}
}

// Collect collects what is old enough, once.
func (c *Collector) Collect(ctx context.Context) error { return c.collect(ctx, false) }

// Force collects all that is over, whatever its age (but not history).
func (c *Collector) Force(ctx context.Context) error { return c.collect(ctx, true) }

func (c *Collector) collect(ctx context.Context, force bool) error {
	defer collectTime.Since(time.Now())
	for _, find := range []func(*state.Snapshot, time.Time, bool) []*structs.CollectEntry{c.evals, c.jobs, c.nodes, c.history} {
		for _, part := range find(c.store.Snapshot(), c.opts.Clock.Now(), force) {
			part.Time = c.opts.Clock.Now().UnixNano()
			if _, err := c.apply.Apply(ctx, structs.LogCollect, part); err != nil {
				return err
			}
		}
	}
	return c.workflows(ctx, force)
}

// workflows forgets workflows whose run has ended, as long ago as dead jobs are forgotten.
func (c *Collector) workflows(ctx context.Context, force bool) error {
	now := c.opts.Clock.Now()
	for r := range c.store.Snapshot().Workflows(nil).List(structs.AllNamespaces, "", false) {
		if r.Alive() || !old(r.EndTime, c.opts.Job, now, force) {
			continue
		}
		// A run that was started meanwhile has not ended before.
		_, err := c.apply.Apply(ctx, structs.LogWorkflowDelete, &structs.WorkflowDeleteEntry{
			Namespace: r.Namespace, ID: r.ID, EndedBefore: r.EndTime + 1, Time: now.UnixNano(),
		})
		if err != nil && structs.CodeOf(err) != structs.CodeConflict && structs.CodeOf(err) != structs.CodeNotFound {
			return err
		}
	}
	return nil
}

// ofLiveRun reports whether a job is of a run of a workflow that has not ended: how the run goes on follows from it.
func ofLiveRun(snap *state.Snapshot, j *structs.Job) bool {
	if j.Workflow == nil {
		return false
	}
	r := snap.Workflows(nil).Get(j.Namespace, j.Workflow.ID)
	return r != nil && r.Alive() && r.Run == j.Workflow.Run
}

// old reports whether a time (Unix nanoseconds) is at least age ago.
func old(nanos int64, age time.Duration, now time.Time, force bool) bool {
	return force || now.Sub(time.Unix(0, nanos)) >= age
}

// evals finds ended evaluations none of whose allocations still matter, and those
// allocations. An allocation that may yet be rescheduled matters, and so does one
// that records that an instance of a batch job has run: without it the job would run again.
// So does the one that records how often an instance that waits was requeued.
func (c *Collector) evals(snap *state.Snapshot, now time.Time, force bool) []*structs.CollectEntry {
	entry := &structs.CollectEntry{}
	for e := range snap.Evals(nil, structs.AllNamespaces, "", false) {
		if !e.Terminal() {
			continue
		}
		batch := e.Type == structs.JobTypeBatch || e.Type == structs.JobTypeSysBatch
		age := c.opts.Eval
		if batch {
			age = c.opts.BatchEval
		}
		if !old(e.ModifyTime, age, now, force) {
			continue
		}
		job := snap.Job(nil, e.Namespace, e.JobID)
		living := job != nil && !job.Stop && job.Status != structs.JobStatusDead
		var allocs []string
		keep := false
		for _, a := range snap.AllocsByEval(nil, e.ID) {
			needed := !over(snap, job, a) || (batch && job != nil && !job.Stop) ||
				(living && a.ClientStatus == structs.AllocClientFailed && a.NextAllocation == "" && !a.ServerTerminal()) ||
				(living && a.Requeues > 0 && newest(snap, a))
			if needed || !old(a.ModifyTime, age, now, force) {
				keep = true
				continue
			}
			allocs = append(allocs, a.ID)
		}
		entry.Allocs = append(entry.Allocs, allocs...)
		if !keep {
			entry.Evals = append(entry.Evals, e.ID)
		}
	}
	return split(entry)
}

// newest reports whether no other allocation was placed for an instance later.
func newest(snap *state.Snapshot, a *structs.Allocation) bool {
	return !slices.ContainsFunc(snap.AllocsByJob(nil, a.Namespace, a.JobID, false), func(o *structs.Allocation) bool {
		return o.Name == a.Name && o.CreateIndex > a.CreateIndex && (o.NodeID == a.NodeID || o.Job == nil || !o.Job.PerNode())
	})
}

// over reports whether nothing is to be learned from an allocation any more, as the
// state sees it when it forgets: an evaluation that went without its allocations would
// leave them to nobody.
func over(snap *state.Snapshot, job *structs.Job, a *structs.Allocation) bool {
	if !a.ClientTerminal() && (!a.ServerTerminal() || snap.Node(nil, a.NodeID) != nil) {
		return false
	}
	return a.ServerTerminal() || a.NextAllocation != "" || job == nil || job.Stop || a.JobVersion < job.Version
}

// jobs finds dead jobs, each with its evaluations and allocations: those of a batch
// job record that it has run, and go only with it.
func (c *Collector) jobs(snap *state.Snapshot, now time.Time, force bool) []*structs.CollectEntry {
	var entries []*structs.CollectEntry
	entry := &structs.CollectEntry{}
	for j := range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		if j.Status != structs.JobStatusDead || ((j.IsPeriodic() || j.IsParameterized()) && !j.Stop) || j.VersionTag != nil || ofLiveRun(snap, j) {
			continue
		}
		last := j.SubmitTime
		var evals, allocs []string
		for _, e := range snap.EvalsByJob(nil, j.Namespace, j.ID) {
			last = max(last, e.ModifyTime)
			evals = append(evals, e.ID)
		}
		for _, a := range snap.AllocsByJob(nil, j.Namespace, j.ID, true) {
			last = max(last, a.ModifyTime)
			allocs = append(allocs, a.ID)
		}
		if !old(last, c.opts.Job, now, force) {
			continue
		}
		if size(entry) > 0 && size(entry)+1+len(evals)+len(allocs) > entryLimit {
			entries, entry = append(entries, entry), &structs.CollectEntry{}
		}
		entry.Jobs = append(entry.Jobs, j.NamespacedID())
		entry.Evals = append(entry.Evals, evals...)
		entry.Allocs = append(entry.Allocs, allocs...)
	}
	var parts []*structs.CollectEntry
	for _, e := range append(entries, entry) {
		parts = append(parts, split(e)...) // one job alone may be too much for an entry
	}
	return parts
}

// history finds whether there are records past their retention.
func (c *Collector) history(snap *state.Snapshot, now time.Time, _ bool) []*structs.CollectEntry {
	if c.opts.History < 0 {
		return nil
	}
	before := now.Add(-c.opts.History).UnixNano()
	for r := range snap.History(nil, structs.AllNamespaces, "") {
		if r.Ended < before {
			return []*structs.CollectEntry{{HistoryBefore: before}}
		}
	}
	return nil
}

// nodes finds nodes that have been down for long and hold nothing.
func (c *Collector) nodes(snap *state.Snapshot, now time.Time, force bool) []*structs.CollectEntry {
	entry := &structs.CollectEntry{}
	for n := range snap.Nodes(nil, "", false) {
		unended := func(a *structs.Allocation) bool { return !a.Terminal() }
		if n.Status == structs.NodeStatusDown && old(n.StatusUpdatedAt*int64(time.Second), c.opts.Node, now, force) &&
			!slices.ContainsFunc(snap.AllocsByNode(nil, n.ID), unended) {
			entry.Nodes = append(entry.Nodes, n.ID)
		}
	}
	return split(entry)
}

// split makes entries of at most entryLimit things.
func split(e *structs.CollectEntry) []*structs.CollectEntry {
	var out []*structs.CollectEntry
	for size(e) > 0 {
		part := &structs.CollectEntry{}
		part.Jobs, e.Jobs = head(e.Jobs)
		part.Allocs, e.Allocs = head(e.Allocs)
		if len(e.Allocs) == 0 { // evaluations last: by them what is left over is found again
			part.Evals, e.Evals = head(e.Evals)
		}
		part.Nodes, e.Nodes = head(e.Nodes)
		out = append(out, part)
	}
	return out
}

func size(e *structs.CollectEntry) int {
	return len(e.Evals) + len(e.Allocs) + len(e.Jobs) + len(e.Nodes)
}

func head[T any](s []T) (first, rest []T) {
	n := min(len(s), entryLimit)
	return s[:n], s[n:]
}

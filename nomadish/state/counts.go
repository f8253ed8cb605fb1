package state

import (
	"maps"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/jobcount"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// counts is how much a job's counts move within one entry. They are settled once at
// its end: an entry of 10,000 placements writes one summary.
type counts struct {
	jobcount.Tally        // the moves, not the totals
	since          uint64 // when the job was registered: allocations placed before are of an earlier job of its ID, purged since
	groups         map[string]structs.TaskGroupSummary
	unread         bool           // see Writer.Unread: they are counted anew when they are needed
	queued         map[string]int // what waits by the last evaluation; nil: as it was
}

// counts notes that a job's counts, and so its status, may move.
func (x *txn) counts(ns, id string) *counts {
	k := structs.NamespacedID{ID: id, Namespace: ns}
	c, ok := x.jobs[k]
	if !ok {
		c = &counts{unread: x.unread}
		if job := x.job(ns, id); job != nil {
			c.since = job.CreateIndex
		}
		x.jobs[k] = c
	}
	return c
}

// tallyOf is a job's tally as of now, within the entry.
func (x *txn) tallyOf(ns, id string) jobcount.Tally {
	out := jobcount.Tally{Namespace: ns, JobID: id}
	if t, found := x.tallies.Get(indexkey.HashJob(ns, id)); found {
		out = *t
	}
	if c := x.jobs[structs.NamespacedID{ID: id, Namespace: ns}]; c != nil {
		out.Add(&c.Tally)
	}
	return out
}

// countAlloc moves a job's counts from one state of an allocation to another;
// either may be nil.
func (x *txn) countAlloc(was, now *structs.Allocation) {
	if was != nil {
		x.counts(was.Namespace, was.JobID).addAlloc(was, -1)
	}
	if now != nil {
		x.counts(now.Namespace, now.JobID).addAlloc(now, 1)
	}
}

// addAlloc counts an allocation n times: in the summary only if it is of the job as registered, as Nomad does.
func (c *counts) addAlloc(a *structs.Allocation, n int) {
	c.AddAlloc(a, n)
	if a.CreateIndex < c.since || c.unread {
		return
	}
	if c.groups == nil {
		c.groups = map[string]structs.TaskGroupSummary{}
	}
	c.groups[a.TaskGroup] = jobcount.AddTo(c.groups[a.TaskGroup], a.ClientStatus, n)
}

func (x *txn) countEval(was, now *structs.Evaluation) {
	if was != nil {
		x.counts(was.Namespace, was.JobID).AddEval(was, -1)
	}
	if now != nil {
		x.counts(now.Namespace, now.JobID).AddEval(now, 1)
	}
}

// settle writes the counts that moved and the jobs' statuses that follow from them.
func (x *txn) settle() {
	for _, id := range sortedIDs(x.jobs) {
		x.settleTally(id)
		job := named[structs.Job](x.rows, TableJobs, id.Namespace, id.ID)
		if job == nil || x.unread && job.Workflow == nil && x.tallyOf(id.Namespace, id.ID).Open == 0 {
			continue
		}
		x.settleSummary(job, x.jobs[id])
		if !x.unread || job.Workflow != nil {
			x.settleStatus(job)
		}
	}
}

func (x *txn) settleTally(id structs.NamespacedID) {
	c := x.jobs[id]
	if c.Zero() {
		return
	}
	k := indexkey.HashJob(id.Namespace, id.ID)
	now := jobcount.Tally{Namespace: id.Namespace, JobID: id.ID}
	was, found := x.tallies.Get(k)
	if found {
		now = *was
	}
	now.Add(&c.Tally)
	c.Tally = jobcount.Tally{}
	switch {
	case !now.Zero():
		persist.Put(x.tok, &x.tallies, k, &now)
	case found:
		persist.Delete(x.tok, &x.tallies, k)
	}
}

func (x *txn) settleSummary(job *structs.Job, c *counts) {
	was := named[structs.JobSummary](x.rows, TableSummaries, job.Namespace, job.ID)
	now := &structs.JobSummary{JobID: job.ID, Namespace: job.Namespace, CreateIndex: x.index, ModifyIndex: x.index}
	old := map[string]structs.TaskGroupSummary{}
	if was != nil {
		now.CreateIndex, old = was.CreateIndex, was.Summary
	}
	if counted := was == nil || x.unread; counted {
		now.Summary = x.recount(job)
	} else {
		now.Summary = maps.Clone(was.Summary)
	}
	if now.Summary == nil {
		now.Summary = map[string]structs.TaskGroupSummary{}
	}
	if was != nil && !x.unread { // a new summary has counted what is there already
		for group, moves := range c.groups { // order does not matter: sums
			now.Summary[group] = jobcount.Plus(now.Summary[group], moves)
		}
	}
	c.groups = nil
	jobcount.Fit(now.Summary, job, c.queued)
	if was != nil && maps.Equal(old, now.Summary) {
		return
	}
	x.put(TableSummaries, now)
}

// recount counts a job's allocations by group from their rows, without those of an earlier job of its ID.
func (x *txn) recount(job *structs.Job) map[string]structs.TaskGroupSummary {
	out := map[string]structs.TaskGroupSummary{}
	x.allocs.Each(alloctable.ByJob, indexkey.HashJob(job.Namespace, job.ID), func(r *alloctable.Row) bool {
		if group := r.Group(); r.CreateIndex() >= job.CreateIndex {
			out[group] = jobcount.AddTo(out[group], r.ClientStatus(), 1)
		}
		return true
	})
	return out
}

func (x *txn) settleStatus(job *structs.Job) {
	t := x.tallyOf(job.Namespace, job.ID)
	status := jobcount.Status(job, &t)
	if status == job.Status {
		return
	}
	now := *job
	now.Status, now.ModifyIndex = status, x.index
	x.put(TableJobs, &now)
	note(x, KindJob, now.NamespacedID().String(), job, &now)
}

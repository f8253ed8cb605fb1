package state

import (
	"maps"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/structs"
)

// counts is how much a job's counts move within one entry. They are settled once at
// its end: an entry of 10,000 placements writes one summary.
type counts struct {
	tally  // the moves, not the totals
	groups map[string]structs.TaskGroupSummary
	queued map[string]int // what waits by the last evaluation; nil: as it was
}

// counts notes that a job's counts, and so its status, may move.
func (x *txn) counts(ns, id string) *counts {
	k := structs.NamespacedID{ID: id, Namespace: ns}
	c, ok := x.jobs[k]
	if !ok {
		c = &counts{groups: map[string]structs.TaskGroupSummary{}}
		x.jobs[k] = c
	}
	return c
}

// tallyOf is a job's tally as of now, within the entry.
func (x *txn) tallyOf(ns, id string) tally {
	out := tally{Namespace: ns, JobID: id}
	if t, found := x.tallies.Get(indexkey.HashJob(ns, id)); found {
		out = *t
	}
	if c := x.jobs[structs.NamespacedID{ID: id, Namespace: ns}]; c != nil {
		out.add(&c.tally)
	}
	return out
}

func (t *tally) add(o *tally) {
	t.Live += o.Live
	t.Unended += o.Unended
	t.Allocs += o.Allocs
	t.Open += o.Open
	t.Evals += o.Evals
}

func (t *tally) zero() bool { return t.Live|t.Unended|t.Allocs|t.Open|t.Evals == 0 }

// ending is what reports whether an allocation has ended.
type ending interface {
	Terminal() bool
	ClientTerminal() bool
}

func (t *tally) addAlloc(a ending, n int) {
	t.Allocs += n
	if !a.Terminal() {
		t.Live += n
	}
	if !a.ClientTerminal() {
		t.Unended += n
	}
}

func (t *tally) addEval(e *structs.Evaluation, n int) {
	t.Evals += n
	if !e.Terminal() {
		t.Open += n
	}
}

// addTo counts n allocations of a client status in a group's summary. One that is
// suspended has its node and waits to run there, like one that starts.
func addTo(s structs.TaskGroupSummary, status string, n int) structs.TaskGroupSummary {
	switch status {
	case structs.AllocClientPending, structs.AllocClientSuspended:
		s.Starting += n
	case structs.AllocClientRunning:
		s.Running += n
	case structs.AllocClientComplete:
		s.Complete += n
	case structs.AllocClientFailed:
		s.Failed += n
	case structs.AllocClientLost:
		s.Lost += n
	case structs.AllocClientUnknown:
		s.Unknown += n
	}
	return s
}

// plus adds what is counted, not what is queued.
func plus(a, b structs.TaskGroupSummary) structs.TaskGroupSummary {
	a.Complete += b.Complete
	a.Failed += b.Failed
	a.Running += b.Running
	a.Starting += b.Starting
	a.Lost += b.Lost
	a.Unknown += b.Unknown
	return a
}

// countAlloc moves a job's counts from one state of an allocation to another;
// either may be nil.
func (x *txn) countAlloc(was, now *structs.Allocation) {
	if was != nil {
		c := x.counts(was.Namespace, was.JobID)
		c.addAlloc(was, -1)
		c.groups[was.TaskGroup] = addTo(c.groups[was.TaskGroup], was.ClientStatus, -1)
	}
	if now != nil {
		c := x.counts(now.Namespace, now.JobID)
		c.addAlloc(now, 1)
		c.groups[now.TaskGroup] = addTo(c.groups[now.TaskGroup], now.ClientStatus, 1)
	}
}

func (x *txn) countEval(was, now *structs.Evaluation) {
	if was != nil {
		x.counts(was.Namespace, was.JobID).addEval(was, -1)
	}
	if now != nil {
		x.counts(now.Namespace, now.JobID).addEval(now, 1)
	}
}

// settle writes the counts that moved and the jobs' statuses that follow from them.
func (x *txn) settle() {
	for _, id := range sortedIDs(x.jobs) {
		x.settleTally(id)
		if job := get[structs.Job](x, TableJobs, byID, id.Namespace, id.ID); job != nil {
			x.settleSummary(job, x.jobs[id])
			x.settleStatus(job)
		}
	}
}

func (x *txn) settleTally(id structs.NamespacedID) {
	c := x.jobs[id]
	if c.zero() {
		return
	}
	k := indexkey.HashJob(id.Namespace, id.ID)
	now := tally{Namespace: id.Namespace, JobID: id.ID}
	was, found := x.tallies.Get(k)
	if found {
		now = *was
	}
	now.add(&c.tally)
	c.tally = tally{}
	switch {
	case !now.zero():
		x.tallies.Put(x.tok, k, &now)
	case found:
		x.tallies.Delete(x.tok, k)
	}
}

func (x *txn) settleSummary(job *structs.Job, c *counts) {
	was := get[structs.JobSummary](x, TableSummaries, byID, job.Namespace, job.ID)
	now := &structs.JobSummary{JobID: job.ID, Namespace: job.Namespace, CreateIndex: x.index, ModifyIndex: x.index}
	old := map[string]structs.TaskGroupSummary{}
	if was != nil {
		now.CreateIndex, old = was.CreateIndex, was.Summary
		now.Summary = maps.Clone(was.Summary)
	} else {
		now.Summary = x.recount(job.Namespace, job.ID)
	}
	if now.Summary == nil {
		now.Summary = map[string]structs.TaskGroupSummary{}
	}
	if was != nil { // a new summary has counted what is there already
		for group, moves := range c.groups { // order does not matter: sums
			now.Summary[group] = plus(now.Summary[group], moves)
		}
	}
	c.groups = map[string]structs.TaskGroupSummary{}
	fitSummary(now.Summary, job, c.queued)
	if was != nil && maps.Equal(old, now.Summary) {
		return
	}
	x.put(TableSummaries, now)
}

// fitSummary adds a line for every group of the job, sets what is queued (as queued
// states, unless it is nil), and removes lines of other groups that count nothing.
func fitSummary(groups map[string]structs.TaskGroupSummary, job *structs.Job, queued map[string]int) {
	known := map[string]bool{}
	for _, g := range job.TaskGroups {
		if g == nil {
			continue
		}
		known[g.Name] = true
		line := groups[g.Name]
		if queued != nil {
			line.Queued = queued[g.Name]
		}
		if job.Stop {
			line.Queued = 0
		}
		groups[g.Name] = line
	}
	maps.DeleteFunc(groups, func(name string, line structs.TaskGroupSummary) bool {
		line.Queued = 0
		return !known[name] && line == structs.TaskGroupSummary{}
	})
	for name, line := range groups { // order does not matter: each line by itself
		if !known[name] && line.Queued != 0 {
			line.Queued = 0
			groups[name] = line
		}
	}
}

// recount counts a job's allocations by group from their rows.
func (x *txn) recount(ns, id string) map[string]structs.TaskGroupSummary {
	out := map[string]structs.TaskGroupSummary{}
	x.allocs.Each(alloctable.ByJob, indexkey.HashJob(ns, id), func(r *alloctable.Row) bool {
		group := r.Group()
		out[group] = addTo(out[group], r.ClientStatus(), 1)
		return true
	})
	return out
}

func (x *txn) settleStatus(job *structs.Job) {
	t := x.tallyOf(job.Namespace, job.ID)
	status := deriveStatus(job, &t)
	if status == job.Status {
		return
	}
	now := *job
	now.Status, now.ModifyIndex = status, x.index
	x.put(TableJobs, &now)
	note(x, KindJob, now.NamespacedID().String(), job, &now)
}

// deriveStatus is a job's status: running while an allocation of it is not
// terminal, pending while something is to be decided, dead when all is over. What
// launches others, and a system job that waits for nodes, is not dead until stopped.
func deriveStatus(job *structs.Job, t *tally) string {
	switch {
	case t.Live > 0:
		return structs.JobStatusRunning
	case (job.IsPeriodic() || job.IsParameterized()) && !job.Stop:
		return structs.JobStatusRunning
	case t.Open > 0:
		return structs.JobStatusPending
	case job.Type == structs.JobTypeSystem && !job.Stop:
		return structs.JobStatusPending
	case job.Stop || t.Allocs > 0 || t.Evals > 0:
		return structs.JobStatusDead
	}
	return structs.JobStatusPending
}

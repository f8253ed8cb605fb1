package state

import (
	"math"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

// maxScalingEvents bounds the scaling events kept of a group, as Nomad does.
const maxScalingEvents = 20

func (x *txn) job(ns, id string) *structs.Job {
	return named[structs.Job](x.rows, TableJobs, ns, id)
}

// JobRegister stores a new version of a job, or leaves the one there is when the
// specification is the same, and stores the evaluation.
func (w *Writer) JobRegister(index uint64, e *structs.JobRegisterEntry) error {
	return w.commit(index, e.Time, structs.EventJobRegistered, "", func(x *txn) error {
		if e.Job == nil {
			return structs.Errorf(structs.CodeBadRequest, "job registration: no job")
		}
		if err := rowcheck.Job(e.Job); err != nil {
			return err
		}
		if e.Job.Namespace != structs.DefaultNamespace && get[structs.Namespace](x.rows, TableNamespaces, byID, e.Job.Namespace) == nil { // it was deleted meanwhile
			return structs.MissingNamespace(e.Job.Namespace)
		}
		was := x.job(e.Job.Namespace, e.Job.ID)
		if err := enforce(e.EnforceIndex, e.CheckIndex, was); err != nil {
			return err
		}
		job := was
		if was == nil || e.Job.SpecChanged(was) {
			fresh := *e.Job
			fresh.SubmitTime, fresh.Stable = x.now, false
			if was == nil {
				fresh.Version = x.firstVersion(fresh.Namespace, fresh.ID)
			}
			job = x.putVersion(was, &fresh)
		}
		if e.Submission != nil {
			x.put(TableSubmissions, &submissionRow{
				Namespace: job.Namespace, JobID: job.ID, Version: job.Version, Submission: e.Submission,
			})
		}
		return x.jobEval(job, e.Eval)
	})
}

// JobStability marks a version of a job as stable or not stable.
func (w *Writer) JobStability(index uint64, e *structs.JobStabilityEntry) error {
	return w.commit(index, e.Time, structs.EventJobRegistered, "", func(x *txn) error {
		job := x.job(e.Namespace, e.JobID)
		if job == nil {
			return memtable.Missing("job", e.JobID)
		}
		table, version := TableJobs, job
		if e.Version != job.Version {
			table, version = TableVersions, get[structs.Job](x.rows, TableVersions, byID, e.Namespace, e.JobID, e.Version)
		}
		if version == nil {
			return structs.Errorf(structs.CodeNotFound, "job %q has no version %d any more", e.JobID, e.Version)
		}
		now := *version
		now.Stable, now.ModifyIndex = e.Stable, x.index
		x.put(table, &now)
		if table == TableJobs {
			note(x, KindJob, now.NamespacedID().String(), job, &now)
		}
		return nil
	})
}

// enforce compares the index of the job's specification with the one expected.
func enforce(on bool, want uint64, job *structs.Job) error {
	var have uint64
	if job != nil {
		have = job.JobModifyIndex
	}
	if !on || want == have {
		return nil
	}
	switch {
	case have == 0:
		return structs.Errorf(structs.CodeConflict, "Enforcing job modify index %d: job does not exist", want)
	case want == 0:
		return structs.Errorf(structs.CodeConflict, "Enforcing job modify index 0: job already exists with modify index %d", have)
	}
	return structs.Errorf(structs.CodeConflict, "Enforcing job modify index %d: job exists with conflicting job modify index: %d", want, have)
}

// firstVersion is the version of a job that is new: 0, or past those that
// allocations of an earlier job of the same name still run, so that no allocation
// is taken for one of the new job.
func (x *txn) firstVersion(ns, id string) uint64 {
	first := uint64(0)
	x.allocs.Each(alloctable.ByJob, indexkey.HashJob(ns, id), func(r *alloctable.Row) bool {
		first = max(first, r.JobVersion()+1)
		return true
	})
	return first
}

// putVersion stores fresh, the transaction's own copy, as the job's newest version.
// When was is nil, fresh brings its version along.
func (x *txn) putVersion(was, fresh *structs.Job) *structs.Job {
	fresh.VersionTag = nil
	fresh.CreateIndex, fresh.Status = x.index, structs.JobStatusPending
	if was != nil {
		x.put(TableVersions, was)
		fresh.Version, fresh.CreateIndex, fresh.Status = was.Version+1, was.CreateIndex, was.Status
	}
	fresh.ModifyIndex, fresh.JobModifyIndex = x.index, x.index
	x.put(TableJobs, fresh)
	x.counts(fresh.Namespace, fresh.ID).since = fresh.CreateIndex
	if was != nil {
		requestRows{x}.fitRequests(fresh)
	}
	note(x, KindJob, fresh.NamespacedID().String(), was, fresh)
	x.pruneVersions(fresh)
	return fresh
}

// pruneVersions forgets versions beyond those kept, unless they are tagged or an
// allocation that has not ended runs them.
func (x *txn) pruneVersions(job *structs.Job) {
	old := collect(rows[structs.Job](x.rows, true, TableVersions, byID+"_prefix", job.Namespace, job.ID, ""))
	keep := x.opts.JobVersions - 1
	if len(old) <= keep {
		return
	}
	used := map[uint64]bool{}
	x.allocs.Each(alloctable.ByJob, indexkey.HashJob(job.Namespace, job.ID), func(r *alloctable.Row) bool {
		if !r.ClientTerminal() {
			used[r.JobVersion()] = true
		}
		return true
	})
	for _, v := range old[keep:] {
		if v.VersionTag == nil && !used[v.Version] {
			x.dropVersion(v)
		}
	}
}

func (x *txn) dropVersion(v *structs.Job) {
	x.drop(TableVersions, v)
	if row := get[submissionRow](x.rows, TableSubmissions, byID, v.Namespace, v.ID, v.Version); row != nil {
		x.drop(TableSubmissions, row)
	}
}

// jobEval stores the evaluation that comes with a change of its job.
func (x *txn) jobEval(job *structs.Job, eval *structs.Evaluation) error {
	if eval == nil {
		return nil
	}
	e := eval.Copy()
	e.JobModifyIndex = job.JobModifyIndex
	return x.upsertEvals([]*structs.Evaluation{e})
}

// JobDeregister stops a job, which is a new version, or purges it.
func (w *Writer) JobDeregister(index uint64, e *structs.JobDeregisterEntry) error {
	return w.commit(index, e.Time, structs.EventJobDeregistered, "", func(x *txn) error {
		job := x.job(e.Namespace, e.JobID)
		if job == nil {
			return memtable.Missing("job", e.JobID)
		}
		if e.NoShutdownDelay {
			x.skipShutdownDelay(job)
		}
		switch {
		case e.Purge:
			x.purge(job)
		case !job.Stop:
			stopped := *job
			stopped.Stop = true
			job = x.putVersion(job, &stopped)
		}
		return x.jobEval(job, e.Eval)
	})
}

func (x *txn) skipShutdownDelay(job *structs.Job) {
	yes := true
	for _, was := range x.allocs.Allocs(alloctable.ByJob, indexkey.HashJob(job.Namespace, job.ID)) {
		if !was.Terminal() {
			x.transition(was, &structs.DesiredTransition{NoShutdownDelay: &yes})
		}
	}
}

// purge forgets a job and what belongs to it, but for its allocations and
// evaluations.
func (x *txn) purge(job *structs.Job) {
	for _, v := range collect(rows[structs.Job](x.rows, false, TableVersions, byID+"_prefix", job.Namespace, job.ID, "")) {
		x.drop(TableVersions, v)
	}
	for _, row := range collect(rows[submissionRow](x.rows, false, TableSubmissions, byID+"_prefix", job.Namespace, job.ID, "")) {
		x.drop(TableSubmissions, row)
	}
	if row := named[structs.JobSummary](x.rows, TableSummaries, job.Namespace, job.ID); row != nil {
		x.drop(TableSummaries, row)
	}
	if row := get[scalingRow](x.rows, TableScaling, byID, job.Namespace, job.ID); row != nil {
		x.drop(TableScaling, row)
	}
	requestRows{x}.dropRequests(job.Namespace, job.ID)
	x.drop(TableJobs, job)
	note(x, KindJob, job.NamespacedID().String(), job, nil)
}

// JobScale changes a group's count, which is a new version, and records the event.
func (w *Writer) JobScale(index uint64, e *structs.JobScaleEntry) error {
	return w.commit(index, e.Time, structs.EventJobRegistered, "", func(x *txn) error {
		job := x.job(e.Namespace, e.JobID)
		if job == nil {
			return memtable.Missing("job", e.JobID)
		}
		if err := enforce(e.EnforceIndex, e.CheckIndex, job); err != nil {
			return err
		}
		group := job.LookupTaskGroup(e.Group)
		if group == nil {
			return structs.Errorf(structs.CodeBadRequest, "job %q: no group %q", e.JobID, e.Group)
		}
		if e.Count != nil {
			if *e.Count < 0 || *e.Count > math.MaxInt32 {
				return structs.Errorf(structs.CodeBadRequest, "job %q: group %q: count %d: allowed are 0 to %d",
					e.JobID, e.Group, *e.Count, math.MaxInt32)
			}
			if int(*e.Count) != group.Count {
				scaled := job.Copy()
				scaled.LookupTaskGroup(e.Group).Count = int(*e.Count)
				scaled.SubmitTime, scaled.Stable = x.now, false
				job = x.putVersion(job, scaled)
			}
		}
		x.addScaling(job, e)
		return x.jobEval(job, e.Eval)
	})
}

func (x *txn) addScaling(job *structs.Job, e *structs.JobScaleEntry) {
	if e.Event == nil {
		return
	}
	event := *e.Event
	event.CreateIndex = x.index
	row := &scalingRow{Namespace: job.Namespace, JobID: job.ID, ModifyIndex: x.index, Groups: map[string][]*structs.ScalingEvent{}}
	if was := get[scalingRow](x.rows, TableScaling, byID, job.Namespace, job.ID); was != nil {
		for name, events := range was.Groups { // order does not matter: a map made of a map
			row.Groups[name] = events
		}
	}
	events := append([]*structs.ScalingEvent{&event}, row.Groups[e.Group]...)
	row.Groups[e.Group] = events[:min(len(events), maxScalingEvents)]
	x.put(TableScaling, row)
}

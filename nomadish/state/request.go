package state

import (
	"fmt"
	"iter"
	"math"

	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

// What the feed and the event stream call the changes of requests.
const (
	RequestWaiting   = "RequestWaiting"   // it waits: for the first time, again, or for another number
	RequestPlaced    = "RequestPlaced"    // all of it is placed
	RequestReclaimed = "RequestReclaimed" // instances of it were taken back for somebody else
	RequestWithdrawn = "RequestWithdrawn" // it is not wanted any more: its job or group is gone or stopped
)

// Requests reads the requests of jobs' groups that a snapshot has: the queue, and what is remembered of it.
type Requests struct{ snap *Snapshot }

// Requests returns the reads of requests.
func (s *Snapshot) Requests() Requests { return Requests{s} }

// PendingOf returns how many instances of a project's jobs are pending, "" for those of jobs of no project. They are counted once for a view, when
// they are first needed: few evaluations need them.
func (r Requests) PendingOf(project string) int {
	s := r.snap
	s.v.pending.once.Do(func() {
		s.v.pending.count = map[string]int{}
		for request := range r.Waiting(nil, structs.AllNamespaces) {
			if job := s.Job(nil, request.Namespace, request.JobID); job != nil {
				s.v.pending.count[job.Project] += request.Missing
			}
		}
	})
	return s.v.pending.count[project]
}

// Get returns what is known of a job's group in the queue; nil if it never waited, or left
// nothing to remember when it was placed.
func (r Requests) Get(ws *WatchSet, ns, job, group string) *structs.PendingRequest {
	return oneNamed[structs.PendingRequest](r.snap.v, ws, TableRequests, ns, job, group)
}

// OfJob returns a job's requests by group, those that do not wait as well.
func (r Requests) OfJob(ws *WatchSet, ns, job string) []*structs.PendingRequest {
	return collect(many[structs.PendingRequest](r.snap.v, ws, false, TableRequests, byID+"_prefix", ns, job, ""))
}

// OfGroups returns the requests of the groups that a job has, in the order of these: of a job as it is registered, all that it has (see fitRequests).
func (r Requests) OfGroups(job *structs.Job) (list []*structs.PendingRequest) {
	if job == nil {
		return nil
	}
	for _, g := range job.TaskGroups {
		if request := r.Get(nil, job.Namespace, job.ID, g.Name); request != nil {
			list = append(list, request)
		}
	}
	return list
}

// List walks all requests of a namespace ("*": all), those that do not wait as well, by
// namespace, job and group.
func (r Requests) List(ws *WatchSet, ns string) iter.Seq[*structs.PendingRequest] {
	return r.list(ws, byID, ns)
}

// Waiting walks the requests of a namespace ("*": all) that wait, by namespace, job and
// group. Their order in the queue is that of their ranks.
func (r Requests) Waiting(ws *WatchSet, ns string) iter.Seq[*structs.PendingRequest] {
	return r.list(ws, byWaiting, ns)
}

func (r Requests) list(ws *WatchSet, index, ns string) iter.Seq[*structs.PendingRequest] {
	if ns == structs.AllNamespaces {
		return many[structs.PendingRequest](r.snap.v, ws, false, TableRequests, index)
	}
	return many[structs.PendingRequest](r.snap.v, ws, false, TableRequests, index+"_prefix", ns, "")
}

// requestRows are the rows of requests as a transaction changes them: what plans and jobs state about groups that wait.
type requestRows struct{ txn *txn }

func (w requestRows) request(ns, job, group string) *structs.PendingRequest {
	return named[structs.PendingRequest](w.txn.rows, TableRequests, ns, job, group)
}

func requestKey(a *structs.PendingRequest) []byte { return key(a.Namespace, a.JobID, a.Group) }

// wants reports whether a job still requests a group.
func wants(job *structs.Job, group string) bool {
	return job != nil && !job.Stop && job.LookupTaskGroup(group) != nil
}

// updateRequest takes what a plan states about a group. What a plan that was decided earlier states
// of a job that was stopped or purged meanwhile is not so any more.
func (w requestRows) updateRequest(u *structs.RequestUpdate) {
	was := w.request(u.Namespace, u.JobID, u.Group)
	if was == nil && u.Missing == 0 { // most jobs: they are placed at once
		return
	}
	if !wants(w.txn.job(u.Namespace, u.JobID), u.Group) {
		return
	}
	now := structs.PendingRequest{Namespace: u.Namespace, JobID: u.JobID, Group: u.Group}
	if was != nil {
		now = *was
	}
	if u.Missing == 0 {
		w.endWaiting(&now)
		w.putRequest(was, &now, RequestPlaced)
		return
	}
	now.Missing, now.EvalID = u.Missing, u.EvalID
	w.beginWaiting(&now, u.Since)
	w.putRequest(was, &now, RequestWaiting)
}

// reclaims counts, within one plan, the instances taken back of each request.
type reclaims struct {
	requests []structs.PendingRequest // in the order of the plan; Missing is how many more are missing, Requeued 1 if any is requeued
	place    map[structs.PendingRequest]int
}

// countReclaimed counts an allocation that is taken back, before it is. One that is
// suspended already is missing already; one that has ended, or is of an earlier job of the same
// name, is not taken from anybody.
func (w requestRows) countReclaimed(r *reclaims, s *structs.AllocStop) {
	was := w.txn.alloc(s.AllocID)
	if was == nil || was.Terminal() {
		return
	}
	if job := w.txn.job(was.Namespace, was.JobID); job == nil || was.CreateIndex < job.CreateIndex {
		return
	}
	k := structs.PendingRequest{Namespace: was.Namespace, JobID: was.JobID, Group: was.TaskGroup}
	i, known := r.place[k]
	if !known {
		if r.place == nil {
			r.place = map[structs.PendingRequest]int{}
		}
		i = len(r.requests)
		r.place[k] = i
		r.requests = append(r.requests, k)
	}
	if was.DesiredStatus != structs.AllocDesiredSuspend {
		r.requests[i].Missing++
	}
	if s.Reclaim != structs.ReclaimSuspend {
		r.requests[i].Requeued = 1
	}
}

// reclaimRequest puts a request back into the queue: more of it is missing, and it was requeued
// once more, whatever the number of its instances that one plan took, unless all of them were suspended.
func (w requestRows) reclaimRequest(r *structs.PendingRequest) {
	if !wants(w.txn.job(r.Namespace, r.JobID), r.Group) || rowcheck.Request(&structs.PendingRequest{Namespace: r.Namespace, JobID: r.JobID, Group: r.Group}) != nil {
		return
	}
	was := w.request(r.Namespace, r.JobID, r.Group)
	now := structs.PendingRequest{Namespace: r.Namespace, JobID: r.JobID, Group: r.Group}
	if was != nil {
		now = *was
	}
	now.Requeued = min(now.Requeued+r.Requeued, math.MaxInt32)
	if now.Missing = min(now.Missing+r.Missing, math.MaxInt32); now.Missing > 0 {
		w.beginWaiting(&now, 0)
	}
	w.putRequest(was, &now, RequestReclaimed)
}

// beginWaiting lets a request wait since a time (0: now), unless it waits already.
func (w requestRows) beginWaiting(a *structs.PendingRequest, since int64) {
	if a.Since > 0 {
		return
	}
	now := max(1, w.txn.now)
	if since <= 0 || since > now {
		since = now
	}
	a.Since = since
}

// endWaiting adds what a request has waited to what it remembers. It remembers cycles, so
// a change of their length counts for what is waited afterwards, and for all of the
// waiting that goes on.
func (w requestRows) endWaiting(a *structs.PendingRequest) {
	if a.Since > 0 {
		c := structs.DefaultSchedulerConfiguration()
		if set := get[structs.SchedulerConfiguration](w.txn.rows, TableConfig, byID); set != nil {
			c = *set
		}
		waited := c.CycleAt(max(1, w.txn.now)) - c.CycleAt(a.Since)
		a.Aged = min(a.Aged+min(max(0, waited), rowcheck.MaxAged), rowcheck.MaxAged)
	}
	a.Missing, a.Since, a.EvalID = 0, 0, ""
}

// putRequest stores a request's row, the transaction's own copy; one that neither waits nor
// remembers anything has none. Nothing happens if it is as it was.
func (w requestRows) putRequest(was, now *structs.PendingRequest, event string) {
	now.ModifyIndex = w.txn.index
	if was == nil {
		now.CreateIndex = w.txn.index
	} else {
		same := *now
		same.ModifyIndex = was.ModifyIndex
		if same == *was {
			return
		}
	}
	if now.Missing > 0 || now.Aged > 0 || now.Requeued > 0 {
		w.txn.put(TableRequests, now)
		w.noteRequest(was, now, event)
		return
	}
	if was != nil {
		w.dropRequest(was, event)
	}
}

func (w requestRows) dropRequest(was *structs.PendingRequest, event string) {
	w.txn.drop(TableRequests, was)
	w.noteRequest(was, nil, event)
}

func (w requestRows) noteRequest(was, now *structs.PendingRequest, event string) {
	some := now
	if some == nil {
		some = was
	}
	note(w.txn, KindRequest, some.Job().String()+"/"+some.Group, was, now)
	w.txn.changes[len(w.txn.changes)-1].Type = event
}

// fitRequests lets the requests of a job follow a change of it: of one that is stopped nothing
// waits any more, and a group that is gone requests nothing.
func (w requestRows) fitRequests(job *structs.Job) {
	for _, was := range collect(rows[structs.PendingRequest](w.txn.rows, false, TableRequests, byID+"_prefix", job.Namespace, job.ID, "")) {
		w.fitRequest(job, was)
	}
}

func (w requestRows) fitRequest(job *structs.Job, was *structs.PendingRequest) {
	switch {
	case job == nil || job.LookupTaskGroup(was.Group) == nil:
		w.dropRequest(was, RequestWithdrawn)
	case job.Stop:
		now := *was
		w.endWaiting(&now)
		w.putRequest(was, &now, RequestWithdrawn)
	}
}

// dropRequests forgets the requests of a job.
func (w requestRows) dropRequests(ns, job string) {
	for _, was := range collect(rows[structs.PendingRequest](w.txn.rows, false, TableRequests, byID+"_prefix", ns, job, "")) {
		w.dropRequest(was, RequestWithdrawn)
	}
}

// mendRequests lets all requests follow their jobs.
func (w requestRows) mendRequests() {
	for _, was := range collect(rows[structs.PendingRequest](w.txn.rows, false, TableRequests, byID)) {
		w.fitRequest(w.txn.job(was.Namespace, was.JobID), was)
	}
}

// requestFaults returns the pending requests that belong to no group.
func requestFaults(r reader) (out []string) {
	for a := range rows[structs.PendingRequest](r, false, TableRequests, byID) {
		job := named[structs.Job](r, TableJobs, a.Namespace, a.JobID)
		switch {
		case job == nil || job.LookupTaskGroup(a.Group) == nil:
			out = append(out, fmt.Sprintf("pending request of job %s, group %s: there is no such group", a.Job(), a.Group))
		case job.Stop && a.Missing > 0:
			out = append(out, fmt.Sprintf("pending request of job %s, group %s: it waits for %d, but its job is stopped", a.Job(), a.Group, a.Missing))
		}
	}
	return out
}

package check

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// checkRequests checks the queue's rows of a job against its evaluations. That the job
// wants them is stated in package state, see Run.
func (c *checker) checkRequests(j *job) {
	for _, a := range j.requests {
		switch {
		case a.Missing < 0:
			c.fault(structs.CheckRequests, "request", requestID(a), "it waits for %d instances", a.Missing)
		case a.Missing == 0:
			if a.EvalID != "" || a.Since != 0 {
				c.fault(structs.CheckRequests, "request", requestID(a), "it does not wait, and names a time or an evaluation")
			}
		case !j.waits():
			c.fault(structs.CheckRequests, "request", requestID(a), "it waits for %d instances, and no evaluation of its job is open", a.Missing)
		default:
			// What it names may have ended since, and left another behind.
			if e := c.snap.Eval(nil, a.EvalID); e != nil && e.Job() != j.id {
				c.fault(structs.CheckRequests, "request", requestID(a), "it waits in evaluation %s, which is of job %s", a.EvalID, e.Job())
			}
		}
	}
}

// checkBlocked checks that one blocked evaluation does for a job, and that it waits for
// something: one that waits for nothing is cancelled soon.
func (c *checker) checkBlocked(j *job) {
	missing := slices.ContainsFunc(j.requests, func(a *structs.PendingRequest) bool { return a.Missing > 0 })
	var first *structs.Evaluation
	for _, e := range j.open {
		if e.Status != structs.EvalStatusBlocked {
			continue
		}
		if first != nil {
			c.fault(structs.CheckBlocked, "evaluation", e.ID, "it waits for room for job %s, as does evaluation %s", j.id, first.ID)
		}
		first = e
		switch {
		case !c.late(max(e.CreateTime, e.ModifyTime), 0):
		case j.spec.Stop:
			c.fault(structs.CheckBlocked, "evaluation", e.ID, "it waits for room for job %s, which is stopped", j.id)
		case !missing && !j.spec.PerNode():
			c.fault(structs.CheckBlocked, "evaluation", e.ID, "it waits for room for job %s, and nothing of the job is missing", j.id)
		}
	}
}

// checkReservation checks that room is kept in order: for somebody who waits, on a node
// that is there, for a time that ends.
func (c *checker) checkReservation(r *structs.Reservation) {
	file := func(format string, args ...any) {
		c.fault(structs.CheckReservations, "node", r.NodeID, format, args...)
	}
	id := structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
	if min(r.CPU, r.MemoryMB, r.DiskMB, int64(r.Cores), int64(r.Devices)) < 0 {
		file("less than nothing is reserved for job %s: %+v", id, *r)
	}
	if r.ExpiresAt < r.MadeAt {
		file("what is reserved for job %s ends before it began", id)
	}
	if n := c.nodes[r.NodeID]; n == nil || n.spec == nil {
		file("room is reserved for job %s, and the node is gone", id)
	}
	j := c.jobs[id]
	switch {
	case j != nil && j.waits():
		if c.late(r.ExpiresAt, time.Minute) && !slices.ContainsFunc(j.open, func(e *structs.Evaluation) bool { return !c.late(max(e.CreateTime, e.ModifyTime), 0) }) {
			file("what is reserved for job %s ended %s ago and is still kept", id, c.opts.Now.Sub(time.Unix(0, r.ExpiresAt)).Round(time.Second))
		}
	case j == nil || j.spec == nil:
		file("room is reserved for job %s, which is gone", id)
	default:
		file("room is reserved for job %s, and no evaluation of it is open that could end this", id)
	}
}

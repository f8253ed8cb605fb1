package worker_test

import (
	"testing"
	"testing/synctest"

	"github.com/nomadish/nomadish/structs"
)

// TestSharesMoveMeanwhile: a plan found no room for its request, and the share of their namespace falls before the plan of a lower-ranked one is judged, as
// room came free meanwhile. The first was compared with another share than the second then is, which must not let the second have that room.
func TestSharesMoveMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(true)
		w := c.watched()
		c.configure(t, func(s *structs.SchedulerConfiguration) { s.PreemptionConfig.ServiceSchedulerEnabled = false })
		c.node(t, "node", structs.NodePoolDefault, 1000)
		t.Cleanup(c.run(t.Context(), 0))
		busy, high, low := job("busy", structs.NodePoolDefault, 95, 1, 600, 600), job("high", structs.NodePoolDefault, 90, 1, 600, 600),
			job("low", structs.NodePoolDefault, 80, 1, 600, 600)
		c.submit(t, c.take(t, c.register(t, busy)), busy, "node", "")
		ofHigh := c.take(t, c.register(t, high))
		waits := c.noRoom(ofHigh, high)
		ofLow := c.take(t, c.register(t, low))
		places := c.places(ofLow, low, "node", "")
		stopped := busy.Copy()
		c.deregister(t, busy)
		synctest.Wait()
		ofBusy, err := c.Dequeue(t.Context(), []string{structs.JobTypeService}, 0)
		if err != nil || ofBusy.Eval.JobID != stopped.ID {
			t.Fatalf("got %+v, %v", ofBusy, err)
		}
		results, errs := c.plans.SubmitAll(t.Context(), []*structs.Plan{c.stops(ofBusy, stopped), waits, places})
		for i, err := range errs {
			if err != nil {
				t.Fatalf("plan %d: %v", i, err)
			}
		}
		if results[2].Placed > 0 || len(w.broken) > 0 {
			t.Fatalf("what ranks lower was placed: %+v, seen by the watcher: %v", results[2], w.broken)
		}
	})
}

// finish is a plan that ends an evaluation.
func finish(got *structs.EvalDequeueReply, j *structs.Job) *structs.Plan {
	done := got.Eval.Copy()
	done.Status = structs.EvalStatusComplete
	return &structs.Plan{
		EvalID: got.Eval.ID, EvalToken: got.Token, Namespace: j.Namespace, JobID: j.ID, Priority: j.Priority, Evals: []*structs.Evaluation{done},
	}
}

// noRoom is a plan that finds no room for a job, in the state that there is now.
func (c *cluster) noRoom(got *structs.EvalDequeueReply, j *structs.Job) *structs.Plan {
	p, now := finish(got, j), c.store.LatestIndex()
	blocked := got.Eval.Copy()
	blocked.ID, blocked.Status, blocked.PreviousEval, blocked.SnapshotIndex = c.next(), structs.EvalStatusBlocked, got.Eval.ID, now
	blocked.FailedTGAllocs = map[string]*structs.AllocMetric{"g": {}}
	blocked.QueuedAllocations = map[string]int{"g": j.TaskGroups[0].Count}
	p.Evals[0].BlockedEval = blocked.ID
	p.Evals = append(p.Evals, blocked)
	p.Requests = []*structs.RequestUpdate{{
		Namespace: j.Namespace, JobID: j.ID, Group: "g", Missing: j.TaskGroups[0].Count, Since: got.Eval.CreateTime, EvalID: blocked.ID,
	}}
	return p
}

// stops is a plan that stops all of a job.
func (c *cluster) stops(got *structs.EvalDequeueReply, j *structs.Job) *structs.Plan {
	p := finish(got, j)
	for _, a := range c.store.Snapshot().AllocsByJob(nil, j.Namespace, j.ID, true) {
		p.Stop = append(p.Stop, &structs.AllocStop{AllocID: a.ID, DesiredStatus: structs.AllocDesiredStop})
	}
	return p
}

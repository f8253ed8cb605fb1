package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// live returns the IDs of the allocations of a job that run or are to run, in the order in which they were placed.
func (s *started) live(id string) (ids []string) {
	for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", id, true) {
		if !a.Terminal() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// ends reports the ends of allocations.
func (s *started) ends(ids ...string) {
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	for _, id := range ids {
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientComplete})
	}
	s.Put(s.t, e)
}

// TestOrdinaryJobsFillGaps: of three workflows on a cluster that holds one, each waits until those of higher priority are complete, and runs whole. Ordinary
// jobs run beside it, and in what its stage does not need; they do not take what comes free for the next one.
func TestOrdinaryJobsFillGaps(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{10_000}, []int{8000}, []int{4000})
	s.step()
	s.inOne(0)
	order := []string{"chip", "high", "middle", "low"}
	for i, priority := range map[int]int{3: 30, 1: 70, 2: 50} { // in any order
		s.runs(lendingWorkflow(order[i], priority, []int{8000}, []int{4000}))
	}
	const flood = "flood-1000"
	s.borrow(30, 1000)
	fills := func(when string, want int) {
		t.Helper()
		s.decide(flood)
		if n := len(s.live(flood)); n != want {
			t.Fatalf("%s of workflow %s, %d ordinary instances run, want %d", when, s.id, n, want)
		}
		snap := s.Store.Snapshot()
		for i, id := range order {
			r := snap.Workflows(nil).Get("default", id)
			if begun := r.State != structs.WorkflowPending; begun && r.Alive() && id != s.id || begun && i > 0 && snap.Workflows(nil).Get("default", order[i-1]).Alive() {
				t.Fatalf("%s of workflow %s, workflow %s is %s", when, s.id, id, r.State)
			}
		}
	}
	for i, id := range order {
		if s.id = id; i > 0 {
			s.step()
			if p := scheduler.PendingWorkflows(s.Store.Snapshot().World()); len(p) != 1 || p[0].ID != id || s.run().Posted {
				t.Fatalf("what comes free is kept for %+v, and not for workflow %s alone: %+v", p, id, s.run())
			}
			fills("before the first stage", 6)
			for len(s.live(flood)) > 2 { // one after the other
				s.ends(s.live(flood)[0])
				s.step()
				s.decide(flood)
			}
		}
		s.inOne(0)
		fills("in the first stage", 2)
		s.complete(0)
		s.step()
		s.inOne(1)
		fills("in the second stage", 6)
		s.complete(1)
		s.step()
		if s.run().State != structs.WorkflowComplete {
			t.Fatalf("workflow %s is %s", id, s.run().State)
		}
	}
	fills("after the end", 10)
}

// TestNewRunIsLookedAtAtOnce: what a workflow is to have is reserved at once when its run begins, however short a time ago it was looked at what could be
// reserved.
func TestNewRunIsLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	s := newStarted(t, []int64{9000}, []int{2000})
	s.step()
	s.inOne(0)
	for _, id := range []string{"second", "third"} {
		s.id = id
		s.runs(lendingWorkflow(id, 50, []int{2000}, []int{4000}))
		s.steps.Step(t.Context()) // at the same time
		if id == "second" && !s.run().Posted || id == "third" && s.run().Missing == "" {
			t.Fatalf("the run of workflow %s was not looked at: %+v", id, s.run())
		}
	}
}

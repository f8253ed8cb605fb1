package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestLowerTakesNothingKept: a run takes nothing of what another one of a higher rank keeps, which has come free for it: the other starts first.
func TestLowerTakesNothingKept(t *testing.T) {
	t.Parallel()
	s := startedWith(t, []int64{8000}, lendingWorkflow("wa", 70, []int{8000}))
	s.borrow(4, 1000)
	s.step()
	if s.run().Posted {
		t.Fatal("wa has its reservation already")
	}
	s.runs(lendingWorkflow("wb", 45, []int{4000}))
	s.step()
	if r := s.Store.Snapshot().Workflows(nil).Get("default", "wb"); r.Posted || r.Missing == "" {
		t.Errorf("wb: posted %v, missing %q", r.Posted, r.Missing)
	}
	s.clock.now = s.clock.now.Add(time.Hour)
	s.steps.Step(context.Background())
	s.ends(s.live("flood-1000")...)
	s.step()
	if r := s.Store.Snapshot().Workflows(nil).Get("default", "wb"); r.Posted || s.run().State != structs.WorkflowRunning {
		t.Errorf("wb: posted %v, wa is %s", r.Posted, s.run().State)
	}
}

// idleKept returns how many MHz that are free are kept for a workflow.
func (s *started) idleKept(id string) (mhz int64) {
	for _, k := range scheduler.WorkflowKeeps(s.Store.Snapshot().World(), structs.WorkflowKey("default", id)) {
		mhz += k.Idle.CPU
	}
	return mhz
}

// TestFirstThatWaitsKeepsBesideWhatWasLost: while what comes free is kept for a run in place of what it has lost, the first of those that wait keeps what comes free
// beside that, whatever their priorities: ordinary jobs do not take it, and it starts before the other is whole.
func TestFirstThatWaitsKeepsBesideWhatWasLost(t *testing.T) {
	t.Parallel()
	for _, priority := range []int{40, 60} {
		w := lendingWorkflow("chip", 50, []int{1000}, []int{8000})
		w.Lend = nil
		s := startedWith(t, nil, w)
		s.node("n-a", 8000, structs.NodeStatusReady)
		s.step()
		s.inOne(0)
		s.node("n-b", 8000, structs.NodeStatusReady)
		s.node("n-c", 8000, structs.NodeStatusReady)
		s.borrow(100, 1000)
		s.node("n-a", 8000, structs.NodeStatusDown)
		s.step()
		waits, second := lendingWorkflow("waits", priority, []int{6000}), lendingWorkflow("second", priority-10, []int{1000})
		s.runs(waits)
		s.runs(second)
		s.step()
		of := func(id string) *structs.WorkflowRun { return s.Store.Snapshot().Workflows(nil).Get("default", id) }
		if len(s.run().Keeps) != 1 || len(of("waits").Parts) != 1 || len(of("second").Parts) > 0 || s.run().Keeps[0].NodeID == of("waits").Parts[0].NodeID {
			t.Fatalf("priority %d: %+v are kept, and %+v, and %+v", priority, s.run().Keeps, of("waits").Parts, of("second").Parts)
		}
		on := of("waits").Parts[0].NodeID
		for ends := 1; !of("waits").Posted; ends++ {
			if ends > 6 {
				t.Fatalf("priority %d: after %d ends %q, %d MHz are kept", priority, ends, of("waits").Missing, s.idleKept("waits"))
			}
			for _, id := range s.live("flood-1000") {
				if s.Store.Snapshot().Alloc(nil, id).NodeID == on {
					s.ends(id)
					break
				}
			}
			s.decide("flood-1000") // before the reservation is looked at
			s.step()
		}
		if s.run().Missing == "" || of("second").Posted {
			t.Errorf("priority %d: missing %q, the second has its reservation: %v", priority, s.run().Missing, of("second").Posted)
		}
	}
}

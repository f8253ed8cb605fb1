package workflow

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// end has the instances of a job of the run end.
func (s *started) end(job, status string, most int) {
	s.t.Helper()
	e := &structs.AllocClientEntry{Time: int64(s.Index())}
	for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", job, true) {
		if !a.Terminal() && len(e.Updates) < most {
			e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: a.ID, ClientStatus: status})
		}
	}
	if len(e.Updates) != most {
		s.t.Fatalf("of job %s there run %d", job, len(e.Updates))
	}
	s.Put(s.t, e)
}

// evicted counts the instances of a job that were taken back.
func (s *started) evicted(job string) (n int) {
	for _, a := range s.Store.Snapshot().AllocsByJob(nil, "default", job, true) {
		if a.DesiredStatus == structs.AllocDesiredEvict {
			n++
		}
	}
	return n
}

// TestReclaimedAddsUp: who was taken back for a stage is counted in all its attempts.
func TestReclaimedAddsUp(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000}, []int{6000, 2000})
	w.OnFailure = structs.OnFailureRetryStage
	s := startedWith(t, []int64{8000}, w)
	s.step()
	s.borrow(20, 500)
	s.complete(0)
	s.step()
	s.inOne(1)
	first := s.run().Stages[1].Reclaimed
	s.end(s.run().Stages[1].Jobs[1].JobID, structs.AllocClientComplete, 1)
	s.step()
	if first == 0 || s.borrow(20, 400) == 0 {
		t.Fatalf("%d were taken back, and what comes free is lent", first)
	}
	s.end(s.run().Stages[1].Jobs[0].JobID, structs.AllocClientFailed, 1)
	s.step()
	second := s.evicted("flood-400")
	if stage := s.run().Stages[1]; stage.Attempt != 2 || second == 0 || stage.Reclaimed != first+second {
		t.Errorf("attempt %d: %d were taken back, %d for the first one and %d for the second", stage.Attempt, stage.Reclaimed, first, second)
	}
}

// TestReclaimedAfterStart: those who leave for what is placed again of a stage are counted with the stage.
func TestReclaimedAfterStart(t *testing.T) {
	t.Parallel()
	w := lendingWorkflow("chip", 50, []int{1000})
	j := cores(2, 4000)
	j.TaskGroups[0].ReschedulePolicy = &structs.ReschedulePolicy{Attempts: new(5), Interval: new(24 * time.Hour), Unlimited: new(false)}
	w.Stages[0].Jobs[0].Job = j
	s := startedWith(t, []int64{8000}, w)
	s.step()
	run := s.run()
	if run.Stages[0].State != structs.StageRunning {
		t.Fatalf("the stage is %s", run.Stages[0].State)
	}
	s.end(run.Stages[0].Jobs[0].JobID, structs.AllocClientFailed, 1)
	if s.borrow(20, 500) == 0 {
		t.Fatal("what comes free is not lent")
	}
	s.clock.now = s.clock.now.Add(1 << 40)
	placed := s.decide(run.Stages[0].Jobs[0].JobID)
	if taken, n := s.evicted("flood-500"), s.run().Stages[0].Reclaimed; placed != 1 || taken == 0 || n != taken {
		t.Errorf("%d placed: %d are counted of %d that were taken back", placed, n, taken)
	}
}

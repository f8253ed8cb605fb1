package workflow

import (
	"context"
	"testing"
	"time"

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

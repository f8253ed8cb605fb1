package workflow

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestReservesFromBands: where batch jobs preempt, a workflow takes what it reserves from lower bands, and starts; who leaves is requeued, and decided on
// again. Where they do not, it waits.
func TestReservesFromBands(t *testing.T) {
	t.Parallel()
	for on, runs := range map[bool]int{true: 2, false: 8} {
		s := startedWith(t, []int64{8000}, lendingWorkflow("chip", 60, []int{6000}))
		config := structs.DefaultSchedulerConfiguration()
		config.PreemptionConfig.BatchSchedulerEnabled = on
		s.Put(t, &structs.SchedulerConfigEntry{Config: config, Time: 1})
		low := cores(8, 1000)
		low.ID, low.Priority = "low", 10
		low.Canonicalize()
		s.Put(t, &structs.JobRegisterEntry{Job: low, Time: int64(s.Index())})
		if n := s.decide("low"); n != 8 {
			t.Fatalf("%d of 8 run", n)
		}
		s.step()
		if run := s.run(); run.Posted != on || (run.Stages[0].State == structs.StageRunning) != on || (run.Missing == "") != on {
			t.Fatalf("preemption %v: posted %v, its stage is %s: %q", on, run.Posted, run.Stages[0].State, run.Missing)
		}
		snap := s.Store.Snapshot()
		requeued := 0
		for _, a := range snap.AllocsByJob(nil, "default", "low", true) {
			if a.DesiredStatus == structs.AllocDesiredEvict {
				requeued++
			}
		}
		evals := 0
		for _, ev := range snap.EvalsByJob(nil, "default", "low") {
			if ev.TriggeredBy == structs.EvalTriggerPreemption {
				evals++
			}
		}
		if requeued != 8-runs || (evals == 1) != on {
			t.Errorf("preemption %v: %d are requeued, want %d, and %d evaluations", on, requeued, 8-runs, evals)
		}
		if on {
			s.inOne(0)
		}
	}
}

// TestReservesNotFromSystemJobs: a workflow takes nothing from instances of system jobs, though nobody owns cells, so that what is placed does not say what
// it is.
func TestReservesNotFromSystemJobs(t *testing.T) {
	t.Parallel()
	s := startedWith(t, []int64{8000}, lendingWorkflow("chip", 60, []int{6000}))
	config := structs.DefaultSchedulerConfiguration()
	config.PreemptionConfig.BatchSchedulerEnabled = true
	s.Put(t, &structs.SchedulerConfigEntry{Config: config, Time: 1})
	low := cores(1, 4000)
	low.ID, low.Priority, low.Type = "low", 10, structs.JobTypeSystem
	low.Canonicalize()
	s.Put(t, &structs.JobRegisterEntry{Job: low, Time: int64(s.Index())})
	if n := s.decide("low"); n != 1 {
		t.Fatalf("%d run", n)
	}
	s.step()
	if run := s.run(); run.Posted || run.Missing == "" {
		t.Fatalf("posted %v, %q", run.Posted, run.Missing)
	}
}

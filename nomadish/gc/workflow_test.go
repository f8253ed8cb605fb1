package gc

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestWorkflows: a job that has ended stays while the run of its workflow has not, which looks at it, and the workflow goes when its run has ended
// for long.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	then := time.Now().Add(-10 * time.Hour).UnixNano()
	job := testcluster.Job("a", structs.JobTypeBatch, 0)
	w := &structs.Workflow{ID: "chip", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "a", Job: job}}}}}
	w.Canonicalize()
	b.Put(b, &structs.WorkflowRunEntry{Workflow: w, Time: then})
	b.Put(b, &structs.WorkflowAdvanceEntry{
		Namespace: "default", ID: "chip", Run: 1, CheckIndex: b.Index(), State: structs.WorkflowRunning, EvalSeed: "e", Time: then,
		Stages: []structs.WorkflowStageMove{{State: structs.StageStarting, Start: true}}, Jobs: []structs.WorkflowJobMove{{State: structs.StageStarting, Register: true}},
	})
	for _, e := range b.store.Snapshot().EvalsByJob(nil, "default", "chip/1/a") {
		done := e.Copy()
		done.Status = structs.EvalStatusComplete
		b.Put(b, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{done}, Time: then})
	}
	left := func(wantJob, wantWorkflow bool) {
		t.Helper()
		if err := New(Options{}, b.store, b).Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		snap := b.store.Snapshot()
		if job, workflow := snap.Job(nil, "default", "chip/1/a") != nil, snap.Workflows(nil).Get("default", "chip") != nil; job != wantJob || workflow != wantWorkflow {
			t.Errorf("the job is left: %t, want %t; the workflow: %t, want %t", job, wantJob, workflow, wantWorkflow)
		}
	}
	if job := b.store.Snapshot().Job(nil, "default", "chip/1/a"); job == nil || job.Status != structs.JobStatusDead {
		t.Fatalf("the job is to be dead: %+v", job)
	}
	left(true, true)
	b.Put(b, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "f", Time: time.Now().UnixNano()})
	left(false, true)
	b.Put(b, &structs.WorkflowRunEntry{Namespace: "default", ID: "chip", From: "s", Time: then})
	b.Put(b, &structs.WorkflowStateEntry{Namespace: "default", ID: "chip", Action: structs.WorkflowActionCancel, EvalSeed: "g", Time: then})
	left(false, false)
}

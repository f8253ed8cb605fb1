package plan

import (
	"errors"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestStageRefusedAtCommit: a plan that starts a stage is refused when it is committed if the run has changed since. What was decided on the room that
// it would have freed is judged once more, without it.
func TestStageRefusedAtCommit(t *testing.T) {
	for _, changed := range []bool{true, false} {
		run(t, Options{}, func(b *bed) {
			b.submit(planOf("old", 60, "node-000")).want("old", 1, 0)
			job := testcluster.Job("j", structs.JobTypeBatch, 1)
			w := &structs.Workflow{ID: "wf", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: []*structs.WorkflowJob{{Name: "j", Job: job}}}}}
			w.Canonicalize()
			b.Put(b, &structs.WorkflowRunEntry{Workflow: w, Time: 1})
			reserved := &structs.WorkflowReservation{
				Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: []structs.WorkflowPart{{NodeID: "node-001", CPU: 10, MemoryMB: 10}},
			}
			b.Put(b, testcluster.Commit(&structs.JudgedPlan{Time: 2, Workflow: reserved}))
			index := b.store.Snapshot().Workflows(nil).Get("default", "wf").ModifyIndex
			if changed {
				index--
			}
			start := &structs.Plan{
				Namespace: "default", JobID: "wf", Priority: 60, AllAtOnce: true, Workflow: reserved,
				Stop: []*structs.AllocStop{{AllocID: structs.DeriveID("seed-old", 0), DesiredStatus: structs.AllocDesiredEvict}},
				Advance: &structs.WorkflowAdvanceEntry{
					Namespace: "default", ID: "wf", Run: 1, CheckIndex: index, State: structs.WorkflowRunning, EvalSeed: "start", Time: 3,
					Stages: []structs.WorkflowStageMove{{State: structs.StageStarting, Start: true}},
					Jobs:   []structs.WorkflowJobMove{{State: structs.StageStarting, Register: true}},
				},
			}
			results, errs := b.applier.SubmitAll(b.Context(), []*structs.Plan{start, planOf("new", 80, "node-000")})
			placed, most := 1, int64(80)
			if changed {
				placed, most = 0, 60
			}
			if errors.Is(errs[0], structs.ErrBadRequest) != changed || errs[1] != nil || results[1].Placed != placed {
				b.Fatalf("changed %v: the start: %v; beside it %d are placed, want %d: %v", changed, errs[0], results[1].Placed, placed, errs[1])
			}
			if used := b.used("node-000"); used != most {
				b.Errorf("changed %v: %d MHz of 100 are used, want %d", changed, used, most)
			}
			registered := b.store.Snapshot().Job(nil, "default", structs.WorkflowJobID("wf", 1, "j")) != nil
			if registered == changed {
				b.Errorf("changed %v: the job of the stage is registered: %v", changed, registered)
			}
		})
	}
}

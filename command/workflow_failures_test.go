package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestWorkflowFailureLine: it is not stated of a job that it has failed while it is tried again; where a time limit ended it, that is stated.
func TestWorkflowFailureLine(t *testing.T) {
	w := drawn()
	w.Stages, w.Workflow = w.Stages[1:2], &structs.Workflow{Stages: []*structs.WorkflowStage{{Jobs: []*structs.WorkflowJob{{Name: "b", Retries: 2}}}}}
	stage := &w.Stages[0]
	stage.Attempt, stage.Jobs = 1, stage.Jobs[:1]
	f := func(want string, j structs.WorkflowJobStatus) {
		t.Helper()
		j.Name, j.Instances = "b", 3
		stage.Jobs[0] = j
		if got := strings.Join(failureLines(w, time.Unix(100, 0)), "\n"); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	const running, exit = structs.StageRunning, "task \"t\": Exit Code: 3"
	f("", structs.WorkflowJobStatus{State: running, Attempt: 1})
	f(`Job "b" failed 2 times, is tried again in 5s: `+exit, structs.WorkflowJobStatus{State: running, Attempt: 1, Failures: 2, RetryTime: int64(105e9), Failure: exit})
	f(`Job "b" failed in attempt 1, attempt 2 of 3 goes on: `+exit, structs.WorkflowJobStatus{State: running, Attempt: 2, FailedBefore: 1, Failure: exit})
	f(`Job "b" goes on, and 1 of 3 instances failed: `+exit, structs.WorkflowJobStatus{State: running, Attempt: 1, Failed: 1, Failure: exit})
	f(`Job "b" failed: 2 of 3 instances ended at the time limit: `+exit, structs.WorkflowJobStatus{State: structs.StageFailed, Attempt: 1, Failed: 2, TimedOut: 2, Failure: exit})
	f(`Job "b" failed: 2 of 3 instances ended at the time limit`, structs.WorkflowJobStatus{State: structs.StageFailed, Attempt: 1, Failed: 2, TimedOut: 2})
	stage.Attempt = 2
	f(`Job "b" failed in attempt 1, attempt 2 goes on: `+exit, structs.WorkflowJobStatus{State: structs.StageStarting, Attempt: 2, FailedBefore: 1, Failure: exit})
}

// TestWorkflowHintsOfAll: where several jobs have failed each is named.
func TestWorkflowHintsOfAll(t *testing.T) {
	w := drawn()
	w.State, w.Stages[1].State = structs.WorkflowFailed, structs.StageFailed
	d := &w.Stages[1].Jobs[2]
	d.State, d.TimedOut, d.Failed = structs.StageFailed, 1, 1
	hints := strings.Join(workflowHints(w), "\n")
	wants(t, hints, "`nomadish workflow logs -stderr chip c` prints the errors", `Job "d" failed: ended at its time limit`, "`nomadish workflow retry chip` runs it again")
	if strings.Contains(hints, `Job "b"`) || strings.Count(hints, "retry") != 1 {
		t.Errorf("have %s", hints)
	}
}

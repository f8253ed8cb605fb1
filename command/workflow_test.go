package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// drawn is a workflow in the middle of its run, as of 100 s.
func drawn() *structs.WorkflowStatus {
	at := func(seconds float64) int64 { return int64(seconds * 1e9) }
	return &structs.WorkflowStatus{
		ID: "chip", Namespace: "default", Run: 1, State: structs.WorkflowRunning, Stage: 2, SubmitTime: at(1), Stages: []structs.WorkflowStageStatus{
			{Name: "synth", State: structs.StageComplete, Attempt: 1, Start: at(10), End: at(60), Jobs: []structs.WorkflowJobStatus{
				{Name: "a", State: structs.StageComplete, Attempt: 1, Start: at(10), End: at(60), Instances: 2, Complete: 2},
			}},
			{Name: "place", State: structs.StageRunning, Attempt: 2, Start: at(60), Jobs: []structs.WorkflowJobStatus{
				{Name: "b", State: structs.StageRunning, Attempt: 1, Start: at(60), Instances: 3, Complete: 1, Running: 2},
				{Name: "c", State: structs.StageFailed, Attempt: 2, Start: at(60), End: at(61.5), Instances: 1, Failed: 2},
				{Name: "d", State: structs.StageStarting, Attempt: 1, Start: at(60), Instances: 1},
			}},
			{Name: "route", State: structs.StageWaiting, Jobs: []structs.WorkflowJobStatus{{Name: "e", State: structs.StageWaiting, Instances: 1}, {Name: "f", State: structs.StageWaiting, Instances: 1}}},
		},
	}
}

func TestDrawWorkflow(t *testing.T) {
	f := func(w *structs.WorkflowStatus, want string) {
		t.Helper()
		if got := strings.Join(drawWorkflow(w, time.Unix(100, 0)), "\n"); got != strings.TrimPrefix(want, "\n") {
			t.Errorf("have\n%s\nwant%s", got, want)
		}
	}
	w := drawn()
	f(w, `
chip run 1  running  stage 2 of 3
synth [a ✓ 50s] ── place [b ▶ 40s, c ✗ 1.5s (attempt 2), d …] ── route [e, f]
synth [####################] 2 of 2 instances complete  complete 50s
place [####----------------] 1 of 5 instances complete, 2 failed  running 40s (attempt 2)`)
	w.Stopping = []string{"11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"}
	if got := drawWorkflow(w, time.Unix(100, 0))[1]; got != "Waits for 2 instances of earlier jobs of the workflow to stop: `nomadish alloc status 11111111`" {
		t.Errorf("have %s", got)
	}
	w.Stopping = nil
	w.Posted, w.Reserved, w.Used, w.Lent = true, structs.WorkflowResources{Cores: 8}, structs.WorkflowResources{Cores: 6}, structs.WorkflowResources{Cores: 2}
	one := structs.WorkflowResources{Cores: 1}
	w.LentTo = []structs.WorkflowLoan{{To: "group:interns", Share: 1, Due: one, Amount: one}, {To: "project:regress", Share: 1, Due: one, Amount: one}}
	w.Stages[1].Reclaimed = 4
	w.Stages[2].Name = strings.Repeat("long-", 12) + "name"
	f(w, `
chip run 1  running  stage 2 of 3  reserved 8 cores   used 6 cores  lent 2 cores  idle 0
synth [a ✓ 50s] ── place [b ▶ 40s, c ✗ 1.5s (attempt 2), d …] ──
  ── long-long-long-long-long-long-long-long-long-long-long-long-name [e, f]
synth                                                            [####################] 2 of 2 instances complete  complete 50s
place                                                            [####----------------] 1 of 5 instances complete, 2 failed  running 40s (attempt 2)
Lent: group:interns 1 core of 1 core, project:regress 1 core of 1 core   taken back: 0, 4`)
	many := w.Stages[1].Jobs[0]
	w.Stages[1].Jobs = append(w.Stages[1].Jobs, many, many, many, many, many, many)
	if got := drawStage(w.Stages[1], time.Unix(100, 0)); got != "7 running, 1 starting, 1 failed" {
		t.Error(got)
	}
}

// TestWorkflowMonitor: each state is printed once, those of jobs with their attempts.
func TestWorkflowMonitor(t *testing.T) {
	var out strings.Builder
	m := &workflowMonitor{e: &env{printer: printer{out: &out, now: func() time.Time { return time.Unix(100, 0).UTC() }}}, seen: map[string]string{}, live: ui.NewLive(&out)}
	m.report(drawn())
	m.report(drawn())
	var lines []string
	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "Z: ")
		if text == "" {
			_, text, _ = strings.Cut(strings.TrimSpace(line), ".000: ")
		}
		lines = append(lines, text)
	}
	want := []string{
		"Workflow is running", `Stage "synth": job "a" is complete`, `Stage "synth": complete after 50s`,
		`Stage "place": job "b" is running`, `Stage "place": job "c" failed (attempt 2)`,
	}
	if strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("have %q\nwant %q", lines, want)
	}
}

// TestWorkflowMonitorRetry: what was complete in an earlier run is not printed as if it had just run, and the end of the run comes last.
func TestWorkflowMonitorRetry(t *testing.T) {
	w := drawn()
	w.Run, w.State, w.SubmitTime, w.EndTime = 2, structs.WorkflowFailed, int64(60e9), int64(90e9)
	w.Stages[0].End = int64(59e9)
	w.Stages[1].State, w.Stages[1].End = structs.StageFailed, int64(90e9)
	f := newFake(t).on("GET /v1/workflow/chip", w).on("GET /v1/workflows", []*structs.WorkflowStub{{ID: "chip", Namespace: "default"}}).
		on("PUT /v1/workflow/chip/retry", structs.WorkflowRunReply{Run: 2})
	got := f.run(t, "workflow", "retry", "chip")
	if got.code != exitFailed || strings.Contains(got.out, `job "a"`) || strings.Contains(got.out, "Workflow is failed") {
		t.Errorf("%+v", got)
	}
	wants(t, got.out, `Stage "synth": complete in an earlier run`, `Stage "place": failed after 30s`, `Workflow "chip" failed after 30s`,
		"`nomadish workflow logs -stderr chip c` prints the errors", "`nomadish workflow retry chip` runs it again")
}

// TestWorkflowHints: who sees a workflow that does not go on by itself sees the command that helps.
func TestWorkflowHints(t *testing.T) {
	f := func(state, want string) {
		t.Helper()
		w := drawn()
		w.Namespace, w.State = "team", state
		if got := strings.Join(workflowHints(w), "\n"); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
	f(structs.WorkflowRunning, "")
	f(structs.WorkflowComplete, "")
	f(structs.WorkflowPaused, "`nomadish workflow resume -namespace team chip` lets it go on")
	f(structs.WorkflowCancelled, "`nomadish workflow retry -namespace team chip` runs it again from the first stage that is not complete")
	f(structs.WorkflowFailed, "`nomadish workflow retry -namespace team chip` runs it again from the first stage that is not complete")
}

// TestWorkflowLogsOfEarlierRun: the ID of a job, such as one of an earlier run, is no workflow's name, and the error states the command that takes it.
func TestWorkflowLogsOfEarlierRun(t *testing.T) {
	f := newFake(t).on("GET /v1/workflows", []*structs.WorkflowStub{})
	if got := f.run(t, "workflow", "logs", "chip/1/low", "low"); got.code != exitFailed || !strings.Contains(got.err, "`nomadish alloc logs -job chip/1/low`") {
		t.Errorf("%+v", got)
	}
}

// TestWorkflowForecast: when a workflow starts, in its status and in a plan.
func TestWorkflowForecast(t *testing.T) {
	at := func(minutes int64) int64 { return minutes * int64(time.Minute) }
	clock := func(minutes int64) string { return clockTime(at(minutes), time.Unix(0, 0)) }
	end := structs.EndForecast{Time: at(10), Namespace: "default", JobID: "fill", Name: "fill.g[3]", NodeName: "node-1"}
	f := &structs.RunForecast{Index: 7, Time: at(1), WorkflowForecast: structs.WorkflowForecast{
		Namespace: "default", ID: "chip", Run: 1,
		Expected: structs.WorkflowStartForecast{Start: at(10), WaitsFor: []structs.EndForecast{end}, Stages: []structs.StageForecast{{Name: "a", Start: at(10), End: at(12)}, {Name: "b", Start: at(12), End: at(14)}}},
		Latest:   structs.WorkflowStartForecast{Start: at(20), Unknown: "job b has no end", Stages: []structs.StageForecast{{Name: "a", Start: at(20), End: at(30)}, {Name: "b", Start: at(30)}}},
	}}
	end.Time = at(20)
	f.Latest.WaitsFor = []structs.EndForecast{end}
	got := strings.Join(workflowWaitLines(&structs.WorkflowStatus{Forecast: f}, time.Unix(0, 0)), "\n")
	want := "Expected start: " + clock(10) + ", at the latest " + clock(20) + " (forecast of index 7, made at " + clock(1) + ")\n  when fill.g[3] on node-1 ends, " + clock(10) + ", at the latest " + clock(20)
	if got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	if got := workflowWaitLines(&structs.WorkflowStatus{NoForecast: "there is none"}, time.Unix(0, 0)); len(got) != 1 || got[0] != "When it is expected to start is not known: there is none" {
		t.Errorf("%q", got)
	}
	planned := func(p *structs.WorkflowPlan) string {
		var out strings.Builder
		printPlanForecast(&printer{out: &out}, p, time.Unix(0, 0))
		return out.String()
	}
	wants(t, planned(&structs.WorkflowPlan{Forecast: f}), "If it were run now (as of index 7):", "  Expected start: "+clock(10), "At the Latest",
		clock(12)+" to "+clock(14), "from "+clock(30), "Not known: job b has no end")
	wants(t, planned(&structs.WorkflowPlan{NoForecast: "there is none"}), "When its stages would start is not known: there is none")
	if got := planned(&structs.WorkflowPlan{NoForecast: "run 1 has not ended", Alive: 1}); got != "" {
		t.Errorf("%q", got)
	}
}

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
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
	eight := structs.WorkflowResources{Cores: 8, MemoryMB: 1024}
	w.Keeps = []structs.WorkflowKept{{Node: "build-7", Amount: eight}, {Node: "build-8", Amount: eight}}
	if got := drawWorkflow(w, time.Unix(100, 0))[1]; got != "Keeps what comes free for its reservation: 8 cores, 1.0 GiB on node build-7; 8 cores, 1.0 GiB on node build-8" {
		t.Errorf("have %s", got)
	}
	w.Keeps[0] = structs.WorkflowKept{Amount: structs.WorkflowResources{Licenses: map[string]int64{"vcs": 7}}}
	if got := drawWorkflow(w, time.Unix(100, 0))[1]; got != "Keeps what comes free for its reservation: vcs 7; 8 cores, 1.0 GiB on node build-8" {
		t.Errorf("have %s", got)
	}
	w.Keeps, w.Posted = slices.Repeat(w.Keeps[1:], 5), true
	if got := drawWorkflow(w, time.Unix(100, 0))[1]; !strings.HasPrefix(got, "Keeps what comes free for what is missing: 8") || !strings.HasSuffix(got, "; and of 1 more node") {
		t.Errorf("have %s", got)
	}
	w.Keeps = nil
	w.Posted, w.Reserved, w.Used, w.Lent = true, structs.WorkflowResources{Cores: 8}, structs.WorkflowResources{Cores: 6}, structs.WorkflowResources{Cores: 2}
	one := structs.WorkflowResources{Cores: 1}
	more := structs.WorkflowResources{Cores: 3, MemoryMB: 20, Licenses: map[string]int64{"vcs": 1}}
	w.LentTo = []structs.WorkflowLoan{{To: "group:interns", Share: 1, Due: one, Amount: one, Lent: one}, {To: "project:regress", Share: 1, Due: one, Amount: more, Lent: one}}
	w.Lost = structs.WorkflowResources{GPUs: 1}
	if got := drawWorkflow(w, time.Unix(100, 0))[0]; !strings.HasSuffix(got, "used 6 cores  lent 2 cores  idle 0  lost 1 GPU") {
		t.Errorf("have %s", got)
	}
	w.Reserved.DiskMB, w.Used.DiskMB, w.Lost.DiskMB = 900, 600, 300
	if got := drawWorkflow(w, time.Unix(100, 0))[1]; got != "Disk: reserved 900 MiB   used 600 MiB  lent 0 MiB  idle 0 MiB  lost 300 MiB" {
		t.Errorf("have %s", got)
	}
	w.Reserved.DiskMB, w.Used.DiskMB = 0, 0
	w.Lost = structs.WorkflowResources{}
	w.Stages[1].Reclaimed = 4
	w.Stages[2].Name = strings.Repeat("long-", 12) + "name"
	f(w, `
chip run 1  running  stage 2 of 3  reserved 8 cores   used 6 cores  lent 2 cores  idle 0
synth [a ✓ 50s] ── place [b ▶ 40s, c ✗ 1.5s (attempt 2), d …] ──
  ── long-long-long-long-long-long-long-long-long-long-long-long-name [e, f]
synth                                                            [####################] 2 of 2 instances complete  complete 50s
place                                                            [####----------------] 1 of 5 instances complete, 2 failed  running 40s (attempt 2)
Lent: group:interns 1 core of 1 core, project:regress 1 core of 1 core (and 2 cores, 20 MiB, vcs 1 beside the reservation)   taken back: 0, 4`)
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

// TestWorkflowWaits: a job of which nothing runs is not drawn as one that does: it waits in the queue, or its instances have failed and are tried again; who
// follows the run sees both.
func TestWorkflowWaits(t *testing.T) {
	w := drawn()
	w.Stages = w.Stages[1:2]
	job := &w.Stages[0].Jobs[0]
	w.Stages[0].Jobs = w.Stages[0].Jobs[:1]
	now := time.Unix(100, 0)
	var out strings.Builder
	m := &workflowMonitor{e: &env{printer: printer{out: &out, now: func() time.Time { return now }}}, seen: map[string]string{}, live: ui.NewLive(&out)}
	f := func(drawn, progress string, lines ...string) {
		t.Helper()
		if got := drawStage(w.Stages[0], now); got != drawn {
			t.Errorf("have %s, want %s", got, drawn)
		}
		if got := progressLines(w, now)[0]; !strings.Contains(got, progress) {
			t.Errorf("have %s, want %s", got, progress)
		}
		out.Reset()
		m.report(w)
		for _, line := range lines {
			wants(t, out.String(), ": Stage \"place\": job \"b\""+line+"\n")
		}
		if have := strings.Count(out.String(), "job"); have != len(lines) {
			t.Errorf("%d lines about the job, want %d: %s", have, len(lines), out.String())
		}
	}
	f("b ▶ 40s", "1 of 3 instances complete  running 40s (attempt 2)", " is running")
	job.Running, job.Queued = 0, 2
	f("b … 40s", "1 of 3 instances complete, none running, 2 in the queue  running", ": no instance runs now, 2 in the queue")
	job.Queued = 0
	f("b … 40s", "1 of 3 instances complete  running")
	job.Running = 2
	f("b ▶ 40s", "complete  running", ": 2 of 3 instances running again")
	job.Running, job.Failures, job.RetryTime = 1, 1, now.Add(12*time.Second).UnixNano()
	f("b ▶ 40s failed 1 time, is tried again in 12s", "complete  running", " failed 1 time, is tried again in 12s")
	job.Failures, job.RetryTime = 2, now.UnixNano()
	f("b ▶ 40s failed 2 times, is tried again", "complete  running")
	now = now.Add(time.Second)
	job.RetryTime = 0
	f("b ▶ 41s failed 2 times", "complete  running", " failed 2 times")
	f("b ▶ 41s failed 2 times", "complete  running")
	job.Attempt, job.Failures, job.FailedBefore = 2, 0, 1
	f("b ▶ 41s (attempt 2)", "complete  running", " failed (attempt 1)", " is running (attempt 2)")
	w.Stages[0].State, w.Stages[0].End, job.State, job.Failed = structs.StageFailed, int64(110e9), structs.StageFailed, 1
	out.Reset()
	m.report(w)
	wants(t, out.String(), `Stage "place": job "b" failed (attempt 2)`, `Stage "place": failed after 50s (attempt 2)`)
}

// TestWorkflowWatch: into a file a workflow is shown with the time when it has changed, and not again where only time has passed. While an answer is awaited
// the drawing goes on, as what it states of time does.
func TestWorkflowWatch(t *testing.T) {
	w := drawn()
	again, ended := *w, *w
	again.ModifyIndex = 9 // which is not shown
	ended.State, ended.EndTime = structs.WorkflowComplete, int64(90e9)
	f := newFake(t).on("GET /v1/workflows", []*structs.WorkflowStub{{ID: "chip", Namespace: "default"}}).on("GET /v1/workflow/chip", w, again, ended)
	got := f.run(t, "workflow", "status", "-watch", "chip")
	if got.code != exitDone || strings.Count(got.out, "\nchip run 1") != 2 || strings.Count("\n"+got.out, "\n==> ") != 2 {
		t.Errorf("%+v", got)
	}

	ticks, awaited := make(chan time.Time), make(chan struct{})
	agent := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		<-awaited
		_ = json.NewEncoder(to).Encode(w)
	}))
	defer agent.Close()
	client, err := api.New(api.Config{Address: agent.URL})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	draws, from := 0, followWorkflow(&env{printer: printer{out: &out, now: time.Now}, client: client}, "chip")
	from.live, from.tick, from.text = ui.NewLive(&out), ticks, func() []string { draws++; return nil }
	go func() {
		ticks <- time.Time{}
		ticks <- time.Time{}
		close(awaited)
	}()
	if _, err := from.next(t.Context(), func(error) {}); err != nil || draws != 2 {
		t.Errorf("%v; it was drawn %d times while the answer was awaited", err, draws)
	}
}

// TestWorkflowMonitorLost: who follows a run goes on once an agent answers again; if none does, the run is said not to end with that.
func TestWorkflowMonitorLost(t *testing.T) {
	w := drawn()
	w.Stages = w.Stages[:1]
	for _, again := range []bool{true, false} {
		var requests atomic.Int32
		agent := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			calls := requests.Add(1)
			if calls > 1 && (calls < 4 || !again) {
				panic(http.ErrAbortHandler) // the connection ends without an answer
			}
			now := *w
			if calls > 1 {
				now.State, now.EndTime = structs.WorkflowComplete, int64(90e9)
			}
			to.Header().Set("X-Nomad-Index", "7")
			_ = json.NewEncoder(to).Encode(now)
		}))
		defer agent.Close()
		client, err := api.New(api.Config{Address: agent.URL})
		if err != nil {
			t.Fatal(err)
		}
		var out, failed strings.Builder
		e := &env{printer: printer{out: &out, now: func() time.Time { return time.Unix(100, 0) }}, err: &failed, client: client}
		m := &workflowMonitor{e: e, id: "chip", run: 1, from: followWorkflow(e, "chip"), seen: map[string]string{}, live: ui.NewLive(&out)}
		m.from.pause = time.Microsecond
		want := map[bool]int{true: exitDone, false: exitInterrupted}[again]
		if code := m.follow(t.Context()); code != want || !strings.Contains(failed.String(), "no agent answers at") || strings.Contains(failed.String(), "agent -dev") {
			t.Errorf("an agent answers again: %v: exit code %d, want %d\n%s\n%s", again, code, want, out.String(), failed.String())
		}
		if hint := "once an agent answers, `nomadish workflow status chip` shows it"; strings.Contains(failed.String(), hint) == again {
			t.Errorf("an agent answers again: %v: %s", again, failed.String())
		}
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

// TestWorkflowFailures: why a job has failed is stated where it is drawn, and as it happens.
func TestWorkflowFailures(t *testing.T) {
	w := drawn()
	c := &w.Stages[1].Jobs[1]
	c.Failure, c.FailureAlloc = `task "t": no such file "/bin/x"`, "11111111-2222-3333-4444-555555555555"
	lines := drawWorkflow(w, time.Unix(100, 0))
	if got, want := lines[len(lines)-1], "Job \"c\" failed: task \"t\": no such file \"/bin/x\" (`nomadish alloc status 11111111`)"; got != want {
		t.Errorf("have %q, want %q", got, want)
	}
	var out strings.Builder
	m := &workflowMonitor{e: &env{printer: printer{out: &out, now: func() time.Time { return time.Unix(100, 0).UTC() }}}, seen: map[string]string{}, live: ui.NewLive(&out)}
	m.report(w)
	wants(t, out.String(), `Stage "place": job "c" failed (attempt 2): task "t": no such file "/bin/x"`)
	out.Reset()
	c.State, c.Running, c.Failures = structs.StageRunning, 1, 3
	m.report(w)
	wants(t, out.String(), `Stage "place": job "c" failed 3 times: task "t": no such file "/bin/x"`)
	w.Stages[1].Jobs = slices.Repeat(w.Stages[1].Jobs[1:2], failuresNamed+2)
	if lines = drawWorkflow(w, time.Unix(100, 0)); lines[len(lines)-1] != "and 2 more jobs failed" {
		t.Errorf("have %q", lines)
	}
}

// TestWorkflowElsewhere: who names a workflow, or a job, of another namespace learns of which.
func TestWorkflowElsewhere(t *testing.T) {
	t.Parallel()
	none := []*structs.WorkflowStub{}
	f := newFake(t).on("GET /v1/workflows", none, none, []*structs.WorkflowStub{{ID: "chip", Namespace: "team"}, {ID: "chip-2", Namespace: "other"}}).
		on("GET /v1/jobs", []*structs.JobListStub{}, []*structs.JobListStub{}, []*structs.JobListStub{{ID: "web", Namespace: "team"}, {ID: "web", Namespace: "lab"}}, []*structs.JobListStub{})
	wants(t, f.run(t, "workflow", "status", "chip").err, `no workflow has a name that starts with "chip"; there is one in namespace team (-namespace team)`)
	if got := f.requests("GET /v1/workflows"); len(got) != 3 || !strings.Contains(got[2], "namespace=%2A") && !strings.Contains(got[2], "namespace=*") {
		t.Errorf("%q", got)
	}
	wants(t, f.run(t, "job", "status", "web").err, `; there is one in namespaces lab, team (-namespace lab)`)
	f = newFake(t).on("GET /v1/workflows", none)
	if got := f.run(t, "workflow", "status", "-namespace", "*", "chip"); strings.Contains(got.err, "there is one") || len(f.requests("GET /v1/workflows")) != 2 {
		t.Errorf("%+v", got)
	}
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
	want := "Expected start: " + clock(10) + ", at the latest " + clock(20) + " (forecast of index 7, as of 0s ago)\n  when fill.g[3] on node-1 ends, " + clock(10) + ", at the latest " + clock(20)
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

// TestJobOfWorkflow: who looks at a job of a workflow that is not registered yet sees which workflow it belongs to, and what that waits for.
func TestJobOfWorkflow(t *testing.T) {
	w := drawn()
	f := newFake(t).on("GET /v1/jobs", []*structs.JobListStub{}).on("GET /v1/workflow/chip", w).
		on("GET /v1/workflows", []*structs.WorkflowStub{{ID: "chip", Namespace: "default"}})
	check := func(job, want string) {
		t.Helper()
		for _, command := range []string{"status", "explain"} {
			if got := f.run(t, "job", command, job); got.code != exitFailed || !strings.Contains(got.err, want) {
				t.Errorf("job %s %s: %q, want %q", command, job, got.err, want)
			}
		}
	}
	check("chip/1/e", `job "e" of workflow "chip", run 1 is not registered yet: the run is running; `+"`nomadish workflow status chip` shows the workflow")
	w.StartTime = int64(10e9)
	check("chip/1/e", `it is registered when its stage "route" starts; the run is running, in stage 2 of 3;`)
	check("chip/1/a", `job "a" of workflow "chip", run 1, of stage "synth", is complete, and is not registered any more;`)
	check("chip/7/e", `the last run is 1,`)
	check("chip/1/x", `workflow "chip" has no job "x";`)
	w.State = structs.WorkflowPaused
	check("chip/1/e", "is not registered yet: the run is paused, in stage 2 of 3, and `nomadish workflow resume chip` lets it go on;")
	w.State, w.EndTime = structs.WorkflowFailed, int64(90e9)
	check("chip/1/e", `was never registered: the run failed, and stage "route" has not started;`)
	check("other/1/e", `no job is named "other/1/e"`)
	check("chip/one/e", `no job is named "chip/one/e"`)
	f = newFake(t).on("GET /v1/jobs", []*structs.JobListStub{{ID: "chip/1/low", Name: "low-of-file"}, {ID: "chip/1/slow"}, {ID: "mid/2/low"}, {ID: "x"}})
	check("low", `no job is named "low" or has an ID that starts so; jobs of workflows are named WORKFLOW/RUN/JOB, as chip/1/low, mid/2/low`+"\n")
	if got := f.run(t, "alloc", "logs", "-job", "low"); got.code != exitFailed || !strings.Contains(got.err, "as chip/1/low, mid/2/low") {
		t.Errorf("alloc logs: %+v", got)
	}
}

// TestWorkflowActs: pausing what is paused, and resuming what is not, is stated as what it is.
func TestWorkflowActs(t *testing.T) {
	w := drawn()
	f := newFake(t).on("GET /v1/workflow/chip", w).on("PUT /v1/workflow/chip/resume", nil).on("PUT /v1/workflow/chip/pause", nil)
	check := func(command, want string) {
		t.Helper()
		if got := f.run(t, "workflow", command, "chip"); got.code != exitDone || got.out != want+"\n" {
			t.Errorf("%s: %+v, want %q", command, got, want)
		}
	}
	check("resume", `Nothing to do: workflow "chip" is running already`)
	check("pause", `Workflow "chip" is paused`)
	w.State = structs.WorkflowPaused
	check("resume", `Workflow "chip" goes on`)
	check("pause", `Nothing to do: workflow "chip" is paused already`)
}

// TestWorkflowInit: the example names the file that it was written to, and is planned as a user.
func TestWorkflowInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.hcl")
	f := newFake(t).on("PUT /v1/workflow/numbers/plan", structs.WorkflowPlan{ID: "numbers"})
	if got := f.run(t, "workflow", "init", path); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "Try: nomadish workflow run "+path+"\n") {
		t.Errorf("%s %v", text, err)
	}
	if got := f.run(t, "workflow", "plan", "-user", "ann", path); got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

// TestWorkflowMonitorWaits: who follows a run that cannot start sees what it waits for and when it is expected to start, and again when that has
// changed, but not all the time.
func TestWorkflowMonitorWaits(t *testing.T) {
	var out strings.Builder
	now := time.Unix(100, 0)
	m := &workflowMonitor{e: &env{printer: printer{out: &out, now: func() time.Time { return now }}}, seen: map[string]string{}, live: ui.NewLive(&out)}
	w := drawn()
	w.State, w.Stage, w.Stages = structs.WorkflowPending, 1, w.Stages[2:]
	printed := func(passed time.Duration) string {
		out.Reset()
		now = now.Add(passed)
		m.report(w)
		return out.String()
	}
	if got := printed(0); !strings.HasSuffix(got, ": Workflow is pending\n") {
		t.Error(got)
	}
	w.Missing, w.NoForecast = "4 cores are missing", "it is not part of a forecast yet"
	if got := printed(time.Second); !strings.HasSuffix(got, ": Waits for its reservation: 4 cores are missing\n") || strings.Contains(got, "pending") {
		t.Error(got)
	}
	at := func(second int64) {
		start := structs.WorkflowStartForecast{Start: second * int64(time.Second)}
		w.NoForecast, w.Forecast = "", &structs.RunForecast{WorkflowForecast: structs.WorkflowForecast{Expected: start, Latest: start}}
	}
	at(200)
	if got := printed(time.Second); got != "" {
		t.Errorf("too soon: %s", got)
	}
	if got := printed(waitsEvery); !strings.HasSuffix(got, "\n      Expected start: "+clockTime(200e9, now)+", also at the latest\n") {
		t.Errorf("%q", got)
	}
	if got := printed(waitsEvery); got != "" {
		t.Errorf("nothing has changed: %s", got)
	}
	at(300)
	if got := printed(waitsEvery); !strings.Contains(got, clockTime(300e9, now)) {
		t.Error(got)
	}
	w.State, w.Posted, w.Forecast, w.Missing = structs.WorkflowRunning, true, nil, "the part on node n, which drains, is lost once what runs there has ended"
	if got := printed(waitsEvery); !strings.HasSuffix(got, ": Its reservation: the part on node n, which drains, is lost once what runs there has ended\n") {
		t.Errorf("%q", got)
	}
}

// TestWorkflowStopped: a job that somebody has stopped has failed as it was stopped, and its logs show no errors of it.
func TestWorkflowStopped(t *testing.T) {
	w := drawn()
	w.State, w.EndTime, w.Stages[1].State = structs.WorkflowFailed, int64(90e9), structs.StageFailed
	w.Stages[1].Jobs = w.Stages[1].Jobs[1:2]
	w.Stages[1].Jobs[0].Stopped = true
	if got := drawStage(w.Stages[1], time.Unix(100, 0)); got != "c ✗ 1.5s stopped (attempt 2)" {
		t.Error(got)
	}
	wants(t, strings.Join(workflowHints(w), "\n"), "Job \"c\" was stopped", "`nomadish workflow retry chip`")
	w.Stages[1].Jobs[0].Stopped, w.Stages[1].Jobs[0].Removed = false, true
	if got := drawStage(w.Stages[1], time.Unix(100, 0)); got != "c ✗ 1.5s not registered any more (attempt 2)" {
		t.Error(got)
	}
	hints := strings.Join(workflowHints(w), "\n")
	if wants(t, hints, "Job \"c\" is not registered any more: it was purged", "`nomadish workflow retry chip`"); strings.Contains(hints, "workflow logs") {
		t.Errorf("its logs are gone: %s", hints)
	}
}

// TestWorkflowPlanColumns: what a workflow needs nothing of is no column of its plan, and what whole cores have of MHz is not named beside them. Whose instances would
// leave is.
func TestWorkflowPlanColumns(t *testing.T) {
	cores := structs.WorkflowResources{Cores: 8, MemoryMB: 100}
	plan := structs.WorkflowPlan{ID: "numbers", Namespace: "default", NodePool: "default", Stages: []structs.WorkflowPlanStage{{Name: "a", Needs: cores}},
		Max: cores, Sum: cores, Reserved: cores, Posted: true, Packing: []structs.WorkflowPart{{CPU: 8000, Cores: 8, MemoryMB: 100}}, MHzPerCore: 1000, Nodes: []string{"node-1"}}
	var out strings.Builder
	workflowReader{&env{printer: printer{out: &out, now: time.Now}}}.printPlan(&plan)
	if got := out.String(); strings.Contains(got, "is more than") || strings.Contains(got, "MHz") || strings.Contains(got, "GPUs") || strings.Contains(got, "CPU") || strings.Contains(got, "Licenses") || strings.Contains(got, "Disk") {
		t.Error(got)
	}
	wants(t, out.String(), "Stage", "Cores", "node-1")
	if strings.Contains(out.String(), "Band") {
		t.Errorf("nobody leaves:\n%s", out.String())
	}
	out.Reset()
	plan.Preempted, plan.Leavers = 5, []structs.WorkflowLeaver{
		{Namespace: "team", JobID: "low", TaskGroup: "g", Instances: 3, Priority: 10, Band: "1-40"},
		{Namespace: "team", JobID: "mid", TaskGroup: "g", Instances: 2, Priority: 50, Band: "41-70", Suspended: true},
	}
	workflowReader{&env{printer: printer{out: &out, now: time.Now}}}.printPlan(&plan)
	wants(t, strings.Join(strings.Fields(out.String()), " "), "5 instances of lower bands or standing would be preempted:", "team low g 3 10 1-40 stopped, back to the queue",
		"team mid g 2 50 41-70 suspended")
	out.Reset()
	plan.Reserved.CPU, plan.Reserved.DiskMB, plan.Packing[0].CPU, plan.Packing[0].DiskMB = 700, 300, 8700, 300
	workflowReader{&env{printer: printer{out: &out, now: time.Now}}}.printPlan(&plan)
	wants(t, strings.Join(strings.Fields(out.String()), " "), "Reserved 700 MHz 8 100 MiB 300 MiB", "Node CPU Cores Memory Disk node-1 700 MHz 8 100 MiB 300 MiB")
	out.Reset()
	plan.Packing = append(plan.Packing, structs.WorkflowPart{CPU: 2000, Cores: 2, MemoryMB: 50})
	workflowReader{&env{printer: printer{out: &out, now: time.Now}}}.printPlan(&plan)
	wants(t, out.String(), "That is more than \"Reserved\" by 2 cores, 50 MiB, as the instances of the stages do not pack into less.")
	out.Reset()
	plan.Alive, plan.Packing, plan.Posted = 3, nil, false
	workflowReader{&env{printer: printer{out: &out, now: time.Now}}}.printPlan(&plan)
	if wants(t, out.String(), "Run 3 has not ended"); strings.Contains(out.String(), "It would") {
		t.Errorf("while a run has not ended:\n%s", out.String())
	}
}

// TestWorkflowJobFileOfFolder: a job file that is a folder is named once.
func TestWorkflowJobFileOfFolder(t *testing.T) {
	dir := t.TempDir()
	_, err := readJobFile(filepath.Dir(dir), filepath.Base(dir))
	if err == nil || err.Error() != "read "+dir+": is a directory" {
		t.Error(err)
	}
}

// TestWorkflowStageText: when a stage runs in a plan; of one that takes less than a second not twice the same.
func TestWorkflowStageText(t *testing.T) {
	at := int64(100 * time.Second)
	if got, want := stageText(structs.StageForecast{Start: at, End: at + int64(20*time.Millisecond)}, time.Unix(100, 0)), clockTime(at, time.Unix(100, 0))+", for 20ms"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWorkflowJSON: a workflow file in JSON with a key that there is not is refused, as by the HTTP API; in jobs, keys are ignored as Nomad does.
func TestWorkflowJSON(t *testing.T) {
	f := func(keys, want string) {
		t.Helper()
		src := `{"ID": "w", "Stages": [{"Name": "s", "Jobs": [{"Name": "a", "Job": {"Unheard": 1, "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "mock_driver"}]}]}` +
			keys + `}]}], "LendMax": {"Cores": 1}}`
		var none *fake
		got := none.run(t, "workflow", "validate", "-json", file(t, "w.json", src))
		if (got.code != exitDone) != (want != "valid") || !strings.Contains(got.out+got.err, want) {
			t.Errorf("%+v, want %q", got, want)
		}
		if got.code == exitDone {
			wants(t, got.out, "Workflow Warnings:\n  lend_max: it has no effect without a lend block")
		}
	}
	f("", "valid")
	f(`, "Retryes": 2`, `unknown key "Stages[0].Jobs[0].Retryes" (did you mean "Retries"?)`)
}

package command

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

func batchEval() *structs.Evaluation {
	ev := webEval(evalA, structs.EvalStatusComplete)
	ev.Type = structs.JobTypeBatch
	return ev
}

// broken is an allocation that failed for a reason, whose second task was killed for it.
func broken(id, description, message string) *structs.AllocListStub {
	s := webAlloc(id, structs.AllocClientFailed).Stub(false, true)
	s.ClientDescription = description
	s.TaskStates = map[string]*structs.TaskState{
		"aside": {State: structs.TaskStateDead, Events: []*structs.TaskEvent{{Type: structs.TaskKilled, DisplayMessage: "Sibling failed"}}},
		"serve": {State: structs.TaskStateDead, Failed: true, Events: []*structs.TaskEvent{
			{Type: structs.TaskStarted, DisplayMessage: "Task started by client"},
			{Type: structs.TaskNotRestarting, DisplayMessage: message},
			{Type: structs.TaskKilling},
		}},
	}
	return s
}

func TestMonitorSaysWhyAnAllocationFailed(t *testing.T) {
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusComplete)).
		on("GET /v1/evaluation/"+evalA+"/allocations",
			[]*structs.AllocListStub{broken(allocA, "Failed tasks", "Exceeded allowed\n attempts")})
	got := f.run(t, "run", file(t, "a.hcl", examples.Service))
	wants(t, got.out, `Allocation "5f3a9c01" is failed: Failed tasks; task "serve": Exceeded allowed attempts`+"\n")
	if got.code != exitIncomplete { // as in Nomad, it does not run as it should
		t.Errorf("exit code %d, want %d", got.code, exitIncomplete)
	}
}

func TestHowAnAllocationEnded(t *testing.T) {
	without := broken(allocA, "max_run_duration exceeded", "")
	without.TaskStates = nil
	unsaid := broken(allocA, "", "gone")
	fine := broken(allocA, "Failed tasks", "x")
	fine.ClientStatus = structs.AllocClientComplete
	sibling := broken(allocA, "Failed tasks", "x")
	sibling.TaskStates["serve"] = nil
	of := func(events ...*structs.TaskEvent) *structs.AllocListStub {
		s := broken(allocA, "Failed tasks", "Error was unrecoverable")
		t := s.TaskStates["serve"]
		t.Events = slices.Insert(t.Events, 1, events...)
		return s
	}
	driver := &structs.TaskEvent{Type: structs.TaskDriverFailure, DisplayMessage: "no such file"}
	exit := &structs.TaskEvent{Type: structs.TaskTerminated, ExitCode: 3, DisplayMessage: "Exit Code: 3"}
	ended := after(allocA, structs.AllocClientComplete)[0]
	limited := after(allocA, structs.AllocClientComplete)[0]
	limited.ClientDescription = structs.DescMaxRunDuration
	for want, a := range map[string]*structs.AllocListStub{
		" (ended at its time limit, max_run_duration)": limited,
		": max_run_duration exceeded":                  without,
		`; task "serve": gone`:                         unsaid,
		"":                                             fine,
		`: Failed tasks; task "aside": Sibling failed`:                        sibling,
		`: Failed tasks; task "serve": no such file; Error was unrecoverable`: of(driver),
		`: Failed tasks; task "serve": Exit Code: 3; Error was unrecoverable`: of(driver, exit),
		` (task "serve" exit code 3)`:                                         ended,
	} {
		if got := howEnded(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := allocRows(&printer{now: time.Now}, []*structs.AllocListStub{limited}, false)[1][6]; got != "complete (time limit)" {
		t.Errorf("in a table %q", got)
	}
}

func TestJobRunOfBatchThatFails(t *testing.T) {
	run := func(ev *structs.Evaluation, allocs ...*structs.AllocListStub) result {
		t.Helper()
		f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, ev).on("GET /v1/evaluation/"+evalA+"/allocations", allocs)
		return f.run(t, "run", file(t, "a.hcl", examples.Batch))
	}
	well := after(allocB, structs.AllocClientComplete)[0]
	got := run(batchEval(), well, broken(allocA, "Failed tasks", "Out of memory"))
	if got.code != exitFailed {
		t.Errorf("exit code %d, want %d", got.code, exitFailed)
	}
	wants(t, got.out, "1 of 2 allocations failed:", `* web.front[0] "5f3a9c01" on node "gpu-1": Failed tasks; task "serve": Out of memory`,
		"`nomadish alloc status 5f3a9c01` shows more")

	if got := run(unplaced(batchEval()), broken(allocA, "Failed tasks", "x")); got.code != exitIncomplete {
		t.Errorf("not all placed: exit code %d, want %d", got.code, exitIncomplete)
	}
	var many []*structs.AllocListStub
	lab := batchEval()
	lab.Namespace = "lab"
	for i := range 13 {
		many = append(many, broken(structs.DeriveID("x", uint64(i)), "Failed tasks", fmt.Sprint("x", i%12)))
	}
	got = run(lab, many...)
	wants(t, got.out, "13 of 13 allocations failed:", `x0, and 1 like it`+"\n", "and 2 more: `nomadish job allocs -namespace lab web` lists them",
		"alloc status -namespace lab ")
	if n := strings.Count(got.out, "      * web.front"); n != failedShown {
		t.Errorf("%d ways to fail are told, want %d:\n%s", n, failedShown, got.out)
	}
}

// A batch job of which all has failed fails again where it is submitted as it was, though nothing is placed.
func TestJobRunOfBatchThatHasFailed(t *testing.T) {
	of := func(a *structs.AllocListStub, change func(a *structs.AllocListStub)) *structs.AllocListStub {
		change(a)
		return a
	}
	bad := func() *structs.AllocListStub { return broken(allocA, "Failed tasks", "Out of memory") }
	fine := after(allocB, structs.AllocClientComplete)[0]
	for name, c := range map[string]struct {
		allocs []*structs.AllocListStub
		code   int
		says   string
	}{
		"one failed": {[]*structs.AllocListStub{fine, bad()}, exitFailed, "1 of 2 allocations failed:"},
		"all are complete": {[]*structs.AllocListStub{fine}, exitDone,
			"Nothing is placed: this version of the job has been placed before (1 complete)"},
		"one runs": {[]*structs.AllocListStub{bad(), after(allocB, structs.AllocClientRunning)[0]}, exitDone,
			"Nothing is placed: this version of the job has been placed before (1 failed, 1 running)"},
		"of another version": {[]*structs.AllocListStub{of(bad(), func(a *structs.AllocListStub) { a.JobVersion-- })}, exitDone, ""},
		"stopped":            {[]*structs.AllocListStub{of(bad(), func(a *structs.AllocListStub) { a.DesiredStatus = structs.AllocDesiredStop })}, exitDone, ""},
		"replaced":           {[]*structs.AllocListStub{of(bad(), func(a *structs.AllocListStub) { a.NextAllocation = allocB }), fine}, exitDone, ""},
		"none":               {nil, exitDone, ""},
	} {
		job := webJob()
		job.Version = fine.JobVersion
		ev := batchEval()
		ev.TriggeredBy = structs.EvalTriggerJobRegister
		f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, ev).on("GET /v1/evaluation/"+evalA+"/allocations", []*structs.AllocListStub{}).
			on("GET /v1/job/web", job).on("GET /v1/job/web/allocations", c.allocs)
		got := f.run(t, "run", file(t, "a.hcl", examples.Batch))
		if got.code != c.code || got.err != "" {
			t.Errorf("%s: exit code %d, want %d: %s", name, got.code, c.code, got.err)
		}
		wants(t, got.out, c.says)
		const again = "`nomadish job eval -force-reschedule web` runs again what has failed"
		if strings.Contains(got.out, again) != (c.code == exitFailed) {
			t.Errorf("%s:\n%s", name, got.out)
		}
	}
}

// Of a service with many instances is told why the first one fails, and in the end how many did.
func TestMonitorOfManySaysWhyTheyFail(t *testing.T) {
	stubs := func(failed int) (out []*structs.AllocListStub) {
		for i := range 12 {
			s := after(structs.DeriveID("x", uint64(i)), structs.AllocClientRunning)[0]
			if i < failed {
				s = broken(structs.DeriveID("x", uint64(i)), "Failed tasks", "no such file")
			}
			s.Name = fmt.Sprintf("web.front[%d]", i)
			out = append(out, s)
		}
		return out
	}
	early, late := stubs(2), stubs(11)
	late[1].FollowupEvalID, late[2].NextAllocation = evalB, allocB
	early[11].ClientStatus = structs.AllocClientPending // it is followed on
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusComplete)).
		on("GET /v1/evaluation/"+evalA+"/allocations", early, late)
	got := f.run(t, "run", file(t, "a.hcl", examples.Service))
	wants(t, got.out, `Group "front": the first to fail is web.front[0]`, `on node "gpu-1": Failed tasks; task "serve": no such file`+"\n",
		"11 of 12 allocations failed:\n      * web.front[0]", "no such file, and 10 like it (2 are tried again)\n", "alloc status")
	if n := strings.Count(got.out, "the first to fail"); n != 1 || got.code != exitIncomplete {
		t.Errorf("told %d times, exit code %d:\n%s", n, got.code, got.out)
	}
}

// A task that ends and is started again is told of when it first happens, once for its group.
func TestMonitorSaysWhyATaskIsStartedAgain(t *testing.T) {
	waiting := after(allocA, structs.AllocClientPending)[0]
	waiting.TaskStates = map[string]*structs.TaskState{
		"aside": {State: structs.TaskStateRunning, Events: []*structs.TaskEvent{{Type: structs.TaskStarted}}},
		"serve": {State: structs.TaskStatePending, Restarts: 1, Events: []*structs.TaskEvent{
			{Type: structs.TaskTerminated, ExitCode: 3, DisplayMessage: "Exit Code: 3"}, {Type: structs.TaskRestarting, DisplayMessage: "Task restarting in 15s"},
		}},
	}
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusComplete)).
		on("GET /v1/evaluation/"+evalA+"/allocations", []*structs.AllocListStub{waiting}, []*structs.AllocListStub{waiting},
			after(allocA, structs.AllocClientRunning))
	got := f.run(t, "run", file(t, "a.hcl", examples.Service))
	const want = `Group "front": task "serve" of web.front[0] "5f3a9c01" on node "gpu-1": Exit Code: 3; Task restarting in 15s` + "\n"
	if strings.Count(got.out, want) != 1 {
		t.Errorf("want %q once:\n%s", want, got.out)
	}
}

// Where something found no room, nobody waits for the end of the rest.
func TestNotAllPlacedIsReportedAtOnce(t *testing.T) {
	for status, want := range map[string]string{
		structs.AllocClientRunning: `Allocation "5f3a9c01" is running`,
		structs.AllocClientPending: "Stopped following after 20ms; `nomadish job status web` goes on",
	} {
		f := newFake(t).on("GET /v1/evaluation/"+evalA, unplaced(batchEval())).on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, status))
		inner := f.Config.Handler
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/allocations") && r.URL.Query().Get("index") != "" {
				<-r.Context().Done() // nothing ever changes
				return
			}
			inner.ServeHTTP(w, r)
		})
		var out bytes.Buffer
		e := f.one(t)
		e.out, e.err, e.now = &out, &out, func() time.Time { return present }
		m := newMonitor(e, false)
		if status == structs.AllocClientPending {
			m.linger = 20 * time.Millisecond
		}
		if code := m.eval(t.Context(), evalA); code != exitIncomplete {
			t.Errorf("%s: exit code %d: %s", status, code, out.String())
		}
		wants(t, out.String(), `failed to place 2 allocations`, want)
	}
}

func TestStoppingABatchJobThatFailedIsNoFailure(t *testing.T) {
	ev := batchEval()
	ev.TriggeredBy = structs.EvalTriggerJobDeregister
	f := cluster(t).on("DELETE /v1/job/web", &structs.JobRegisterReply{EvalID: evalB}).on("GET /v1/evaluation/"+evalB, ev).
		on("GET /v1/evaluation/"+evalA+"/allocations", []*structs.AllocListStub{broken(allocA, "Failed tasks", "x")})
	if got := f.run(t, "job", "stop", "web"); got.code != exitDone {
		t.Errorf("exit code %d: %s", got.code, got.out+got.err)
	}
}

func TestInterruptWhileFollowing(t *testing.T) {
	for trigger, want := range map[string]string{
		structs.EvalTriggerJobRegister:   "job \"web\" goes on; stop it with `nomadish job stop web`",
		structs.EvalTriggerJobDeregister: `job "web" is stopped all the same`,
	} {
		ev := webEval(evalA, structs.EvalStatusComplete)
		ev.TriggeredBy = trigger
		f := newFake(t).on("GET /v1/evaluation/"+evalA, ev)
		ctx, interrupt := context.WithCancel(t.Context())
		inner := f.Config.Handler
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/allocations") {
				interrupt()
				<-r.Context().Done()
				return
			}
			inner.ServeHTTP(w, r)
		})
		var out bytes.Buffer
		e := f.one(t)
		e.out, e.err, e.now = &out, &out, func() time.Time { return present }
		if code := newMonitor(e, false).eval(ctx, evalA); code != exitInterrupted {
			t.Errorf("exit code %d: %s", code, out.String())
		}
		wants(t, out.String(), want)
	}
}

func TestInterruptBeforeTheEvaluationIsRead(t *testing.T) {
	e := newFake(t).one(t)
	var out bytes.Buffer
	e.out, e.err, e.now = &out, &out, func() time.Time { return present }
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if code := newMonitor(e, false).eval(ctx, evalA); code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	wants(t, out.String(), "the evaluation goes on")
}

// counted are allocations of two nodes, in these statuses.
func counted(pending, running, complete int) []*structs.AllocListStub {
	var out []*structs.AllocListStub
	for status, n := range map[string]int{
		structs.AllocClientPending: pending, structs.AllocClientRunning: running, structs.AllocClientComplete: complete,
	} {
		for range n {
			s := after(structs.DeriveID("x", uint64(len(out))), status)[0]
			s.NodeID = fmt.Sprint("node-", len(out)%2)
			out = append(out, s)
		}
	}
	return out
}

func TestMonitorOfManyCountsAsItGoes(t *testing.T) {
	f := newFake(t).on("GET /v1/evaluation/"+evalA, batchEval()).on("GET /v1/evaluation/"+evalA+"/allocations",
		counted(40, 0, 0), counted(28, 12, 0), counted(20, 20, 0), counted(20, 20, 0), counted(0, 5, 35), counted(0, 0, 40))
	now := present
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		if strings.HasSuffix(r.URL.Path, "/allocations") {
			now = now.Add(600 * time.Millisecond) // read only after the answer
		}
		w.Header().Set("X-Nomad-Index", "7")
		_, _ = w.Write(answer.Body.Bytes())
	})
	var out bytes.Buffer
	e := f.one(t)
	e.out, e.err, e.now = &out, &out, func() time.Time { return now }
	if code := newMonitor(e, false).eval(t.Context(), evalA); code != exitDone {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	var reported []string
	for line := range strings.Lines(out.String()) {
		if _, text, ok := strings.Cut(line, `Group "front": `); ok {
			reported = append(reported, strings.TrimSpace(text))
		}
	}
	want := []string{"40 placed on 2 nodes", "12 running, 28 pending", "20 running, 20 pending", "40 complete"}
	if fmt.Sprint(reported) != fmt.Sprint(want) {
		t.Errorf("said %q, want %q", reported, want)
	}
	// What was held back is looked at again before long, even if nothing changes.
	wants(t, strings.Join(f.requests("GET"), "\n"), "wait=400ms")
}

// What lacks no dimension, but states what is not to be had, is not called a dimension.
func TestExplainStatedReasons(t *testing.T) {
	got := explain(&structs.AllocMetric{NodesEvaluated: 4, QuotaExhausted: []string{"its gang is suspended", "small"}, DimensionExhausted: map[string]int{"memory": 1, `over the limit: namespace "a" owns 8 GPUs`: 3, `withheld by over_limit = "ask"`: 3}})
	if want := []string{`Dimension "memory" exhausted on 1 node`, `3 nodes: over the limit: namespace "a" owns 8 GPUs`, `3 nodes: withheld by over_limit = "ask"`,
		"its gang is suspended", `Quota limit hit "small"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

// file writes a job file and gives its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// after sets a stub's status.
func after(id, status string) []*structs.AllocListStub {
	s := webAlloc(id, status).Stub(false, true)
	if status == structs.AllocClientComplete {
		s.TaskStates = map[string]*structs.TaskState{"serve": {
			State: structs.TaskStateDead, Events: []*structs.TaskEvent{{Type: structs.TaskTerminated, ExitCode: 3}},
		}}
	}
	return []*structs.AllocListStub{s}
}

func registered(f *fake) *fake {
	return f.on("PUT /v1/jobs", &structs.JobRegisterReply{EvalID: evalA, JobModifyIndex: 20})
}

func TestJobRunFollowsAService(t *testing.T) {
	f := registered(newFake(t)).
		on("GET /v1/evaluation/"+evalA, webEval(evalA, structs.EvalStatusPending), webEval(evalA, structs.EvalStatusComplete)).
		on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, structs.AllocClientPending), after(allocA, structs.AllocClientRunning))
	got := f.run(t, "job", "run", file(t, "a.hcl", examples.Service))
	if got.code != exitDone || got.err != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, `Monitoring evaluation "01976c1d-0001-7a00"`, `triggered by job "web"`, `finished with status "complete"`,
		`Allocation "5f3a9c01" created: node "gpu-1", group "front"`, `Allocation "5f3a9c01" is running`)
	if strings.Contains(got.out, "\x1b") {
		t.Errorf("codes of a terminal where there is none: %q", got.out)
	}
	requested := strings.Join(f.requests("GET"), "\n")
	wants(t, requested, "index=7") // it waits for changes instead of asking again and again
}

func TestJobRunFollowsBatchToItsEnd(t *testing.T) {
	ev := webEval(evalA, structs.EvalStatusComplete)
	ev.Type = structs.JobTypeBatch
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, ev).
		on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, structs.AllocClientRunning), after(allocA, structs.AllocClientComplete))
	got := f.run(t, "job", "run", file(t, "a.hcl", examples.Batch))
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, `is running`, `is complete (task "serve" exit code 3)`)
}

func TestJobRunSaysWhatWasNotPlaced(t *testing.T) {
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, unplaced(webEval(evalA, structs.EvalStatusComplete))).
		on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, structs.AllocClientRunning))
	got := f.run(t, "run", file(t, "a.hcl", examples.Service))
	if got.code != exitIncomplete {
		t.Errorf("exit code %d, want %d", got.code, exitIncomplete)
	}
	wants(t, got.out, "failed to place all allocations", `Task Group "back" (failed to place 2 allocations)`,
		`Constraint "${attr.kernel.name} = windows": 3 nodes excluded by filter`, `Dimension "memory" exhausted on 1 node`,
		"`nomadish job explain web` lists every reason", `"01976c1d-0002-7b00" waiting for additional capacity`)
}

func TestJobRunOfAnEvaluationThatFails(t *testing.T) {
	ev := webEval(evalA, structs.EvalStatusFailed)
	ev.StatusDescription = "maximum attempts reached"
	f := registered(newFake(t)).on("GET /v1/evaluation/"+evalA, ev).
		on("GET /v1/evaluation/"+evalA+"/allocations", []*structs.AllocListStub{})
	if got := f.run(t, "run", file(t, "a.hcl", examples.Service)); got.code != exitFailed || !strings.Contains(got.out, "maximum attempts reached") {
		t.Errorf("exit code %d, output %q", got.code, got.out)
	}
}

func TestMonitorGoesOnWithTheNextEvaluation(t *testing.T) {
	first := webEval(evalA, structs.EvalStatusComplete)
	first.NextEval = evalB
	f := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{first}).on("GET /v1/evaluation/"+evalA, first).
		on("GET /v1/evaluation/"+evalB, webEval(evalB, structs.EvalStatusComplete)).
		on("GET /v1/evaluation/"+evalB+"/allocations", after(allocA, structs.AllocClientRunning))
	got := f.run(t, "eval", "status", "-monitor", evalA)
	if got.code != exitDone {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, `continues as "01976c1d-0002-7b00"`, "is running")
}

func TestMonitorTellsUpdatedFromCreated(t *testing.T) {
	ev := webEval(evalA, structs.EvalStatusComplete)
	ev.CreateIndex = 30 // the allocation is from 20
	f := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{ev}).on("GET /v1/evaluation/"+evalA, ev).
		on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, structs.AllocClientRunning))
	wants(t, f.run(t, "eval", "status", "-monitor", evalA).out, `Allocation "5f3a9c01" updated in place`)
}

func TestMonitorOfManySumsUp(t *testing.T) {
	var many []*structs.AllocListStub
	for i := range 40 {
		s := after(structs.DeriveID("x", uint64(i)), structs.AllocClientRunning)[0]
		if i%4 == 0 {
			s.ClientStatus = structs.AllocClientFailed
		}
		many = append(many, s)
	}
	ev := webEval(evalA, structs.EvalStatusComplete)
	f := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{ev}).on("GET /v1/evaluation/"+evalA, ev).
		on("GET /v1/evaluation/"+evalA+"/allocations", many)
	got := f.run(t, "eval", "status", "-monitor", evalA)
	if wants(t, got.out, `Group "front": 10 failed, 30 running`); strings.Count(got.out, "\n") > 9 {
		t.Errorf("a line for each of many:\n%s", got.out)
	}
}

func TestMonitorStopsFollowing(t *testing.T) {
	ev := webEval(evalA, structs.EvalStatusComplete)
	f := newFake(t).on("GET /v1/evaluation/"+evalA, ev).on("GET /v1/evaluation/"+evalA+"/allocations", after(allocA, structs.AllocClientPending))
	var out bytes.Buffer
	e := f.one(t)
	e.out, e.err, e.now = &out, &out, func() time.Time { return present }
	m := newMonitor(e, false)
	m.wait = time.Nanosecond
	if code := m.eval(t.Context(), evalA); code != exitIncomplete {
		t.Errorf("exit code %d, want %d: %s", code, exitIncomplete, out.String())
	}
	wants(t, out.String(), "Stopped following after 1ns", "nomadish job status web")
}

// Batch work is followed to its end, however long that takes. That of a job that is stopped is not waited for as long.
func TestMonitorFollowsBatchWorkToItsEnd(t *testing.T) {
	follow := func(trigger string, allocs ...any) (int, string) {
		t.Helper()
		ev := batchEval()
		ev.TriggeredBy = trigger
		f := newFake(t).on("GET /v1/evaluation/"+evalA, ev).on("GET /v1/evaluation/"+evalA+"/allocations", allocs...)
		var out bytes.Buffer
		e := f.one(t)
		e.out, e.err, e.now = &out, &out, func() time.Time { return present }
		m := newMonitor(e, false)
		m.wait = time.Nanosecond
		return m.eval(t.Context(), evalA), out.String()
	}
	waits, runs := after(allocA, structs.AllocClientPending), after(allocA, structs.AllocClientRunning)
	code, out := follow(structs.EvalTriggerJobRegister, waits, runs, runs, after(allocA, structs.AllocClientComplete))
	if code != exitDone || strings.Contains(out, "Stopped following") {
		t.Errorf("exit code %d: %s", code, out)
	}
	wants(t, out, "is complete")
	if code, out = follow(structs.EvalTriggerJobRegister, runs, []*structs.AllocListStub{broken(allocA, "Failed tasks", "x")}); code != exitFailed {
		t.Errorf("exit code %d, want %d: %s", code, exitFailed, out)
	}
	if code, out = follow(structs.EvalTriggerJobDeregister, runs); code != exitDone || !strings.Contains(out, "Stopped following") {
		t.Errorf("exit code %d of a job that is stopped: %s", code, out)
	}
}

func TestJobRunSendsTheFile(t *testing.T) {
	f := registered(newFake(t))
	text := `variable "n" { default = 1 }
job "web" {
  group "g" {
    count = var.n
    task "t" {
      driver = "mock_driver"
    }
  }
}`
	got := f.run(t, "job", "run", "-detach", "-check-index", "0", "-var", "n=4", "-namespace", "lab", "-preserve-counts", "-opportunistic", file(t, "a.hcl", text))
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "Evaluation ID: "+evalA)
	var sent structs.JobRegisterRequest
	if err := json.Unmarshal([]byte(f.lastBody()), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Job.TaskGroups[0].Count != 4 || sent.Job.Namespace != "lab" || !sent.EnforceIndex || sent.JobModifyIndex != 0 || !sent.PreserveCounts || !sent.Opportunistic {
		t.Errorf("sent %+v", sent)
	}
	if s := sent.Submission; s == nil || s.Source != text || s.Format != "hcl2" || s.VariableFlags["n"] != "4" {
		t.Errorf("submission %+v", sent.Submission)
	}
	wants(t, f.requests("PUT")[0], "namespace=lab")
}

func TestJobRunOutputIsReadAgain(t *testing.T) {
	f := registered(newFake(t))
	got := f.run(t, "job", "run", "-output", file(t, "a.hcl", examples.Service))
	if got.code != exitDone || len(f.requests("PUT")) != 0 {
		t.Fatalf("exit code %d, asked %q", got.code, f.requests("PUT"))
	}
	again := f.runIn(t, got.out, "job", "run", "-json", "-output", "-")
	if again.code != exitDone || again.out != got.out {
		t.Errorf("exit code %d, stderr %q, output\n%s\nwant\n%s", again.code, again.err, again.out, got.out)
	}
}

func TestBadJobFiles(t *testing.T) {
	f := newFake(t)
	refused := func(want string, args ...string) {
		t.Helper()
		for verb, code := range map[string]int{"run": exitFailed, "validate": exitFailed, "plan": exitPlanError} {
			got := f.run(t, append([]string{"job", verb}, args...)...)
			if got.code != code || got.out != "" {
				t.Errorf("%s %q: exit code %d, output %q", verb, args, got.code, got.out)
			}
			wants(t, got.err, want)
		}
	}
	good := file(t, "good.hcl", examples.Service)
	refused("one job file is needed, 0 given")
	for _, verb := range []string{"plan", "validate"} { // run takes several
		wants(t, f.run(t, "job", verb, good, good).err, "one job file is needed, 2 given")
	}
	refused("nomadish job init", "/nonexistent/x.hcl")
	refused("write it as name=value", "-var", "x", good)
	refused("-var-file", "-var-file", "/nonexistent/x.hcl", good)
	refused("a.hcl:1", file(t, "a.hcl", "jub \"x\" {}"))
	refused("a.json:1", "-json", file(t, "a.json", "{,}"))
	refused("10485760 bytes", file(t, "big.hcl", strings.Repeat("#\n", 6<<20)))
	refused("directory", t.TempDir())
	if requested := f.requests("PUT"); len(requested) != 0 {
		t.Errorf("the agent was asked %q", requested)
	}
}

func TestVarFiles(t *testing.T) {
	f := registered(newFake(t))
	text := `variable "who" {}
job "web" {
  group "g" {
    task "t" {
      driver = "mock_driver"
      env { WHO = var.who }
    }
  }
}`
	vars := file(t, "v.hcl", `who = "ada"`)
	if got := f.run(t, "run", "-detach", "-var-file", vars, file(t, "a.hcl", text)); got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, f.lastBody(), `"WHO":"ada"`, `who = \"ada\"`)
	t.Setenv("NOMADISH_VAR_who", "bob")
	if got := f.run(t, "run", "-detach", file(t, "a.hcl", text)); got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, f.lastBody(), `"WHO":"bob"`)
}

func TestWarningsAreReportedOnce(t *testing.T) {
	f := newFake(t).on("PUT /v1/jobs", &structs.JobRegisterReply{EvalID: evalA, Warnings: "job \"web\": parameterized: is accepted, but the job will not run: there are no parameterized jobs yet\nthe source is not kept"})
	text := "job \"web\" {\n  type = \"batch\"\n  parameterized {\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n    }\n  }\n}\n"
	got := f.run(t, "run", "-detach", file(t, "a.hcl", text))
	wants(t, got.err, "Warning: ", "a.hcl:3", "there are no parameterized jobs yet")
	wants(t, got.out, "the source is not kept")
	n := (&jobFile{warnings: []string{`a.hcl:2,3-10: job "web": project: no effect`}})
	if left := n.news("job \"web\": project: no effect\nother\n"); left != "other" {
		t.Errorf("left %q", left)
	}
}

func TestJobPlanExitCodes(t *testing.T) {
	answer := func(code int, want string, reply any) {
		t.Helper()
		f := newFake(t).on("PUT /v1/job/hello/plan", reply).on("PUT /v1/job/example/plan", reply)
		got := f.run(t, "job", "plan", file(t, "a.hcl", examples.Service))
		if got.code != code {
			t.Errorf("exit code %d, want %d; stderr %q", got.code, code, got.err)
		}
		wants(t, got.out+got.err, want)
	}
	updates := func(u structs.DesiredUpdates) *structs.JobPlanReply {
		return &structs.JobPlanReply{JobModifyIndex: 12, Annotations: &structs.PlanAnnotations{
			DesiredTGUpdates: map[string]*structs.DesiredUpdates{"other": {Ignore: 3}, "g": &u},
		}}
	}
	answer(0, "nomadish job run -check-index 12", &structs.JobPlanReply{JobModifyIndex: 12})
	answer(0, "All tasks successfully allocated", updates(structs.DesiredUpdates{Ignore: 5, InPlaceUpdate: 2}))
	answer(1, "Job Modify Index: 12", updates(structs.DesiredUpdates{Place: 1}))
	answer(1, "Job Modify Index: 12", updates(structs.DesiredUpdates{Stop: 1}))
	answer(1, "Job Modify Index: 12", updates(structs.DesiredUpdates{DestructiveUpdate: 1}))
	answer(1, "Job Modify Index: 12", updates(structs.DesiredUpdates{Migrate: 1}))
	failed := updates(structs.DesiredUpdates{Place: 2})
	failed.FailedTGAllocs = unplaced(&structs.Evaluation{}).FailedTGAllocs
	answer(1, "WARNING: Failed to place all allocations", failed)
	answer(255, "bad priority", refusal{400, "bad priority"})
}

func TestJobPlanShowsPreemptions(t *testing.T) {
	reply := &structs.JobPlanReply{Annotations: &structs.PlanAnnotations{PreemptedAllocs: []*structs.AllocListStub{
		{ID: "01234567-89ab-cdef-0123-456789abcdef", JobID: "low", TaskGroup: "g", NodeName: "n-1", DesiredStatus: structs.AllocDesiredEvict},
		{ID: "11234567-89ab-cdef-0123-456789abcdef", JobID: "calm", TaskGroup: "h", NodeName: "n-2", DesiredStatus: structs.AllocDesiredSuspend},
	}}}
	f := newFake(t).on("PUT /v1/job/example/plan", reply).on("PUT /v1/job/hello/plan", reply)
	path := file(t, "a.hcl", examples.Service)
	wants(t, f.run(t, "plan", path).out, "Preemptions:", "01234567", "low", "n-1", "stopped, back to the queue", "calm", "suspended")
	for range preemptedShown {
		reply.Annotations.PreemptedAllocs = append(reply.Annotations.PreemptedAllocs, reply.Annotations.PreemptedAllocs[0])
	}
	got := f.run(t, "plan", path).out
	wants(t, got, "Allocations", strconv.Itoa(preemptedShown+1), "calm")
	if strings.Contains(got, "01234567") {
		t.Errorf("many are listed one by one:\n%s", got)
	}
	wants(t, f.run(t, "plan", "-verbose", path).out, "01234567-89ab-cdef-0123-456789abcdef")
}

func TestJobPlanShowsTheDifference(t *testing.T) {
	reply := &structs.JobPlanReply{Diff: &structs.JobDiff{
		Type: "Edited", ID: "web",
		Fields: []*structs.FieldDiff{{Type: "Edited", Name: "Priority", Old: "50", New: "60"}, {Type: "None", Name: "Region", Old: "global"}},
		TaskGroups: []*structs.TaskGroupDiff{{
			Type: "Edited", Name: "front", Updates: map[string]uint64{"create": 1, "in-place update": 2},
			Fields: []*structs.FieldDiff{{Type: "Edited", Name: "Count", Old: "2", New: "3", Annotations: []string{"forces create"}}},
			Tasks: []*structs.TaskDiff{
				{Type: "Added", Name: "new", Objects: []*structs.ObjectDiff{{Type: "Added", Name: "Resources", Fields: []*structs.FieldDiff{{Type: "Added", Name: "CPU", New: "100"}}}}},
				{Type: "Deleted", Name: "old", Annotations: []string{"forces destroy"}, Fields: []*structs.FieldDiff{{Type: "Deleted", Name: "Driver", Old: "exec"}}},
				{Type: "None", Name: "same"},
			},
		}},
	}}
	f := newFake(t).on("PUT /v1/job/example/plan", reply).on("PUT /v1/job/hello/plan", reply)
	path := file(t, "a.hcl", examples.Service)
	got := f.run(t, "plan", path)
	wants(t, got.out, `+/- Job: "web"`, `+/- Priority: "50" => "60"`, `+/- Task Group: "front" (1 create, 2 in-place update)`,
		`  +/- Count: "2" => "3" (forces create)`, `  + Task: "new"`, `  - Task: "old" (forces destroy)`)
	if strings.Contains(got.out, `"same"`) || strings.Contains(got.out, "Region") {
		t.Errorf("what does not differ is shown:\n%s", got.out)
	}
	wants(t, f.run(t, "plan", "-verbose", path).out, `"same"`, `Region: "global"`, "    + Resources {", `      + CPU: "100"`, `    - Driver: "exec"`)
}

func TestJobValidate(t *testing.T) {
	path := file(t, "a.hcl", examples.Batch)
	validate := func(code int, want string, f *fake) {
		t.Helper()
		got := f.run(t, "job", "validate", path)
		if got.code != code {
			t.Errorf("exit code %d, want %d", got.code, code)
		}
		wants(t, got.out+got.err, want)
	}
	validate(exitDone, "Job validation successful", newFake(t).on("PUT /v1/validate/job", &structs.JobValidateReply{}))
	validate(exitFailed, "* priority 101", newFake(t).on("PUT /v1/validate/job", &structs.JobValidateReply{Error: "bad", ValidationErrors: []string{"priority 101"}}))
	validate(exitFailed, "broken", newFake(t).on("PUT /v1/validate/job", refusal{500, "broken"}))
	gone := newFake(t)
	gone.Close()
	validate(exitDone, "checked without a server", gone)
}

func TestJobChanges(t *testing.T) {
	reply := &structs.JobRegisterReply{EvalID: evalA}
	f := cluster(t).on("DELETE /v1/job/web", reply).on("PUT /v1/job/web/scale", reply).on("PUT /v1/job/web/revert", reply).
		on("PUT /v1/job/web/evaluate", reply)
	does := func(method, path, body string, args ...string) {
		t.Helper()
		before := len(f.requests(method))
		if got := f.run(t, append([]string{"job"}, args...)...); got.code != exitDone || !strings.Contains(got.out, evalA) {
			t.Fatalf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
		requested := f.requests(method)
		if len(requested) != before+1 {
			t.Fatalf("%q asked %q", args, requested)
		}
		wants(t, requested[before], path)
		wants(t, f.lastBody(), body)
	}
	does("DELETE", "/v1/job/web?purge=true", "", "stop", "-detach", "-purge", "web")
	does("PUT", "/v1/job/web/scale", `"Count":5`, "scale", "-detach", "web", "5")
	does("PUT", "/v1/job/web/scale", `"Group":"back"`, "scale", "-detach", "web", "back", "0")
	does("PUT", "/v1/job/web/revert", `"JobVersion":2`, "revert", "-detach", "web", "2")
	does("PUT", "/v1/job/web/evaluate", `"ForceReschedule":true`, "eval", "-detach", "-force-reschedule", "web")
	for _, bad := range []string{"scale web", "scale web -- -1", "scale web x", "revert web", "revert web x", "stop", "stop a b", "history", "inspect -version 9 web"} {
		if got := f.run(t, append([]string{"job"}, strings.Fields(bad)...)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d, output %q", bad, got.code, got.out)
		}
	}
	if got := f.run(t, "inspect", "-hcl", "web"); got.out != "job \"web\" {}\n" {
		t.Errorf("source %q, stderr %q", got.out, got.err)
	}
}

func TestJobInitKeepsFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.hcl")
	var f *fake
	if got := f.run(t, "job", "init", "-batch", path); got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != examples.Batch {
		t.Errorf("wrote %q, error %v", text, err)
	}
	if got := f.run(t, "init", path); got.code != exitFailed || !strings.Contains(got.err, "not overwritten") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	if got := f.run(t, "init", filepath.Join(path, "y.hcl")); got.code != exitFailed || strings.Contains(got.err, "overwritten") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
}

// Examples can be piped into the commands that read such files.
func TestExamplesGoToStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"job init -": examples.Service, "job init -batch -": examples.Batch, "vc init -": examples.VirtualCluster,
		"vc init -json -": examples.VirtualClusterJSON, "node pool init -": examples.NodePool,
		"project init -": examples.Project, "project init -json -": examples.ProjectJSON,
	} {
		var f *fake
		if got := f.run(t, strings.Fields(line)...); got.code != exitDone || got.out != want || got.err != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, got.code, got.out, got.err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files %v, error %v", left, err)
	}
}

func TestNewestFirst(t *testing.T) {
	s := func(name string, index uint64) *structs.AllocListStub {
		return &structs.AllocListStub{Name: name, CreateIndex: index}
	}
	in := []*structs.AllocListStub{s("w[10]", 5), s("w[2]", 5), s("old", 1), s("new", 9)}
	var names []string
	for _, a := range newestFirst(in) {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); got != "new w[2] w[10] old" || in[0].Name != "w[10]" {
		t.Errorf("order %q, input now begins with %q", got, in[0].Name)
	}
}

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestFlagsWithoutEffectAreAcceptedWithAWarning(t *testing.T) {
	path := exampleFile(t)
	f := cluster(t).on("PUT /v1/jobs", &structs.JobRegisterReply{EvalID: evalA}).on("PUT /v1/validate/job", &structs.JobValidateReply{}).
		on("PUT /v1/job/example/plan", &structs.JobPlanReply{}).on("PUT /v1/job/hello/plan", &structs.JobPlanReply{})
	accepts := func(flags, line string) {
		t.Helper()
		args := strings.Fields(line)
		got := f.run(t, append(args, strings.Fields(flags)...)...)
		if got.code != exitDone {
			t.Errorf("%s %s: exit code %d, stderr %q", line, flags, got.code, got.err)
		}
		for _, flag := range strings.Fields(flags) {
			name, _, _ := strings.Cut(flag, "=")
			if !strings.Contains(got.err, "Warning: "+name+" has no effect: ") {
				t.Errorf("%s %s: no warning of %s in %q", line, flags, name, got.err)
			}
		}
	}
	all := "-hcl2-strict=false -policy-override -vault-namespace=a -consul-namespace=b"
	accepts(all+" -ui", "job run -detach "+path)
	accepts(all, "job plan "+path)
	accepts("-hcl2-strict", "job plan "+path)
	accepts("-hcl2-strict=false -vault-namespace=a", "job validate "+path)
	for _, line := range []string{"job status web", "job status", "alloc status " + allocA, "node status " + nodeA, "eval status " + evalA, "eval list"} {
		accepts("-ui", line)
	}
	got := f.run(t, "job", "run", "-detach", "-ui=false", path) // nothing that would be otherwise
	if strings.Contains(got.err, "Warning: -") {
		t.Errorf("warned for nothing: %q", got.err)
	}
}

func TestJobStopSendsItsOptions(t *testing.T) {
	f := cluster(t).on("DELETE /v1/job/web", &structs.JobRegisterReply{EvalID: evalA})
	if got := f.run(t, "job", "stop", "-detach", "-no-shutdown-delay", "-eval-priority", "70", "web"); got.code != exitDone {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	wants(t, strings.Join(f.requests("DELETE"), "\n"), "no_shutdown_delay=true", "eval_priority=70")
	wants(t, f.run(t, "job", "stop", "-eval-priority", "101", "web").err, "-eval-priority 101", "1 to 100")
}

func TestNodeDrainSendsItsMeta(t *testing.T) {
	f := cluster(t).on("PUT /v1/node/"+nodeA+"/drain", &structs.NodeUpdateReply{})
	got := f.run(t, "node", "drain", "-enable", "-yes", "-detach", "-m", "new disks", "-meta", "by=ops", "-meta", "ticket=a=7", nodeA)
	if got.code != exitDone {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	var body struct{ Meta map[string]string }
	if err := json.Unmarshal([]byte(f.lastBody()), &body); err != nil || body.Meta["message"] != "new disks" || body.Meta["by"] != "ops" || body.Meta["ticket"] != "a=7" {
		t.Errorf("%v: sent %s", err, f.lastBody())
	}
	wants(t, f.run(t, "node", "drain", "-enable", "-yes", "-meta", "nonsense", nodeA).err, "-meta", "nonsense", "key=value")
}

func TestNodeStatusQuietAndPages(t *testing.T) {
	f := cluster(t)
	if got := f.run(t, "node", "status", "-quiet"); got.out != nodeA+"\n"+nodeB+"\n" {
		t.Errorf("printed %q, %s", got.out, got.err)
	}
	for _, other := range []string{"-verbose", "-json"} {
		wants(t, f.run(t, "node", "status", "-quiet", other).err, "-quiet", other)
	}
	f.run(t, "node", "status", "-per-page", "1", "-page-token", "abc")
	last := f.requests("GET")
	wants(t, last[len(last)-1], "per_page=1", "next_token=abc")
}

func TestJobScaleChecksTheIndex(t *testing.T) {
	f := cluster(t).on("PUT /v1/job/web/scale", &structs.JobRegisterReply{EvalID: evalA})
	if got := f.run(t, "job", "scale", "-detach", "-check-index", "12", "web", "front", "3"); got.code != exitDone {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	wants(t, f.lastBody(), `"EnforceIndex":true`, `"JobModifyIndex":12`)
	f.run(t, "job", "scale", "-detach", "web", "front", "3")
	wants(t, f.lastBody(), `"EnforceIndex":false`)
}

func TestJobHistoryFullAndDiffVersion(t *testing.T) {
	three, two, one := webJob(), webJob(), webJob()
	two.Version, two.Priority = 2, 60
	one.Version, one.Priority = 1, 70
	f := cluster(t)
	f.answers["GET /v1/job/web/versions"] = []any{&structs.JobVersionsReply{Versions: []*structs.Job{three, two, one}}}
	got := f.run(t, "job", "history", "-version", "3", "-diff-version", "1", "web")
	wants(t, got.out, "Version     = 3", `+/- Priority: "70" => "50"`)
	if strings.Contains(got.out, "Version     = 2") {
		t.Errorf("other versions are shown: %s", got.out)
	}
	got = f.run(t, "job", "history", "-diff-version", "1", "web")
	wants(t, got.out, `+/- Priority: "70" => "50"`, `+/- Priority: "70" => "60"`)
	wants(t, f.run(t, "job", "history", "-diff-version", "9", "web").err, "no version 9")
	got = f.run(t, "job", "history", "-full", "web")
	wants(t, got.out, "Version     = 3", `"ID": "web"`, `"Priority": 70`)
}

func TestJobPlanForPrograms(t *testing.T) {
	path := exampleFile(t)
	f := newFake(t).on("PUT /v1/job/example/plan", examplePlan()).on("PUT /v1/job/hello/plan", examplePlan())
	got := f.run(t, "job", "plan", "-json-output", path)
	var reply structs.JobPlanReply
	if err := json.Unmarshal([]byte(got.out), &reply); err != nil || got.code != 1 || reply.Diff == nil || reply.Diff.ID != "example" {
		t.Errorf("exit code %d, %v: %s%s", got.code, err, got.out, got.err)
	}
	got = f.run(t, "job", "plan", "-t", "{{.Diff.ID}}", path)
	if got.out != "example\n" || got.code != 1 {
		t.Errorf("exit code %d, printed %q, %s", got.code, got.out, got.err)
	}
	if got := f.run(t, "job", "plan", "-json-output", "-t", "x", path); got.code != exitPlanError {
		t.Errorf("both: exit code %d, %s", got.code, got.err)
	}
}

func TestAllocFSTakesAGroup(t *testing.T) {
	f := cluster(t)
	other := webAlloc(allocB, structs.AllocClientRunning)
	other.TaskGroup, other.CreateIndex = "back", 90
	f.answers["GET /v1/job/web/allocations"] = []any{[]*structs.AllocListStub{
		other.Stub(false, true), webAlloc(allocA, structs.AllocClientRunning).Stub(false, true),
	}}
	got := f.run(t, "alloc", "fs", "-job", "-group", "front", "web")
	if got.code != exitDone || !strings.Contains(got.out, "serve.stdout.0") {
		t.Errorf("exit code %d: %s%s", got.code, got.out, got.err)
	}
	wants(t, f.run(t, "alloc", "fs", "-group", "front", allocA).err, "-group goes with -job only")
}

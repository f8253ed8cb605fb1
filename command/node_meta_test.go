package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

const policyID = "31a53813-24df-b2ad-77dc-1b4bad4e7dca"

func someMeta() *structs.NodeMeta {
	value := "r7"
	return &structs.NodeMeta{
		Meta: map[string]string{"rack": "r7", "connect.log_level": "info"}, Static: map[string]string{"connect.log_level": "info", "canary": "no"},
		Dynamic: map[string]*string{"rack": &value, "canary": nil},
	}
}

func somePolicy() *structs.ScalingPolicy {
	return &structs.ScalingPolicy{
		ID: policyID, Namespace: "default", Type: "horizontal", Enabled: true, Min: 1, Max: 20, Policy: map[string]any{"cooldown": "1m"},
		Target: map[string]string{"Namespace": "default", "Job": "web", "Group": "front"},
	}
}

func TestNodeMetaCommands(t *testing.T) {
	f := cluster(t).on("PUT /v1/client/metadata", someMeta())
	done := func(line string, body ...string) {
		t.Helper()
		if got := f.run(t, strings.Fields(line)...); got.code != exitDone || got.out != "" {
			t.Errorf("%s: exit code %d, output %q, stderr %q", line, got.code, got.out, got.err)
		}
		wants(t, f.lastBody(), body...)
	}
	done("node meta apply -node-id gpu-1 -unset testing,tempvar ready=1 role=a=b empty=",
		`"NodeID":"`+nodeA+`"`, `"testing":null`, `"tempvar":null`, `"ready":"1"`, `"role":"a=b"`, `"empty":""`)
	done("node meta apply -unset testing", `"NodeID":""`, `"testing":null`)
	for _, bad := range []string{"", "x", "-unset a a=1", "a=1 a=2", "-unset ,", "-node-id nobody a=1"} {
		if got := f.run(t, strings.Fields("node meta apply "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
	got := f.run(t, "node", "meta", "read")
	wants(t, got.out, "All Meta\n", "rack", "Dynamic Meta\n", "canary = <unset>", "Static Meta\n")
	got = f.run(t, "node", "meta", "read", "-json", "-node-id", "gpu-1")
	wants(t, got.out, `"canary": null`, `"Static": {`)
	if requested := f.requests("GET"); requested[len(requested)-1] != "GET /v1/client/metadata?node_id="+nodeA {
		t.Errorf("asked %v", requested)
	}
}

func TestNodeConfig(t *testing.T) {
	f := cluster(t).on("PUT /v1/agent/servers", "")
	if got := f.run(t, "node", "config", "-servers"); got.code != exitDone || got.out != "10.0.0.1:4647\n" {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	if got := f.run(t, "node", "config", "-update-servers", "server1:4647", "[::1]:4647", "a&b"); got.code != exitDone || got.out != "" {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
	if requested := f.requests("PUT"); len(requested) != 1 || requested[0] != "PUT /v1/agent/servers?address=server1%3A4647&address=%5B%3A%3A1%5D%3A4647&address=a%26b" {
		t.Errorf("asked %v", requested)
	}
	for _, bad := range []string{"", "-servers x", "-update-servers", "-servers -update-servers x"} {
		if got := f.run(t, strings.Fields("node config "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
}

func TestEvalDeleteCommand(t *testing.T) {
	f := cluster(t).paused().on("DELETE /v1/evaluations", map[string]int{"Count": 2})
	got := f.run(t, "eval", "delete", evalA, evalB)
	wants(t, got.out, "Successfully deleted 2 evaluations")
	wants(t, f.lastBody(), `"EvalIDs":["`+evalA+`","`+evalB+`"]`)
	got = f.run(t, "eval", "delete", "-yes", "-filter", `Status == "pending"`)
	wants(t, got.out, "Successfully deleted 2 evaluations")
	wants(t, f.lastBody(), `"Filter":"Status == \"pending\""`)
	requested := len(f.requests("DELETE"))
	if got = f.run(t, "eval", "delete", "-filter", `Status == "pending"`); got.code != exitFailed || !strings.Contains(got.err, "-yes") {
		t.Errorf("nobody can be asked: exit code %d, %s", got.code, got.err)
	}
	for _, bad := range []string{"", "-filter x " + evalA, "9"} {
		if got := f.run(t, strings.Fields("eval delete "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
	if now := len(f.requests("DELETE")); now != requested {
		t.Errorf("something was deleted: %v", f.requests("DELETE"))
	}
}

func TestScalingPolicyCommands(t *testing.T) {
	f := cluster(t)
	got := f.run(t, "scaling", "policy", "list", "-job", "web", "-type", "horizontal")
	wants(t, got.out, policyID, "true", "Namespace:default,Job:web,Group:front")
	if requested := f.requests("GET"); !strings.Contains(requested[len(requested)-1], "job=web") || !strings.Contains(requested[len(requested)-1], "type=horizontal") {
		t.Errorf("asked %v", requested)
	}
	got = f.run(t, "scaling", "policy", "info", policyID[:6])
	wants(t, got.out, policyID, "Target  = Namespace:default,Job:web,Group:front", "Max     = 20", "Policy:", `"cooldown": "1m"`)
	twin := somePolicy()
	twin.ID = policyID[:8] + "-twin"
	f.answers["GET /v1/scaling/policies"] = []any{[]*structs.ScalingPolicyListStub{somePolicy().Stub(), twin.Stub()}}
	got = f.run(t, "scaling", "policy", "info", policyID[:6])
	wants(t, got.err, `2 scaling policies have IDs that start with "31a538"`, twin.ID)
	for _, bad := range []string{"", "a b", "9"} {
		if got := f.run(t, strings.Fields("scaling policy info "+bad)...); got.code != exitFailed || got.err == "" {
			t.Errorf("%q: exit code %d", bad, got.code)
		}
	}
}

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestHabitsNodeMeta: what is set of a node's metadata decides where jobs run, is asked for on a server and on the client, and outlives
// the agent.
func TestHabitsNodeMeta(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, strings.Replace(harness.ServerAndClient, "client {\n", "client {\n  meta {\n    rack = \"r7\"\n  }\n", 1))
	a.Start()
	a.WaitReady(1)
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		t.Fatal(nodes, err)
	}
	id := nodes[0].ID
	job := harness.OfficialJob("canary", "sleep 1000")
	job.Constraints = []*nomad.Constraint{nomad.NewConstraint("${meta.canary}", "=", "yes"), nomad.NewConstraint("${meta.rack}", "is_not_set", "")}
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "the job to wait", func(context.Context) error {
		evals, _, err := a.Nomad.Jobs().Evaluations("canary", nil)
		if err == nil && !slices.ContainsFunc(evals, func(e *nomad.Evaluation) bool { return e.Status == "blocked" }) {
			err = fmt.Errorf("%d evaluations, none is blocked", len(evals))
		}
		return err
	})
	for _, bad := range []string{"a/b=c", "nothing"} {
		if out, code := a.CLI("node", "meta", "apply", bad); code == 0 {
			t.Errorf("%s: %s", bad, out)
		}
	}
	if out, code := a.CLI("node", "meta", "apply", "-node-id", id[:8], "-unset", "rack", "canary=yes"); code != 0 || strings.TrimSpace(out) != "" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "canary", 1)
	shown := func(when string) {
		t.Helper()
		var meta *nomad.NodeMetaResponse
		harness.Within(t, 30*time.Second, "the node to answer "+when, func(context.Context) (err error) {
			meta, err = a.Nomad.Nodes().Meta().Read(id, nil)
			return err
		})
		if meta.Meta["canary"] != "yes" || meta.Static["rack"] != "r7" || meta.Dynamic["rack"] != nil || len(meta.Dynamic) != 2 {
			t.Errorf("%s: %+v", when, meta)
		}
		if _, there := meta.Meta["rack"]; there {
			t.Errorf("%s: what was unset is there: %+v", when, meta)
		}
	}
	shown("set")
	if out, code := a.CLI("node", "status", "-verbose", id); code != 0 || !strings.Contains(out, "canary") {
		t.Errorf("exit code %d: %s", code, out)
	}
	a.Kill()
	a.Start()
	a.WaitReady(1)
	shown("after the agent was killed")
	harness.Within(t, 30*time.Second, "the servers to know it", func(context.Context) error {
		node, _, err := a.Nomad.Nodes().Info(id, nil)
		if err == nil && (node.Status != "ready" || node.Meta["canary"] != "yes" || node.Meta["rack"] != "") {
			err = fmt.Errorf("the node is %s with %v", node.Status, node.Meta)
		}
		return err
	})
	if out, code := a.CLI("node", "meta", "read"); code != 0 || !strings.Contains(out, "All Meta") || !strings.Contains(out, "<unset>") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := a.Nomad.Nodes().Meta().Read("8e231cf4-ca48-43ff-b694-5801e69e22fa", nil); err == nil {
		t.Error("the metadata of a node that there is not are told")
	}
	out, code := a.CLI("node", "config", "-servers")
	if code != 0 || strings.Count(out, ":") != 1 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if now, code := a.CLI("node", "config", "-update-servers", strings.TrimSpace(out)); code != 0 {
		t.Errorf("exit code %d: %s", code, now)
	}
	if now, code := a.CLI("node", "config", "-update-servers", "127.0.0.1:1"); code == 0 || !strings.Contains(now, "nothing was changed") {
		t.Errorf("a server that there is not: exit code %d: %s", code, now)
	}
	if now, _ := a.CLI("node", "config", "-servers"); now != out {
		t.Errorf("the servers are %s, and were %s", now, out)
	}
}

// TestHabitsScaling: an autoscaler finds the policies of jobs, and is kept between min and max.
func TestHabitsScaling(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	job := harness.OfficialJob("web", "sleep 1000")
	job.TaskGroups[0].Scaling = &nomad.ScalingPolicy{Min: harness.Ptr(int64(1)), Max: harness.Ptr(int64(3)), Policy: map[string]any{"cooldown": "1m"}}
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	list := func() []*nomad.ScalingPolicyListStub {
		t.Helper()
		policies, _, err := a.Nomad.Scaling().ListPolicies(nil)
		if err != nil {
			t.Fatal(err)
		}
		return policies
	}
	policies := list()
	if len(policies) != 1 || policies[0].Target["Job"] != "web" || !policies[0].Enabled {
		t.Fatalf("policies: %+v", policies)
	}
	first := policies[0]
	for count, ok := range map[string]bool{"0": false, "4": false, "2": true} {
		if out, code := a.CLI("job", "scale", "-detach", "web", "g", count); (code == 0) != ok {
			t.Errorf("count %s: exit code %d: %s", count, code, out)
		}
	}
	policy, _, err := a.Nomad.Scaling().GetPolicy(first.ID, nil)
	if err != nil || policy.ModifyIndex != first.ModifyIndex || *policy.Max != 3 || policy.Policy["cooldown"] != "1m" {
		t.Errorf("after scaling: %+v, %v", policy, err)
	}
	for _, line := range []string{"scaling policy list -job web", "scaling policy info " + first.ID[:8]} {
		if out, code := a.CLI(strings.Fields(line)...); code != 0 || !strings.Contains(out, "Namespace:default,Job:web,Group:g") {
			t.Errorf("%s: exit code %d: %s", line, code, out)
		}
	}
	if out, code := a.CLI("job", "stop", "-detach", "web"); code != 0 {
		t.Fatal(out)
	}
	if policies = list(); len(policies) != 0 {
		t.Errorf("policies of a stopped job: %+v", policies)
	}
	if out, code := a.CLI("scaling", "policy", "info", first.ID); code == 0 {
		t.Errorf("the policy of a stopped job is shown: %s", out)
	}
}

// TestHabitsEvalDelete: a backlog is deleted while nothing is handed out, and lists are in the order in which things were made.
func TestHabitsEvalDelete(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("first", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "first", 1)
	evals, _, err := a.Nomad.Jobs().Evaluations("first", nil)
	if err != nil || len(evals) == 0 {
		t.Fatal(evals, err)
	}
	if out, code := a.CLI("eval", "delete", evals[0].ID); code == 0 || !strings.Contains(out, "eval broker is enabled") {
		t.Errorf("while the broker hands out: exit code %d: %s", code, out)
	}
	if out, code := a.CLI("operator", "scheduler", "set-config", "-pause-eval-broker=true"); code != 0 {
		t.Fatal(out)
	}
	if out, code := a.CLI("eval", "delete", evals[0].ID); code == 0 || !strings.Contains(out, "not safe to delete") {
		t.Errorf("its allocation runs: exit code %d: %s", code, out)
	}
	for i := range 5 {
		if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob(fmt.Sprint("late", i), "sleep 1000"), nil); err != nil {
			t.Fatal(err)
		}
	}
	var listed []*nomad.Evaluation // Nomad's client sorts what it lists
	if _, err := a.Nomad.Raw().Query("/v1/evaluations", &listed, nil); err != nil {
		t.Fatal(err)
	}
	older := func(x, y *nomad.Evaluation) int { return int(x.CreateIndex) - int(y.CreateIndex) } // small
	if len(listed) < 6 || !slices.IsSortedFunc(listed, older) {
		t.Errorf("%d evaluations, not in the order in which they were made", len(listed))
	}
	var paged []*nomad.Evaluation
	for q := (&nomad.QueryOptions{PerPage: 2, Reverse: true}); ; {
		var part []*nomad.Evaluation
		meta, err := a.Nomad.Raw().Query("/v1/evaluations", &part, q)
		if err != nil || len(part) > 2 {
			t.Fatal(part, err)
		}
		paged = append(paged, part...)
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			break
		}
	}
	slices.Reverse(paged)
	if !slices.EqualFunc(paged, listed, func(x, y *nomad.Evaluation) bool { return x.ID == y.ID }) {
		t.Errorf("page by page, backwards, there are %d evaluations, not %d", len(paged), len(listed))
	}
	pending, _, err := a.Nomad.Evaluations().List(&nomad.QueryOptions{Filter: `Status == "pending"`})
	if err != nil || len(pending) != 5 {
		t.Fatalf("%d evaluations are pending, although 5 jobs wait for the broker; %v", len(pending), err)
	}
	if out, code := a.CLI("eval", "delete", pending[0].ID[:8]); code != 0 || !strings.Contains(out, "Successfully deleted 1 evaluation\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := a.CLI("eval", "delete", "-filter", `Status == "pending"`); code == 0 || !strings.Contains(out, "-yes") {
		t.Errorf("nobody can be asked: exit code %d: %s", code, out)
	}
	if out, code := a.CLI("eval", "delete", "-yes", "-filter", `Status == "pending"`); code != 0 || !strings.Contains(out, "Successfully deleted 4 evaluations") {
		t.Errorf("exit code %d: %s", code, out)
	}
	stop, _, err := a.Nomad.Jobs().Deregister("first", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out, code := a.CLI("eval", "delete", stop); code == 0 || !strings.Contains(out, "no other evaluation would stop them") {
		t.Errorf("what runs of a purged job could not be stopped any more: exit code %d: %s", code, out)
	}
	if out, code := a.CLI("operator", "scheduler", "set-config", "-pause-eval-broker=false"); code != 0 {
		t.Fatal(out)
	}
	if out, code := a.CLI("job", "eval", "-detach", "late0"); code != 0 {
		t.Fatal(out)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "late0", 1)
	if allocs, _, err := a.Nomad.Jobs().Allocations("late1", true, nil); err != nil || len(allocs) != 0 {
		t.Errorf("what was deleted was worked off all the same: %v, %v", allocs, err)
	}
	a.CheckState()
}

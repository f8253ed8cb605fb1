package command

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestStatusFindsTheKind(t *testing.T) {
	found := func(kinds map[string][]string) *structs.SearchReply { return &structs.SearchReply{Matches: kinds} }
	fuzzy := func(kinds map[string][]structs.FuzzyMatch) map[string]any { return map[string]any{"Matches": kinds} }
	none := found(map[string][]string{"jobs": {}})
	f := func(code int, wanted string, prefix *structs.SearchReply, fuzzied map[string]any, args ...string) string {
		t.Helper()
		fake := cluster(t)
		fake.answers["PUT /v1/search"] = []any{prefix}
		if fuzzied != nil {
			fake.on("PUT /v1/search/fuzzy", fuzzied)
		}
		got := fake.run(t, append([]string{"status"}, args...)...)
		if got.code != code || !strings.Contains(got.out+got.err, wanted) {
			t.Errorf("%q: exit code %d, want %d with %q:\n%s%s", args, got.code, code, wanted, got.out, got.err)
		}
		return got.out + got.err
	}
	f(0, "Placement Failure", found(map[string][]string{"jobs": {"web", "webhook"}}), nil, "web")
	f(0, "Drivers", found(map[string][]string{"nodes": {nodeA}}), nil, nodeA[:17])
	f(0, `Task "serve" is running`, found(map[string][]string{"allocs": {allocA}}), nil, "5f3a9c01")
	f(0, "Failed Placements", found(map[string][]string{"evals": {evalA}}), nil, evalA)
	// An ID that is whole is meant, whatever begins with it.
	f(0, "Placement Failure", found(map[string][]string{"jobs": {"web"}, "nodes": {"web-1"}}), nil, "web")
	// Several of one kind are told apart by the kind's command, several kinds are listed.
	f(1, `2 allocations have IDs that start with "5f3a9c"`, found(map[string][]string{"allocs": {allocA, allocB}}), nil, "5f3a9c")
	out := f(1, `Multiple matches found for id "5"`, found(map[string][]string{"nodes": {"5a"}, "allocs": {allocA, allocB}}), nil, "5")
	wants(t, out, "Allocations:\n  "+allocA+"\n  "+allocB, "Nodes:\n  5a")
	if strings.Index(out, "Allocations") > strings.Index(out, "Nodes") {
		t.Errorf("not in the order of kinds:\n%s", out)
	}
	// By name, if no ID begins so.
	f(0, "Drivers", none, fuzzy(map[string][]structs.FuzzyMatch{"nodes": {{ID: "gpu-1", Scope: []string{nodeA}}}}), "pu-1")
	f(0, "Drivers", none, fuzzy(map[string][]structs.FuzzyMatch{"nodes": {{ID: "gpu-1", Scope: []string{nodeA}}, {ID: "gpu-11", Scope: []string{nodeB}}}}), "gpu-1")
	out = f(1, "Multiple matches", none, fuzzy(map[string][]structs.FuzzyMatch{
		"nodes": {{ID: "gpu-1", Scope: []string{nodeA}}, {ID: "gpu-2", Scope: []string{nodeB}}}, "tasks": {{ID: "gpu", Scope: []string{"default", "web", "front"}}},
	}), "pu")
	wants(t, out, nodeA+"  gpu-1", "Tasks:\n  gpu  (job web)")
	f(1, "only names of parts of jobs", none, fuzzy(map[string][]structs.FuzzyMatch{"tasks": {{ID: "gpu", Scope: []string{"default", "web", "front"}}}}), "pu")
	f(1, "no job, workflow, evaluation, allocation or node", none, fuzzy(nil), "nope")
	f(1, "no job, workflow, evaluation, allocation or node", none, nil, "x") // too short to be searched for in names
	// Kinds that no command shows yet are listed only.
	f(1, "Deployments", found(map[string][]string{"deployment": {"5a"}}), nil, "5")
	// Flags go to the kind's command, and are refused if it has none such.
	f(0, nodeA, found(map[string][]string{"nodes": {nodeA}}), nil, "-verbose", nodeA[:17])
	f(0, `"ID": "`+nodeA, found(map[string][]string{"nodes": {nodeA}}), nil, "-json", nodeA[:17])
	f(1, "which has no flag -evals", found(map[string][]string{"nodes": {nodeA}}), nil, "-evals", nodeA[:17])
	f(1, "one ID or name is needed", none, nil, "a", "b")
	f(1, "is empty", none, nil, "")
}

// TestStatusOfWorkflow: a workflow is shown by its name, or by that of a run of it, though a search finds its jobs only.
func TestStatusOfWorkflow(t *testing.T) {
	jobs := &structs.SearchReply{Matches: map[string][]string{"jobs": {"chip/1/a", "chip/1/b"}}}
	f := newFake(t).on("PUT /v1/search", jobs).on("GET /v1/workflows", []*structs.WorkflowStub{{ID: "chip", Namespace: "default"}, {ID: "chip-2", Namespace: "default"}}).
		on("GET /v1/workflow/chip", drawn())
	for _, name := range []string{"chip", "chip/1"} {
		if got := f.run(t, "status", name); got.code != exitDone || !strings.HasPrefix(got.out, "chip run 1  running  stage 2 of 3") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := f.run(t, "status", "chip/1/"); strings.Contains(got.out, "chip run 1") {
		t.Errorf("the beginning of a job's ID is no workflow: %+v", got)
	}
}

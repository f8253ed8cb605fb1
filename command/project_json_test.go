package command

import (
	"slices"
	"strings"
	"testing"
)

const chipJSON = `{
  "Flows": [{"Name": "asic", "Steps": ["synthesis", "place"]}],
  "Projects": [
    {"Name": "chip", "Users": ["ada"], "Flow": "asic", "Calendar": [
      {"Week": "2026-W48", "Rows": [{"Type": "batch", "Step": "synthesis", "Count": 40}]},
      {"Week": "2026-W49", "Rows": []}
    ]},
    {"Name": "board", "Objective": "throughput", "Throughput": {"Jobs": 3000, "Per": "24h"}}
  ]
}`

// A file says the same in both languages.
func TestProjectApplyJSON(t *testing.T) {
	agent := func() *fake {
		return newFake(t).on("PUT /v1/flow/asic", "").on("PUT /v1/project/chip", "").on("PUT /v1/project/board", "").on("PUT /v1/project/chip/calendar", "")
	}
	f, g := agent(), agent()
	inHCL, inJSON := f.runIn(t, chipFile, "project", "apply", "-"), g.runIn(t, chipJSON, "project", "apply", "-json", "-")
	if inJSON.code != exitDone || inJSON.out != inHCL.out || !slices.Equal(f.requests("PUT"), g.requests("PUT")) {
		t.Errorf("exit code %d, %q, %q", inJSON.code, inJSON.out, inJSON.err)
	}
	rows := func(f *fake) string {
		return strings.ReplaceAll(strings.Join(f.bodies, "\n"), `"Rows":null`, `"Rows":[]`)
	}
	if rows(f) != rows(g) {
		t.Errorf("sent\n%s\nnot\n%s", rows(g), rows(f))
	}
	// One project, a list of some, and the same of flows.
	for in, want := range map[string][]string{
		`{"Name":"board"}`:                                          {"project", `project "board"`},
		`[{"name":"board"},{"Name":"chip"}]`:                        {"project", `project "chip"`},
		`{"projects":[{"Name":"board"}]}`:                           {"project", `project "board"`},
		`{"Name":"asic","Steps":["a"]}`:                             {"flow", `flow "asic"`},
		`[{"Name":"asic","Steps":["a"]}]`:                           {"flow", `flow "asic"`},
		`{"Flows":[{"Name":"asic","Steps":["a"],"ModifyIndex":7}]}`: {"flow", `flow "asic"`},
	} {
		if got := agent().runIn(t, in, want[0], "apply", "-json", "-"); got.code != exitDone || !strings.Contains(got.out, "Successfully applied "+want[1]) {
			t.Errorf("%s: exit code %d, %q, %q", in, got.code, got.out, got.err)
		}
	}
	f = agent()
	f.answers["PUT /v1/project/chip/calendar"] = []any{refusal{409, `project "chip": calendar "2026-W48": type "batch": there are 30 slots`}}
	wants(t, f.runIn(t, chipJSON, "project", "apply", "-json", "-").err, `-: project "chip": calendar "2026-W48": type "batch": there are 30 slots`)
	wants(t, f.runIn(t, chipJSON, "flow", "apply", "-json", "-").err, "has projects: `nomadish project apply` applies them")
}

// Whatever is wrong with a file, it is said, and nothing is sent.
func TestProjectJSONThatIsWrong(t *testing.T) {
	in := func(body, want string) {
		t.Helper()
		agent := newFake(t)
		got := agent.runIn(t, body, "project", "apply", "-json", "-")
		if got.code != exitFailed || !strings.Contains(got.err, want) || len(agent.requests("PUT")) > 0 {
			t.Errorf("%s: exit code %d, %q, want %q", body, got.code, got.err, want)
		}
	}
	in("", "bad JSON")
	in(chipFile, "it looks like HCL, not JSON: leave -json out")
	in("[]", "it has no project and no flow")
	in(`{"Flows": []}`, "it has no project and no flow")
	in("[null]", "null is no project, flow or week")
	in(`{"Flows": [null]}`, "null is no project, flow or week")
	in(`{"Name": "a", "Calendar": [null]}`, "null is no project, flow or week")
	in("{\"Name\": \"a\",\n \"Usrs\": []}", `-:2: bad JSON: unknown key "Usrs"; did you mean "Users"?`)
	in("{\"Projects\": [{\"Name\": \"a\",\n \"Calender\": []}]}", `unknown key "Calender"; did you mean "Calendar"?`)
	in(`{"Name": "a", "Calendar": [{"Week": "2026-W48", "Rows": [{"Typ": "batch"}]}]}`, `unknown key "Typ"; did you mean "Type"?`)
	in(`{"Name": "a", "Throughput": {"Jobs": 1, "Per": "soon"}}`, `"soon": write a duration as in "24h"`)
	in(`{"Name": "a", "Throughput": {"Jobs": 1, "Pers": "1h"}}`, `unknown key "Pers"; did you mean "Per"?`)
	in(`{"Name": "a"} {}`, "something follows the JSON value")
	in(`{"Users": ["ada"]}`, "missing name of the project")
	in(`[{"Name": "a"}, {"Name": "a"}]`, `-: project "a": the file states it twice`)
	in(`{"Name": "a", "Calendar": [{"Week": "2026-W54"}]}`, `-: project "a": calendar "2026-W54": there is no such week`)
	in(`{"Name": "a", "Calendar": [{"Week": "2026-W48", "Rows": [{"Type": "batch", "Count": -1}]}]}`, "slots 1: count: must be 0 to 1000000, not -1")
	agent := newFake(t)
	wants(t, agent.runIn(t, chipJSON, "project", "apply", "-").err, "it looks like JSON, not HCL: use -json")
	wants(t, agent.run(t, "project", "apply", "-json", t.TempDir()+"/x.json").err, "no such file (`nomadish project init` writes an example)")
}

// The examples are right, and say the same in both languages.
func TestProjectInit(t *testing.T) {
	t.Chdir(t.TempDir())
	var sent []string
	for _, args := range []string{"project init", "project init -json", "project apply project.nomad.hcl", "project apply -json project.nomad.json"} {
		f := newFake(t).on("PUT /v1/project/example", "").on("PUT /v1/flow/example", "")
		if got := f.run(t, strings.Fields(args)...); got.code != exitDone || got.err != "" {
			t.Errorf("%s: exit code %d, %q", args, got.code, got.err)
		}
		sent = append(sent, strings.Join(f.bodies, "\n"))
	}
	if sent[2] == "" || sent[2] != sent[3] {
		t.Errorf("sent %q", sent)
	}
}

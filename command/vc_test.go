package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

// usingGPUs is a running allocation with devices.
func usingGPUs(id, namespace, name string, devices ...string) *structs.AllocListStub {
	a := webAlloc(id, structs.AllocClientRunning)
	a.Namespace, a.Name = namespace, name
	a.AllocatedResources.Tasks["serve"].Devices[0].DeviceIDs = devices
	return a.Stub(true, false)
}

// twoTenants is an agent of which team-a uses two cells, lends devices of them to team-b, and borrows of it.
func twoTenants(t *testing.T) (*fake, *structs.VirtualClusterStatus) {
	t.Helper()
	id := func(n string) string { return "00000000-0000-8000-8000-00000000000" + n }
	a := &structs.VirtualClusterStatus{
		Name: "team-a", OverLimit: "opportunistic", Points: 12, GuaranteedGPUs: 11, OpportunisticGPUs: 3,
		Cells: []*structs.CellStatus{{
			Kind: "nvidia/gpu/H100", NodePool: "default", Level: "node", Given: 4, Won: 1, Bound: 2, Bad: 1, Doomed: 1, GPUs: 16, GPUsUsed: 11, Lent: 5,
		}},
		Bound: []*structs.BoundCell{
			{Level: "node", Cell: "n3", NodeID: nodeA, Used: 2, Lent: 5, Allocs: []string{id("1"), id("2")}, Borrowers: []string{id("3"), id("4")}},
			{Level: "node", Cell: "n4", NodeID: nodeB, Pinned: true, Bad: true},
		},
		Windows: []*structs.CellWindow{
			{From: present.Add(-2 * time.Hour), To: present.Add(-time.Hour), Cells: []*structs.CellQuota{{Level: "node", Count: 9}}},
			{From: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 12, 15, 6, 30, 0, 0, time.UTC), Cells: []*structs.CellQuota{{Level: "node", Count: 6}}},
		},
	}
	b := &structs.VirtualClusterStatus{Name: "team-b", Cells: []*structs.CellStatus{{Level: "rack", Size: 16, Lent: 3}}, Bound: []*structs.BoundCell{
		{Level: "node", Cell: "n7", Borrowers: []string{id("5"), id("6"), id("7"), id("8")}},
	}}
	return newFake(t).
		on("GET /v1/virtual-clusters", []*structs.VirtualClusterStatus{a, b, {Name: "team-c"}}).
		on("GET /v1/exchanges", []*structs.Exchange{}).on("GET /v1/virtual-cluster/team-a", a).on("GET /v1/virtual-cluster/team-b", b).
		on("GET /v1/allocations", []*structs.AllocListStub{
			usingGPUs(id("1"), "team-a", "train.w[0]", "0"), usingGPUs(id("2"), "team-a", "train.w[1]", "1"),
			usingGPUs(id("3"), "team-b", "sweep.run[0]", "2", "3"), usingGPUs(id("4"), "team-b", "sweep.run[7]", "4", "5", "6"),
			usingGPUs(id("5"), "team-a", "eval.g[0]", "0"), usingGPUs(id("6"), "team-a", "eval.g[1]", "1"),
			usingGPUs(id("7"), "team-a", "eval.g[2]", "2"), usingGPUs(id("8"), "team-c", "other.g[0]", "3"),
		}), a
}

// The output that the design shows, to the letter.
func TestVCStatusLooksAsExpected(t *testing.T) {
	f, a := twoTenants(t)
	got := f.run(t, "vc", "status", "team-a")
	want := `Name = team-a   Over Limit = opportunistic   Points = 12   Next Window = 2026-12-01 (node 4 -> 6)
Kind             Level  Owned  Won  Bound  Free  Bad  Doomed  GPUs Used  Lent
nvidia/gpu/H100  node   4      1    2      2     1    1       11 of 16   5
Bound  Cell              Used by       Lent to
node   n3                train.w[0-1]  team-b sweep.run (5)
node   n4 (pinned, bad)
Borrowed 3 GPUs: eval.g[0-2] on n7 (cell of team-b)
`
	if got.out != want || got.err != "" || got.code != exitDone {
		t.Errorf("exit code %d, got\n%s\nwant\n%s\nstderr %s", got.code, got.out, want, got.err)
	}
	if requested := strings.Join(f.requests("GET"), "\n"); strings.Contains(requested, "/v1/virtual-cluster/team-c") {
		t.Errorf("a virtual cluster that lends nothing was read:\n%s", requested)
	}
	a.Waits, a.Cells[0].Waiting = "level node: 1 short", 1
	a.Pending = &structs.PendingCells{Cells: []*structs.CellQuota{{Level: "rack", Size: 2, Count: 1}}, Reason: "level rack: 1 short"}
	a.OpportunisticGPUs, a.Cells[0].NodePool = 5, "gpu"
	got = f.run(t, "vc", "status", "-verbose", "team-a")
	wants(t, got.out, "\nPending = rack of 2 1 (level rack: 1 short)\n", " 1 (level node: 1 short)\n", "Lent  Node Pool\n", "5     gpu\n",
		"Borrowed 5 GPUs: eval.g[0-2] on n7 (cell of team-b), 2 outside the bound cells of others\n",
		"2026-12-01         2026-12-15T06:30Z  node 6\n")
	a.Windows[1].From = present
	wants(t, f.run(t, "vc", "status", "team-a").out, "Points = 12   Window = until 2026-12-15T06:30Z (node 6)\n")
	f.answers["GET /v1/virtual-clusters"] = []any{[]*structs.VirtualClusterStatus{a}}
	wants(t, f.run(t, "vc", "status", "team-a").out, "\nBorrowed 5 GPUs outside the bound cells of others\n")
	f.answers["GET /v1/virtual-cluster/team-a"] = []any{&structs.VirtualClusterStatus{Name: "team-a", OverLimit: "wait"}}
	if got := f.run(t, "vc", "status", "team-a"); got.out != "Name = team-a   Over Limit = wait   Points = 0   Next Window = <none>\nIt owns no cells\n" {
		t.Errorf("%q", got.out)
	}
	if got := f.run(t, "vc", "status", "nobody"); got.code != exitFailed || !strings.Contains(got.err, `no virtual cluster has a name that starts with "nobody"`) {
		t.Errorf("%q", got.err)
	}
	if got := newFake(t).on("GET /v1/virtual-clusters", []*structs.VirtualClusterStatus{}).run(t, "vc", "list"); got.out != "No virtual clusters\n" {
		t.Errorf("%q", got.out)
	}
}

func TestIndexText(t *testing.T) {
	f := func(want string, indexes ...int) {
		t.Helper()
		if got := indexText(indexes); got != want {
			t.Errorf("%v: %q, want %q", indexes, got, want)
		}
	}
	f("")
	f("", -1)
	f("[3]", 3)
	f("[0-1]", 0, 1)
	f("[0,2-4,9]", 0, 2, 3, 4, 9)
	f("[0]", -1, 0)
	for name, want := range map[string]int{"a.b[7]": 7, "a.b": -1, "a.b[x]": -1, "a[1].b[2]": 2} {
		if group, index := groupAndIndex(name); index != want || index >= 0 && !strings.HasPrefix(name, group+"[") {
			t.Errorf("%s: %q, %d", name, group, index)
		}
	}
}

const teamFile = `virtual_cluster "team-a" {
  over_limit = "wait"
  points     = 100
  cells {
    kind  = "nvidia/gpu/H100"
    level = "node"
    count = 4
    pin   = ["n3"]
  }
  cells {
    level = "rack"
    size  = 16
    count = 1
  }
  window {
    from = "2026-12-01T00:00:00Z"
    to   = "2026-12-15T01:00:00+01:00"
    cells {
      level = "node"
      count = 6
    }
  }
}
virtual_cluster "team-b" {}
`

func TestVCApply(t *testing.T) {
	f := newFake(t).on("PUT /v1/virtual-cluster/team-a", "").on("PUT /v1/virtual-cluster/team-b", "")
	got := f.run(t, "vc", "apply", file(t, "a.hcl", teamFile))
	if got.out != "Successfully applied virtual cluster \"team-a\"!\nSuccessfully applied virtual cluster \"team-b\"!\n" || got.code != exitDone {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	var sent structs.VirtualCluster
	if err := json.Unmarshal([]byte(f.bodies[0]), &sent); err != nil {
		t.Fatal(err)
	}
	w := sent.Windows[0]
	if sent.OverLimit != "wait" || sent.Points != 100 || len(sent.Cells) != 2 || sent.Cells[0].Pin[0] != "n3" || sent.Cells[1].Size != 16 ||
		!w.To.Equal(time.Date(2026, 12, 15, 0, 0, 0, 0, time.UTC)) || w.Cells[0].Count != 6 {
		t.Errorf("sent %s", f.bodies[0])
	}
	const one = `{"Name": "team-a", "Cells": [{"Level": "node", "Count": 1}]}`
	f.on("GET /v1/virtual-cluster/team-a", &structs.VirtualClusterStatus{Name: "team-a", Pending: &structs.PendingCells{Reason: "level node: 1 short"}})
	got = f.runIn(t, one, "vc", "apply", "-json", "-when-free", "-check-index", "0", "-")
	wants(t, got.out, `The edit of virtual cluster "team-a" is pending: level node: 1 short`, "`nomadish vc status team-a`")
	wants(t, f.requests("PUT")[2], "/v1/virtual-cluster/team-a?cas=0&when_free=true")
	f.answers["GET /v1/virtual-cluster/team-a"] = []any{&structs.VirtualClusterStatus{Name: "team-a"}}
	wants(t, f.runIn(t, "["+one+"]", "vc", "apply", "-json", "-when-free", "-").out, "Successfully applied")
	got = f.run(t, "vc", "apply", "-check-index", "7", file(t, "a.hcl", teamFile))
	wants(t, got.err, "-check-index is of one virtual cluster")

	f.answers["PUT /v1/virtual-cluster/team-a"] = []any{refusal{409, "level socket: 2 short"}}
	got = f.run(t, "vc", "apply", file(t, "a.hcl", teamFile))
	if got.code != exitFailed || !strings.HasPrefix(got.err, "level socket: 2 short") || got.out != "" {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.err)
	}
	f.answers["PUT /v1/virtual-cluster/team-a"] = []any{refusal{400, `virtual cluster "team-a": cells 2: level "rack": there is none`}}
	path := file(t, "a.hcl", teamFile)
	wants(t, f.run(t, "vc", "apply", path).err, path+`:11:5: virtual cluster "team-a": cells 2: level "rack": there is none`)
	f.on("DELETE /v1/virtual-cluster/team-a", refusal{409, "in use"})
	if got := f.run(t, "vc", "delete", "team-a"); got.code != exitFailed || got.err != "in use (HTTP 409)\n" {
		t.Errorf("exit code %d, %q", got.code, got.err)
	}
}

// Whatever is wrong with a file, it is said where, and nothing is sent.
func TestVCFilesThatAreWrong(t *testing.T) {
	f := func(isJSON bool, text, want string) {
		t.Helper()
		agent, args := newFake(t), []string{"vc", "apply", "-"}
		if isJSON {
			args = append(args, "-json")
		}
		got := agent.runIn(t, text, args...)
		if got.code != exitFailed || !strings.Contains(got.err, want) || len(agent.requests("PUT")) > 0 {
			t.Errorf("%s: exit code %d, %q, want %q", text, got.code, got.err, want)
		}
	}
	in := func(body, want string) {
		t.Helper()
		f(false, "\nvirtual_cluster \"a\" {\n"+body+"\n}\n", want)
	}
	in("over_limt = \"wait\"", `-:3:1: virtual_cluster "a": unknown attribute "over_limt"; did you mean "over_limit"?`)
	in("over_limit = \"maybe\"", `-:3:1: virtual cluster "a": over_limit: must be opportunistic, wait or ask, not "maybe"`)
	in("cell {}", `-:3:1: virtual_cluster "a": unknown block "cell"; did you mean "cells"?`)
	in("cells { levl = \"node\" }", `-:3:9: virtual_cluster "a" > cells[0]: unknown attribute "levl"; did you mean "level"?`)
	in("cells {\n count = 1\n}", `-:3:1: virtual cluster "a": cells 1: level is missing`)
	in("cells {\n level = \"node\"\n count = -1\n}", `-:5:2: virtual cluster "a": cells 1: count: must be 0 to 1000000, not -1`)
	in("cells {\n level = \"node\"\n count = 1.5\n}", `-:5:10: virtual_cluster "a" > cells[0]: count: must be a whole number`)
	in("cells {\n level = \"node\"\n count = 1\n pin = [\"a\", \"b\"]\n}", `2 pins: at most 1 are allowed`)
	in("cells {\n level = \"node\"\n}\ncells {\n level = \"node\"\n}", `-:6:1: virtual cluster "a": cells 2: the same kind, level and size are stated twice`)
	in("window {\n from = \"2026-12-02T00:00:00Z\"\n to = \"2026-12-01T00:00:00Z\"\n cells {\n level = \"node\"\n }\n}",
		`-:3:1: virtual cluster "a": window 1: it ends at 2026-12-01T00:00:00Z, before it begins at 2026-12-02T00:00:00Z`)
	in("window {\n from = \"2026-12-02T00:00:00Z\"\n to = \"2026-12-02T01:00:00+01:00\"\n cells {\n level = \"node\"\n }\n}",
		`-:3:1: virtual cluster "a": window 1: it begins and ends at 2026-12-02T00:00:00Z: to is when it ends, and must be later than from`)
	in("cells { level = \"node\", count = 2 }", "-:3:23: a block in one line takes one argument only: write each argument on a line of its own")
	in("window {\n from = \"2026-12-02\"\n}", `-:4:9: virtual_cluster "a" > window[0]: from: must be a time such as "2026-12-01T00:00:00Z"`)
	in("window {\n from = \"2026-12-01T00:00:00Z\"\n to = \"2026-12-02T00:00:00Z\"\n cells {\n count = 1\n }\n}", `-:6:2: virtual cluster "a": window 1: cells 1: level is missing`)
	f(false, "virtual_cluster {}\n", `-:1:1: a virtual cluster needs the name of its namespace`)
	f(false, "virtual_cluster \"a_b\" {}\n", `-:1:1: virtual cluster "a_b": invalid name`)
	f(false, "virtual_cluster \"a\" {}\nvirtual_cluster \"a\" {}\n", `the file states the virtual cluster "a" twice`)
	f(false, "points = 1\nproject \"a\" {}\n", "-:1:1: unknown attribute \"points\": at the top of the file stand only blocks virtual_cluster\n-:2:1: unknown block \"project\"")
	f(false, "", "the file has no virtual cluster")
	f(false, "virtual_cluster \"a\" {\n", "-:1:21: Unclosed configuration block")
	f(false, "{}", "it looks like JSON, not HCL: use -json")
	f(true, teamFile, "it looks like HCL, not JSON: leave -json out")
	f(true, "{\"Name\": \"a\",\n \"Cels\": []}", `-:2: bad JSON: unknown key "Cels"; did you mean "Cells"?`)
	f(true, "{\"Name\": \"a\",\n \"over_limit\": \"wait\"}", `unknown key "over_limit"; did you mean "OverLimit"?`)
	f(true, "{\"Name\": \"a\",\n \"Given\": 1}", `unknown key "Given"; known are Name, OverLimit, Points`)
	f(true, "{\"Name\": \"a\",\n \"Points\": \"x\"}", "-:2: bad JSON: json: cannot unmarshal string")
	f(true, "{\"Name\": \"a\"}\n{}", "something follows the JSON value")
	f(true, "{\"Name\": \"a\"\n", "bad JSON")
	f(true, "{}", "missing name of the virtual cluster")
	f(true, "[]", "the list is empty")
	f(true, "[null]", "a virtual cluster of the list is null")
	if got := newFake(t).run(t, "vc", "apply", filepath.Join(t.TempDir(), "x.hcl")); !strings.Contains(got.err, "no such file (`nomadish vc init` writes an example)") {
		t.Errorf("%q", got.err)
	}
}

// The examples are right, and say the same in both languages.
func TestVCInit(t *testing.T) {
	t.Chdir(t.TempDir())
	f := newFake(t).on("PUT /v1/virtual-cluster/example", "")
	for _, args := range []string{"vc init", "vc init -json", "vc apply vc.nomad.hcl", "vc apply -json vc.nomad.json"} {
		if got := f.run(t, strings.Fields(args)...); got.code != exitDone || got.err != "" {
			t.Errorf("%s: exit code %d, %q", args, got.code, got.err)
		}
	}
	if len(f.bodies) != 2 || f.bodies[0] != f.bodies[1] {
		t.Errorf("sent %q", f.bodies)
	}
	if got := f.run(t, "vc", "init"); got.code != exitFailed {
		t.Errorf("an existing file was overwritten: %q", got.out)
	}
	windowed := strings.NewReplacer("  # window", "  window", "  #   ", "    ", "  # }", "  }").Replace(examples.VirtualCluster)
	if err := os.WriteFile("w.hcl", []byte(windowed), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.run(t, "vc", "apply", "w.hcl"); got.code != exitDone || !strings.Contains(f.lastBody(), `"From":"2026-12-01T00:00:00Z"`) {
		t.Errorf("%q, %s", got.err, f.lastBody())
	}
}

// A window that has ended is no error, for files keep theirs.
func TestVCApplyWarnsOfPastWindows(t *testing.T) {
	t.Chdir(t.TempDir())
	f := newFake(t).on("PUT /v1/virtual-cluster/a", "")
	window := func(to string) string {
		return "window {\n from = \"2001-12-01T00:00:00Z\"\n to = \"" + to + "\"\n cells {\n level = \"node\"\n count = 1\n }\n}\n"
	}
	for to, want := range map[string]string{
		"2001-12-15T00:00:00Z": "Warning: virtual cluster \"a\": the window from 2001-12-01 to 2001-12-15 has ended already; it changes nothing\n", "2101-12-15T00:00:00Z": "",
	} {
		if err := os.WriteFile("w.hcl", []byte("virtual_cluster \"a\" {\n"+window(to)+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.run(t, "vc", "apply", "w.hcl"); got.code != exitDone || got.err != want {
			t.Errorf("until %s: exit code %d, %q, want %q", to, got.code, got.err, want)
		}
	}
}

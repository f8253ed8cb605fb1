package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

const exampleTrace, exampleNodes = "../examples/trace-small.csv", "../examples/trace-nodes.hcl"

// The example is replayed; a second time it gives the same bytes, however many replays
// run at a time.
func TestSimRun(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, more ...string) result {
		t.Helper()
		args := append([]string{"sim", "run", "-nodes", exampleNodes, "-trace", exampleTrace, "-out", filepath.Join(dir, name)}, more...)
		return line(t, args...)
	}
	got := run("a", "-policy", "binpack,spread,random", "-seed", "1-2", "-parallel", "2")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "6 of 6: ", "Policy", "binpack", "spread", "random", "decisions", "report.html")
	if again := run("b", "-policy", "binpack,spread,random", "-seed", "1-2", "-parallel", "1"); again.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", again.code, again.err)
	}
	for _, name := range []string{"figures.json", "figures.csv", "report.html"} {
		a, errA := os.ReadFile(filepath.Join(dir, "a", name))
		b, errB := os.ReadFile(filepath.Join(dir, "b", name))
		if errA != nil || errB != nil || len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, errA, errB)
		}
	}
	// Where nobody leaves, packing can be compared with the published method.
	got = run("c", "-policy", "openb-bestfit,binpack", "-drop", "-until", "110%", "-seed", "7")
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "openb-bestfit", "allocated at 100 %")
}

// Ways of sharing are compared; what tenants own by their peaks is written as a file, which gives the same figures.
func TestSimRunVirtualClusters(t *testing.T) {
	dir := t.TempDir()
	run := func(name, owns string) string {
		t.Helper()
		got := line(t, "sim", "run", "-nodes", exampleNodes, "-trace", exampleTrace, "-policy", "binpack", "-virtual-clusters", owns,
			"-sharing", "cells,queue,counts", "-out", filepath.Join(dir, name))
		if got.code != exitDone {
			t.Fatalf("exit code %d, stderr %q", got.code, got.err)
		}
		wants(t, got.out, "virtual clusters", "one queue", "GPU counts", "sharing loss, GPU h", "useful GPUs")
		figures, err := os.ReadFile(filepath.Join(dir, name, "figures.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return string(figures)
	}
	first := run("a", "peaks")
	wants(t, first, "virtual clusters,1,tenant,all,loss jobs,0\n")
	if run("b", filepath.Join(dir, "a", virtualClustersFile)) != first {
		t.Error("the written virtual clusters give other figures")
	}
}

func TestSimRunConfigurations(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := readSchedulerConfig(put("a.json", `{"SchedulerAlgorithm": "spread", "ReservationAfter": "2m"}`))
	if err != nil || c.NodeOrder() != "spread" || c.ReservationAfter.Minutes() != 2 {
		t.Errorf("%+v %v", c, err)
	}
	c, err = readSchedulerConfig(put("a.hcl", "server {\n  scheduling {\n    policy = \"first-fit\"\n  }\n}\n"))
	if err != nil || c.NodeOrder() != "first-fit" {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range []string{put("b.json", `{"SchedulerAlgorithm": "best"}`), put("c.json", "{"), put("b.hcl", "server {"), filepath.Join(dir, "none.json")} {
		if _, err := readSchedulerConfig(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	for bad, want := range map[string]string{
		put("e.json", "{}"):                                           "has no configuration of the scheduler",
		put("n.json", "null"):                                         "has no configuration of the scheduler",
		put("e.hcl", "server {\n  enabled = true\n}\n"):               "has no configuration of the scheduler",
		put("n.json", `{"Slots": {"Graze": "1s"}}`):                   `Slots.Graze: is not known; did you mean "Grace"?`,
		put("k.json", `{"SchedulerAlgoritm": "spread"}`):              `SchedulerAlgoritm: is not known; did you mean "SchedulerAlgorithm"?`,
		put("p.json", `{"PreemptionConfig": {"BatchEnabled": true}}`): "PreemptionConfig.BatchEnabled: is not known",
	} {
		if _, err := readSchedulerConfig(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", bad, err, want)
		}
	}
	// What get-config -json prints is taken whole, and a file without a policy too.
	all, err := json.Marshal((&structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}).Effective())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := readSchedulerConfig(put("all.json", string(all))); err != nil || c.NodeOrder() != "spread" {
		t.Errorf("%+v %v", c, err)
	}
	text := "server {\n  default_scheduler_config {\n    preemption_config {\n      batch_scheduler_enabled = true\n    }\n  }\n}\n"
	if c, err := readSchedulerConfig(put("p.hcl", text)); err != nil || !c.PreemptionConfig.BatchSchedulerEnabled {
		t.Errorf("%+v %v", c, err)
	}
	if policies, err := parsePolicies("", &c); err != nil || !slices.Equal(policies, []string{"first-fit"}) {
		t.Errorf("%v %v", policies, err)
	}
	if seeds, err := parseSeeds("42-44,7"); err != nil || fmt.Sprint(seeds) != "[42 43 44 7]" {
		t.Errorf("%v %v", seeds, err)
	}
	// As docs/guides/simulation.md turns preemption on: the rest stays that of a new cluster.
	want := structs.DefaultSchedulerConfiguration()
	want.PreemptionConfig.BatchSchedulerEnabled, want.KeepWhole = true, true
	if c, err := readSchedulerConfig(put("doc.json", `{"PreemptionConfig": {"BatchSchedulerEnabled": true}, "KeepWhole": true}`)); err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v %v, want %+v", c, err, want)
	}
	for _, name := range structs.Policies() {
		if !slices.Contains(simPolicies(), name) {
			t.Errorf("%s cannot be named", name)
		}
	}
}

func TestSimRunRefuses(t *testing.T) {
	dir := t.TempDir()
	timeless := filepath.Join(dir, "timeless.csv")
	if err := os.WriteFile(timeless, []byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,8,1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	order := filepath.Join(dir, "order.csv")
	if err := os.WriteFile(order, []byte("seed,pos,row\n42,0,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		got := line(t, append([]string{"sim", "run"}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", args, got.code, got.err, want)
		}
	}
	with := func(args ...string) []string {
		return append([]string{"-nodes", exampleNodes, "-trace", exampleTrace, "-out", filepath.Join(dir, "out")}, args...)
	}
	f("-parallel 0: must be 1 or more", with("-parallel", "0")...)
	f("-sort-rows -4: must be 1 or more", with("-sort-rows", "-4")...)
	f("-until: counts the demand that arrives while nobody leaves: use it with -drop", with("-until", "130%")...)
	f("-nodes FILE is needed")
	f("-trace FILE is needed", "-nodes", "x")
	f("-out DIR is needed", "-nodes", "x", "-trace", "y")
	f("no arguments are taken", with("more")...)
	f(`-policy "best": is not known; there are binpack, spread`, with("-policy", "best")...)
	f("binpack is named twice", with("-policy", "binpack,binpack")...)
	f(`-seed "x": must be numbers`, with("-seed", "x")...)
	f(`-seed "5-1": must be numbers`, with("-seed", "5-1")...)
	f("1 is named twice", with("-seed", "1,1")...)
	f(`-until "0%": must be`, with("-until", "0%")...)
	f(`format "swf": must be`, with("-format", "swf")...)
	f("missing columns: timestamp", with("-format", "philly")...)
	f("set the end with -until", with("-drop")...)
	f("is for packing only", with("-policy", "openb-bestfit")...)
	f("kept in memory", with("-drop", "-until", "1", "-sort-rows", "3")...)
	f("has no order of that seed", with("-order", order, "-seed", "43")...)
	f("has no arrival times", "-nodes", exampleNodes, "-trace", timeless, "-out", dir)
	f("no such file", with("-nodes", filepath.Join(dir, "none.csv"))...)
	owned := func(name, text string) []string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return with("-virtual-clusters", path)
	}
	f("no such file", with("-virtual-clusters", filepath.Join(dir, "none.hcl"))...)
	f("has no virtual cluster", owned("empty.hcl", "")...)
	f(`unknown block "cluster"`, owned("block.hcl", "cluster \"a\" {}\n")...)
	f("needs the name of its namespace", owned("name.hcl", "virtual_cluster {}\n")...)
	f(`did you mean "count"`, owned("field.hcl", "virtual_cluster \"a\" {\n  cells {\n    level = \"node\"\n    cout = 1\n  }\n}\n")...)
	f("level node: 1 short", owned("many.hcl", "virtual_cluster \"a\" {\n  cells {\n    level = \"node\"\n    count = 5\n  }\n}\n")...)
	f(`-sharing "most": is not known; there are cells, queue, counts`, with("-virtual-clusters", "peaks", "-sharing", "most")...)
	f("cells is named twice", with("-virtual-clusters", "peaks", "-sharing", "cells,cells")...)
	f("state these with -virtual-clusters FILE", with("-sharing", "cells")...)
	f("leave out -drop and -order", with("-virtual-clusters", "peaks", "-drop", "-until", "1")...)
	f("no such file", with("-node-rank", filepath.Join(dir, "none.csv"))...)
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("something was written")
	}
	// A folder that cannot be is told before the first replay.
	f("-out: report: mkdir "+timeless, "-nodes", exampleNodes, "-trace", exampleTrace, "-out", filepath.Join(timeless, "out"))
	got := line(t, "sim", "run", "-nodes", exampleNodes, "-trace", exampleTrace, "-out", timeless)
	if got.code != exitFailed || strings.Contains(got.out+got.err, "1 of 1") {
		t.Errorf("exit code %d, %q, %q: something was replayed", got.code, got.out, got.err)
	}
}

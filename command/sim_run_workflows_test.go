package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/report"
	"github.com/nomadish/nomadish/scheduler/trace"
)

const workflowNodes = "shape \"cpu\" {\n  count  = 2\n  cores  = 32\n  mhz    = 1000\n  memory = 131072\n}\n"

// mixOf generates a mix on two nodes of 32 cores, and returns the file of the nodes and that of the trace.
func mixOf(t *testing.T, dir, seed string) (nodes, mix string) {
	t.Helper()
	nodes, mix = filepath.Join(dir, "nodes.hcl"), filepath.Join(dir, "mix-"+seed+".csv")
	if err := os.WriteFile(nodes, []byte(workflowNodes), 0o600); err != nil {
		t.Fatal(err)
	}
	got := line(t, "sim", "generate", "-nodes", nodes, "-seed", seed, "-time", "90m", "-stage", "30m", "-single", "1m", "-out", mix)
	if got.code != exitDone {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "Written: "+mix, "workflows of", "single jobs")
	return nodes, mix
}

// On a generated mix of workflows and single jobs, stages of workflows that reserve wait for nobody, and what they lend keeps the nodes as busy as if they
// reserved nothing. Generated and replayed again, all of it is the same.
func TestSimRunWorkflows(t *testing.T) {
	dir := t.TempDir()
	nodes, mix := mixOf(t, dir, "2")
	first, err := os.ReadFile(mix)
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, more ...string) result {
		t.Helper()
		got := line(t, append([]string{"sim", "run", "-nodes", nodes, "-trace", mix, "-out", filepath.Join(dir, name)}, more...)...)
		if got.code != exitDone {
			t.Fatalf("exit code %d, stderr %q", got.code, got.err)
		}
		return got
	}
	got := run("a", "-reservations", "none,whole,lend")
	wants(t, got.out, "no reservation", "reserved, not lent", "reserved and lent", "stage wait, max", "of no reservation")
	var r report.Report
	text, err := os.ReadFile(filepath.Join(dir, "a", report.FiguresJSON))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Policies) != 3 {
		t.Fatalf("%d policies, %v", len(r.Policies), err)
	}
	none, whole, lent := r.Policies[0], r.Policies[1], r.Policies[2]
	if lent.CPU.Mean < 0.95*none.CPU.Mean || whole.CPU.Mean > 0.93*none.CPU.Mean {
		t.Errorf("in use %.3f without reservations, %.3f where they are not lent, %.3f lent", none.CPU.Mean, whole.CPU.Mean, lent.CPU.Mean)
	}
	if none.Workflows.StageWaitMax.Mean == 0 || whole.Workflows.StageWaitMax.Mean != 0 || lent.Workflows.StageWaitMax.Mean != 0 {
		t.Errorf("stages wait %+v, %+v, %+v", none.Workflows, whole.Workflows, lent.Workflows)
	}
	if w := r.Runs[2].Workflows; w.Reservations != trace.ReservationsLend || w.Completed != w.Workflows || w.TakenBack == 0 || w.CPU.Lent == 0 {
		t.Errorf("%+v", w)
	}
	wants(t, string(read(t, dir, "a", report.Page)), "Reserved and idle over time", "Use of reservations", "Waits of stages, workflows and single jobs")
	run("b") // lend is the default
	if again := read(t, dir, "b", report.FiguresCSV); !bytes.HasSuffix(read(t, dir, "a", report.FiguresCSV), again[bytes.IndexByte(again, '\n'):]) {
		t.Error("a second replay gives other figures")
	}
	if mixOf(t, dir, "2"); !bytes.Equal(first, read(t, dir, filepath.Base(mix))) {
		t.Error("the same seed gives another mix")
	}
	if _, other := mixOf(t, dir, "3"); bytes.Equal(first, read(t, other)) {
		t.Error("another seed gives the same mix")
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSimWorkflowsRefused(t *testing.T) {
	dir := t.TempDir()
	nodes, mix := mixOf(t, dir, "1")
	f := func(want string, args ...string) {
		t.Helper()
		got := line(t, append([]string{"sim"}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", args, got.code, got.err, want)
		}
	}
	out, order := filepath.Join(dir, "out"), filepath.Join(dir, "order.csv")
	if err := os.WriteFile(order, []byte("seed,pos,row\n1,0,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) []string {
		return append([]string{"run", "-nodes", nodes, "-trace", mix, "-out", out}, args...)
	}
	f(`-reservations "half": is not known; there are none, whole, lend`, with("-reservations", "half")...)
	f("lend is named twice", with("-reservations", "lend,lend")...)
	f("leave out -drop and -order", with("-order", order)...)
	f("not replayed together with virtual clusters", with("-virtual-clusters", "peaks")...)
	f("the trace has none", "run", "-nodes", exampleNodes, "-trace", exampleTrace, "-out", out, "-reservations", "lend")
	rows := func(row string) []string {
		path := filepath.Join(dir, "rows.csv")
		text := fmt.Sprintf("arrival,duration,cpu,memory,max_run_duration,workflow,stage,lend\n%s\n", row)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"run", "-nodes", nodes, "-trace", path, "-out", out}
	}
	f("stage must be stated", rows("0,1,1,1,,w,,")...)
	f("is stated, but workflow is empty", rows("0,1,1,1,,,1,")...)
	f("rows of a trace have no user", rows("0,1,1,1,,w,1,user:ada")...)
	f("all nodes of a replay are in the pool default", rows("0,1,1,1,,w,1,node_pool:gpu")...)
	f(`share "0": must be a number`, rows("0,1,1,1,,w,1,namespace:a=0")...)
	f("is stated twice", rows("0,1,1,1,,w,1,namespace:a|namespace:a")...)
	f("for all borrowers, or for none", rows("0,1,1,1,,w,1,namespace:a=1|namespace:b")...)
	f("borrowers with | between them", rows("0,1,1,1,,w,1,namespace:a soon")...)
	f("must not be less than the duration", rows("0,9,1,1,5,w,1,")...)

	f("-out FILE is needed", "generate", "-nodes", nodes)
	f("-nodes FILE is needed", "generate")
	f("no arguments are taken", "generate", "x")
	generate := func(args ...string) []string {
		return append([]string{"generate", "-nodes", nodes, "-out", out}, args...)
	}
	f(`-seed "x": must be a number`, generate("-seed", "x")...)
	f(`-load "many": must be 0% to 10000%`, generate("-load", "many")...)
	f(`-workflows "101%": must be 0% to 100%`, generate("-workflows", "101%")...)
	f("-single 0s: must be 1s to", generate("-single", "0s")...)
	f("at most 1000000 are", generate("-time", "5000h", "-single", "1s")...)
	f("no such file", "generate", "-nodes", filepath.Join(dir, "none.hcl"), "-out", out)
}

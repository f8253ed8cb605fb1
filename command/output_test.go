package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/structs"
)

// examplePlan is the answer to a plan of a job that is not registered.
func examplePlan() *structs.JobPlanReply {
	return &structs.JobPlanReply{
		Diff: &structs.JobDiff{
			ID: "example", Type: structs.DiffTypeAdded, Fields: []*structs.FieldDiff{{Type: "Added", Name: "Priority", New: "50"}},
			TaskGroups: []*structs.TaskGroupDiff{{
				Type: structs.DiffTypeAdded, Name: "web", Updates: map[string]uint64{"create": 1},
				Fields:  []*structs.FieldDiff{{Type: "Added", Name: "Count", New: "1"}},
				Objects: []*structs.ObjectDiff{{Type: "Added", Name: "EphemeralDisk", Fields: []*structs.FieldDiff{{Type: "Added", Name: "SizeMB", New: "300"}}}},
				Tasks: []*structs.TaskDiff{{
					Type: structs.DiffTypeAdded, Name: "server", Annotations: []string{"forces create"},
					Fields: []*structs.FieldDiff{{Type: "Added", Name: "Driver", New: "exec"}},
				}},
			}},
		},
		Annotations: &structs.PlanAnnotations{DesiredTGUpdates: map[string]*structs.DesiredUpdates{"web": {Place: 1}}},
	}
}

// exampleFile writes a job file whose job is "example" and returns its path.
func exampleFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example.nomad.hcl")
	if err := os.WriteFile(path, []byte(examples.Service), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlanOfANewJobIsShort(t *testing.T) {
	f := newFake(t).on("PUT /v1/job/example/plan", examplePlan()).on("PUT /v1/job/hello/plan", examplePlan())
	path := exampleFile(t)
	got := f.run(t, "job", "plan", path)
	want := `+ Job: "example"
+ Task Group: "web" (1 create)
  + Task: "server" (forces create)

Scheduler dry-run:
- All tasks successfully allocated.

Job Modify Index: 0
To submit the job with version verification run:

nomadish job run -check-index 0 ` + path + `

When running the job with the check-index flag, the job will only be run if the
job modify index given matches the server-side version. If the index has
changed, another user has modified the job and the plan's results are
potentially invalid.
`
	if got.out != want || got.code != 1 {
		t.Errorf("exit code %d, got\n%s\nwant\n%s\nstderr %s", got.code, got.out, want, got.err)
	}
	wants(t, f.run(t, "job", "plan", "-verbose", path).out, `Priority: "50"`, `Count: "1"`, "EphemeralDisk {", `Driver: "exec"`)
}

func TestJobStatusJSONHasNomadsRequestKey(t *testing.T) {
	f := cluster(t)
	reads := func(want int, args ...string) []map[string]json.RawMessage {
		t.Helper()
		got := f.run(t, args...)
		var list []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list) != want {
			t.Fatalf("%q: %v, %d of %d jobs in %.300s (stderr %s)", args, err, len(list), want, got.out, got.err)
		}
		for _, name := range []string{"Summary", "Allocations", "LatestDeployment", "Evaluations"} {
			if _, ok := list[0][name]; !ok {
				t.Errorf("%q: no %s in %.300s", args, name, got.out)
			}
		}
		return list
	}
	one := reads(1, "job", "status", "-json", "web")[0]
	var allocs []*structs.AllocListStub
	if err := json.Unmarshal(one["Allocations"], &allocs); err != nil || len(allocs) != 2 {
		t.Errorf("%d allocations, %v", len(allocs), err)
	}
	if string(one["LatestDeployment"]) != "null" {
		t.Errorf("LatestDeployment is %s, without deployments", one["LatestDeployment"])
	}
	reads(2, "job", "status", "-json")
	if got := f.run(t, "job", "status", "-t", "{{range .}}{{.Summary.JobID}} {{len .Allocations}};{{end}}", "web"); got.out != "web 2;\n" {
		t.Errorf("-t printed %q, %s", got.out, got.err)
	}
}

func TestJobInspectFormatsSeeTheJob(t *testing.T) {
	f := cluster(t)
	if got := f.run(t, "job", "inspect", "-t", "{{.ID}} {{(index .TaskGroups 0).Name}}", "web"); got.out != "web front\n" {
		t.Errorf("-t printed %q, %s", got.out, got.err)
	}
	wrapped, bare := f.run(t, "job", "inspect", "web").out, f.run(t, "job", "inspect", "-json", "web").out
	var outer struct{ Job *structs.Job }
	if err := json.Unmarshal([]byte(wrapped), &outer); err != nil || outer.Job == nil || outer.Job.ID != "web" {
		t.Errorf("without a flag: %v: %.200s", err, wrapped)
	}
	var inner structs.Job
	if err := json.Unmarshal([]byte(bare), &inner); err != nil || inner.ID != "web" {
		t.Errorf("-json: %v: %.200s", err, bare)
	}
}

func TestSchedulerConfigJSONIsTheAPIsAnswer(t *testing.T) {
	f := cluster(t)
	var reply struct {
		SchedulerConfig *structs.SchedulerConfiguration
		LastIndex       uint64
		KnownLeader     *bool
	}
	got := f.run(t, "operator", "scheduler", "get-config", "-json")
	if err := json.Unmarshal([]byte(got.out), &reply); err != nil || reply.SchedulerConfig == nil || reply.SchedulerConfig.ModifyIndex != 9 {
		t.Fatalf("%v: %s%s", err, got.out, got.err)
	}
	if reply.LastIndex != 7 || reply.KnownLeader == nil {
		t.Errorf("without what the API's answer came with: %s", got.out)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(got.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := readSchedulerConfig(path); err != nil || !c.PauseEvalBroker { // as `sim run -config` reads it
		t.Errorf("what was printed cannot be read again: %v", err)
	}
	if got := f.run(t, "operator", "scheduler", "get-config", "-t", "{{.SchedulerConfig.SchedulerAlgorithm}}"); got.out != "binpack\n" {
		t.Errorf("-t printed %q, %s", got.out, got.err)
	}
}

func TestEvalListLooksAsExpected(t *testing.T) {
	one, two := webEval("aaaaaaaa-0000-8000-8000-000000000001", structs.EvalStatusComplete), webEval("11111111-0000-8000-8000-000000000002", structs.EvalStatusBlocked)
	two.CreateIndex, two.NodeID = 21, "22222222-0000-8000-8000-000000000002"
	f := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{two, one}) // by ID, as the API lists them
	got := f.run(t, "eval", "list")
	want := `ID        Priority  Triggered By  Job ID  Namespace  Node ID   Status    Placement Failures
aaaaaaaa  50        job-register  web     default    <none>    complete  false
11111111  50        job-register  web     default    22222222  blocked   N/A - In Progress
`
	if got.out != want {
		t.Errorf("got\n%s\nwant\n%s\n%s", got.out, want, got.err)
	}
}

func TestEvalStatusLooksAsExpected(t *testing.T) {
	v := webEval("2ae0e6a5-0000-8000-8000-000000000001", structs.EvalStatusComplete)
	v.StatusDescription, v.PreviousEval, v.NextEval = "complete", "33333333-0000-8000-8000-000000000003", "44444444-0000-8000-8000-000000000004"
	unplaced(v).BlockedEval = "67493a64-0000-8000-8000-000000000002"
	f := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{v}).on("GET /v1/evaluation/"+v.ID, v).
		on("GET /v1/evaluation/"+v.ID+"/allocations", []*structs.AllocListStub{})
	got := f.run(t, "eval", "status", "2ae0e6a5")
	want := `ID                 = 2ae0e6a5
Create Time        = 1m0s ago
Modify Time        = 1m0s ago
Status             = complete
Status Description = complete
Type               = service
TriggeredBy        = job-register
Job ID             = web
Namespace          = default
Priority           = 50
Placement Failures = true

Failed Placements
Task Group "back" (failed to place 2 allocations):
  * No nodes are available in datacenter "dc2"
  * Constraint "${attr.kernel.name} = windows": 3 nodes excluded by filter
  * Resources exhausted on 1 node
  * Dimension "memory" exhausted on 1 node
`
	if !strings.HasPrefix(got.out, want) {
		t.Errorf("got\n%s\nwant it to begin with\n%s\n%s", got.out, want, got.err)
	}
	wants(t, got.out, "\nEvaluation \"67493a64\" waiting for additional capacity to place remainder\n")
	wants(t, f.run(t, "eval", "status", "-verbose", "2ae0e6a5").out, "ID                 = "+v.ID, "Previous Eval      = "+v.PreviousEval,
		"Next Eval          = "+v.NextEval, "Blocked Eval       = "+v.BlockedEval)
}

func TestNodeStatusShowsVolumesNetworksAndUse(t *testing.T) {
	f := cluster(t)
	n := gpuNode(nodeA, "gpu-1")
	n.HostVolumes = map[string]*structs.HostVolumeInfo{"scratch": {Name: "scratch", Path: "/mnt/nvme"}, "models": {Name: "models", Path: "/srv/models", ReadOnly: true}}
	n.NodeResources.NodeNetworks = []*structs.NodeNetworkResource{{
		Mode: "host", Device: "ib0", Speed: 200000, Addresses: []structs.NodeNetworkAddress{{Family: "ipv4", Alias: "fabric", Address: "10.1.0.7"}},
	}}
	f.answers["GET /v1/node/"+nodeA] = []any{n}
	got := f.run(t, "node", "status", "gpu-1")
	wants(t, got.out, "Host Volumes  = models,scratch", "Driver Status = mock_driver", "\nDrivers\n",
		"\nAllocation Resource Utilization\nCPU          Memory\n42/8000 MHz  2.0 MiB/4.0 GiB\n", "\nHost Resource Utilization\n")
	got = f.run(t, "node", "status", "-verbose", "gpu-1")
	wants(t, got.out, "\nHost Volumes\nName     ReadOnly  Source\nmodels   true      /srv/models\nscratch  false     /mnt/nvme\n",
		"\nHost Networks\nName    Device  Address   Speed\nfabric  ib0     10.1.0.7  200000 Mbit/s\n")
}

// What a node offers to calendars of projects is shown: what it states, else its cores if it has no devices.
func TestNodeStatusShowsSlots(t *testing.T) {
	for want, change := range map[string]func(n *structs.Node){
		"Slots         = <none>\n":    func(*structs.Node) {},
		"Slots         = batch: 16\n": func(n *structs.Node) { n.NodeResources.Devices, n.NodeResources.Cpu.TotalCpuCores = nil, 16 },
		"Slots         = batch: 4, interactive-light: 8 (0 count: its cores and memory hold no more)\n": func(n *structs.Node) {
			n.NodeResources.Slots = map[string]int{"interactive-light": 8, "batch": 4, "wide": 0}
		},
	} {
		f := cluster(t)
		n := gpuNode(nodeA, "gpu-1")
		change(n)
		f.answers["GET /v1/node/"+nodeA] = []any{n}
		wants(t, f.run(t, "node", "status", "gpu-1").out, want)
		if n.NodeResources.Slots != nil {
			wants(t, f.run(t, "node", "status", "-json", "gpu-1").out, `"Slots": {`, `"interactive-light": 8`)
		}
	}
}

// The first line of the version is one that programs can read: a name, a space, a v and a semantic version.
func TestVersionCanBeParsed(t *testing.T) {
	was := Version
	t.Cleanup(func() { Version = was })
	for given, want := range map[string]string{
		"dev": "Nomadish v0.1.0-dev", "b87e9fb": "Nomadish v0.1.0-dev+b87e9fb", "b87e9fb-dirty": "Nomadish v0.1.0-dev+b87e9fb-dirty",
		"v1.2.3": "Nomadish v1.2.3", "1.2.3-rc.1": "Nomadish v1.2.3-rc.1", "v0.4.0-12-gb87e9fb": "Nomadish v0.4.0-12-gb87e9fb",
	} {
		Version = given
		for _, args := range [][]string{{"version"}, {"-version"}, {"--version"}, {"-v"}} {
			var out strings.Builder
			if code := Run(args, strings.NewReader(""), &out, &out); code != exitDone {
				t.Errorf("%q: exit code %d", args, code)
			}
			first, _, _ := strings.Cut(out.String(), "\n")
			if first != want || !regexp.MustCompile(`^Nomadish v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(first) {
				t.Errorf("%q of build %q begins with %q, want %q", args, given, first, want)
			}
		}
	}
}

package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// reads are the commands that only look, with arguments that name something.
var reads = []struct {
	line string
	want []string // of what a person is shown
}{
	{"version", []string{VersionString()}},
	{"what-if lose:gpu-1", []string{"Starts  later 1", "team/web  g      2", "60 s later", "team/web.g[0]  gpu-1", "preempted by other.g[0]", "Wait of project chip", "team, with"}},
	{"license list", []string{"Name  Count  Used  Free  Reserved  Description", "vcs   10     7     3     0         Simulator"}},
	{"license status vcs", []string{"Count       = 10", "Free        = 3", "owner = eda", "default    sim  g           2            6", "team       syn  g           1            1"}},
	{"workflow list", []string{"chip  default    1    running  2 of 3 (place)  70"}},
	{"workflow status", []string{"chip  default    1    running"}},
	{"workflow status chip", []string{"chip run 1  running  stage 2 of 3", "synth [a ✓ 50s] ── place"}},
	{"agent-info", []string{"client", "node_id"}},
	{"status", []string{"web", "webhook", "dead (stopped)"}},
	{"status web", []string{"Summary", "Placement Failure", "Allocations"}},
	{"job status", []string{"web", "webhook", "dead (stopped)"}},
	{"job status web", []string{"Summary", "Placement Failure", "Allocations"}},
	{"job explain web", []string{"3 of 4 placed", "The smallest change that would place it", "memory: 900 MiB"}},
	{"job allocs web", []string{"5f3a9c01", "complete"}},
	{"job inspect web", []string{`"ID": "web"`}},
	{"job history web", []string{"Version", "= 3"}},
	{"job scaling-events web", []string{"Task Group", "PrevCount", "front", "back"}},
	{"alloc status", []string{"5f3a9c01", "Job ID"}},
	{"alloc status 5f3a9c01", []string{`Task "serve" is running`}},
	{"alloc fs 5f3a9c01", []string{"serve.stdout.0", "1.5 KiB"}},
	{"eval list", []string{"blocked", "job-register"}},
	{"eval status " + evalA, []string{"Failed Placements", "Placed Allocations"}},
	{"node status", []string{"gpu-1", "gpu-2", "eligible"}},
	{"node status gpu-1", []string{"Allocated Resources", "Xid 79"}},
	{"namespace list", []string{"Name     Description", "team     Those who train", "default  Default shared namespace"}},
	{"namespace status te", []string{"EnabledDrivers       = exec,mock_driver", "DisabledDrivers      = <none>", "EnabledNetworkModes  = *", "DisabledNetworkModes = host", "Metadata\nowner = sre"}},
	{"namespace inspect team", []string{`"EnabledTaskDrivers": [`, `"Name": "team"`}},
	{"project list", []string{"chip  1      1       asic  2      velocity   44 batch"}},
	{"project status ch", []string{"Week 2026-W48 (until Mon 00:00 Europe/Berlin)   Objective = velocity", "batch  synthesis, any          40", "Managers = lead"}},
	{"project calendar ch", []string{"2026-W48  Mon 2026-11-23 00:00    batch   synthesis, any          40", "2026-W49  Mon 2026-11-30 00:00    <none>"}},
	{"project edits ch", []string{"operator  2026-W48  no slots                   40 batch (synthesis, any)"}},
	{"project report ch", []string{"Mean run = 1m30s", "2026-W48  batch  2.00"}},
	{"flow list", []string{"asic  synthesis, place"}},
	{"vc list", []string{"Name  Over Limit     Points  Cells   Bound", "team  opportunistic  12      5 node  1      1       3 of 16    1     no"}},
	{"vc status te", []string{"Next Window = 2026-12-01 (node 4 -> 6)", "3 of 16    1", "web.front[0]"}},
	{"vc exchanges", []string{"5f3a9c01  offer  team   nvidia/gpu/H100  node        2                       2026-11-21T12:00Z  2026-11-21T13:00Z", "5f3a9c02  bid    lab    <none>           rack of 16  1      3 "}},
	{"node pool list", []string{"Name     Description", "gpu      Machines with H100", "default  Default node pool."}},
	{"node pool info gpu", []string{"Name              = gpu", "= Machines with H100", "Node Identity TTL = 1h0m0s", "Metadata\nowner = sre"}},
	{"node pool nodes g", []string{"Node Pool", "gpu-1", "eligible"}},
	{"node pool jobs gpu", []string{"Submit Date", "web", "service"}},
	{"node meta read", []string{"rack", "<unset>"}},
	{"node config -servers", []string{"10.0.0.1:4647"}},
	{"scaling policy list", []string{"Namespace:default,Job:web,Group:front"}},
	{"scaling policy info " + policyID, []string{"cooldown", "20"}},
	{"topology", []string{"rack r1", "free cell of 2"}},
	{"topology -node gpu-1", []string{"5f3a9c01 web.front[0]", "Free Cells"}},
	{"queue", []string{"Position", "memory exhausted on 3 nodes", "not tried yet"}},
	{"region list", []string{"global", "1 of 1 alive", "10.0.0.1:4647", "mars", "0 of 1 alive"}},
	{"server members", []string{"s1.global", "alive", "true"}},
	{"operator autopilot get-config", []string{"MinQuorum", "3", "1s"}},
	{"operator autopilot health", []string{"FailureTolerance", "server-1"}},
	{"operator gossip keyring list", []string{"b2xkLg==  3/3      3/3", "bmV3Lg==  2/3      0/3"}},
	{"operator raft list-peers", []string{"leader", "10.0.0.1:4647"}},
	{"operator scheduler get-config", []string{"binpack", "Pause Eval Broker"}},
	{"operator snapshot inspect testdata/format1.snap", []string{"s1 at 10.0.0.1:4647", "nodes"}},
	{"operator debug check", []string{"s1", "abcd", "in order"}},
	{"operator metrics", []string{"nomad.x", "3"}},
	{"system reconcile summaries", []string{"put right: job web"}},
	{"tls ca info testdata/ca.pem", []string{"Nomadish Agent CA", "2125-12-08"}},
	{"tls cert info testdata/server.pem", []string{"[server.global.nomad localhost]"}},
}

func TestReadsPrintForPeopleAndPrograms(t *testing.T) {
	f := cluster(t)
	for _, r := range reads {
		t.Run(r.line, func(t *testing.T) {
			words := strings.Fields(r.line)
			got := f.run(t, words...)
			if got.code != exitDone || got.err != "" {
				t.Fatalf("exit code %d, stderr %q", got.code, got.err)
			}
			wants(t, got.out, r.want...)
			got = f.run(t, append(words, "-json")...)
			if got.code != exitDone || !json.Valid([]byte(got.out)) {
				t.Errorf("-json: exit code %d, stderr %q, output %q", got.code, got.err, got.out)
			}
			got = f.run(t, append(words, "-t", "<{{ . | len | printf \"%T\" }}>")...)
			if got.code != exitDone && !strings.Contains(got.err, "len of") {
				t.Errorf("-t: exit code %d, stderr %q, output %q", got.code, got.err, got.out)
			}
			if got = f.run(t, append(words, "-t", "{{", "-json=false")...); got.code != exitFailed || !strings.HasPrefix(got.err, "template:") {
				t.Errorf("-t of nonsense: exit code %d, stderr %q", got.code, got.err)
			}
		})
	}
}

func TestEveryReadHasOutputFlags(t *testing.T) {
	named := map[string]bool{}
	for _, r := range reads {
		longest := "" // "operator debug check" is not "operator debug"
		for name := range specs() {
			if strings.HasPrefix(r.line+" ", name+" ") && len(name) > len(longest) {
				longest = name
			}
		}
		named[longest] = true
	}
	for name, s := range specs() {
		if s.output && !named[name] && aliases[name] == "" {
			t.Errorf("%s has -json and -t, but no test looks at them", name)
		}
	}
	for name := range named {
		if s := specs()[name]; !s.output {
			t.Errorf("%s reads, but has no -json and -t", name)
		}
	}
}

func TestTemplateSeesTheValue(t *testing.T) {
	f := cluster(t)
	shows := func(want string, args ...string) {
		t.Helper()
		if got := f.run(t, args...); got.code != exitDone || got.out != want+"\n" {
			t.Errorf("%q: exit code %d, stderr %q, output %q, want %q", args, got.code, got.err, got.out, want)
		}
	}
	shows("web webhook ", "job", "status", "-t", "{{range .}}{{.Summary.JobID}} {{end}}")
	shows("web 2", "job", "status", "-t", "{{range .}}{{.Summary.JobID}} {{len .Allocations}}{{end}}", "web")
	shows("gpu-1", "node", "status", "-self", "-t", "{{.Name}}")
	shows("80", "alloc", "status", allocA, "-t", "{{(index .AllocatedResources.Shared.Ports 0).Value}}")
	if got := f.run(t, "job", "status", "-json", "-t", "x"); got.code != exitFailed || !strings.Contains(got.err, "exclude each other") {
		t.Errorf("both: exit code %d, stderr %q", got.code, got.err)
	}
}

func TestJobStatusLooksAsExpected(t *testing.T) {
	got := cluster(t).run(t, "status", "web")
	want := fmt.Sprintf(`ID            = web
Name          = web
Submit Date   = %s
Type          = service
Priority      = 50
Datacenters   = dc1
Namespace     = default
Node Pool     = default
Status        = running
Version       = 3
Periodic      = false
Parameterized = false

Summary
Task Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown
front       0       0         1        0       1         0     0

Placement Failure
Task Group "back" (failed to place 2 allocations):
  * No nodes are available in datacenter "dc2"
  * Constraint "${attr.kernel.name} = windows": 3 nodes excluded by filter
  * Resources exhausted on 1 node
  * Dimension "memory" exhausted on 1 node
%s

Allocations
ID        Node ID             Node Name  Task Group  Version  Desired  Status    Created   Modified
5f3a9c01  01976c1c-5f3a-7c11  gpu-1      front       3        run      running   5m0s ago  2s ago
5f3a9c02  01976c1c-5f3b-7c11  gpu-1      front       3        run      complete  5m0s ago  2s ago
`, ui.Time(ago(time.Hour)), "`nomadish job explain web` lists every reason and the smallest change that would place it")
	if got.out != want {
		t.Errorf("got\n%s\nwant\n%s\nstderr %s", got.out, want, got.err)
	}
}

func TestPlacementFailureIsOfWhatWaits(t *testing.T) {
	f := func(shown, stopped bool, evals ...*structs.Evaluation) {
		t.Helper()
		var out strings.Builder
		e := &env{printer: printer{out: &out}}
		showUnplaced(&e.printer, &jobReport{Job: &structs.Job{Stop: stopped}, Evaluations: evals})
		if strings.Contains(out.String(), "Placement Failure") != shown {
			t.Errorf("shown %v, want %v: %s", !shown, shown, out.String())
		}
	}
	good, bad := webEval("g", structs.EvalStatusComplete), unplaced(webEval("b", structs.EvalStatusComplete))
	pending, blocked := webEval("p", structs.EvalStatusPending), webEval("w", structs.EvalStatusBlocked)
	f(false, false)
	f(false, false, good)
	f(true, false, bad)
	f(true, false, pending, bad)
	f(false, false, good, bad) // it was placed since
	f(true, false, blocked, bad, good)
	f(true, false, good, blocked, bad)
	f(false, false, blocked, good)
	f(false, true, blocked, bad)
}

func TestNodeStatusSaysWhyADriverIsNotThere(t *testing.T) {
	n := gpuNode(nodeA, "gpu-1")
	f := newFake(t).on("GET /v1/nodes", []*structs.NodeListStub{nodeStub(n)}).on("GET /v1/node/"+nodeA, n).
		on("GET /v1/node/"+nodeA+"/allocations", []*structs.Allocation{})
	n.Drivers["docker"], n.Drivers["raw_exec"] = &structs.DriverInfo{}, &structs.DriverInfo{HealthDescription: "switched off"}
	got := f.run(t, "node", "status", "gpu-1")
	wants(t, got.out, "mock_driver  true", "\nNo driver raw_exec: switched off\n")
	if strings.Contains(got.out, "docker") {
		t.Errorf("a driver of which there is nothing to say is shown: %s", got.out)
	}
	delete(n.Drivers, "mock_driver")
	wants(t, f.run(t, "node", "status", "gpu-1").out, "No drivers: nothing can run here\nNo driver raw_exec: switched off\n")
}

func TestAllocStatusShowsWhatATaskHas(t *testing.T) {
	f := cluster(t)
	got := f.run(t, "alloc", "status", "-verbose", "-stats", "5f3a9c01")
	if got.code != exitDone || got.err != "" {
		t.Fatalf("exit code %d, stderr %q", got.code, got.err)
	}
	wants(t, got.out, "Client Status       = running", "http   no       10.0.0.1:80", "admin  yes      10.0.0.1:23456 -> 9090",
		"42/500 MHz", "2.0 MiB/256 MiB", "[2 3]", "gpu-1-gpu-0", "Total Restarts = 2", "Task started by client",
		"Memory Stats", "CPU Stats", "Placement Metrics", "3 nodes looked at, 1 filtered", nodeA+"  0.5      0.5")
	if first, second := strings.Index(got.out, "Started  "), strings.Index(got.out, "Received"); first < 0 || first > second {
		t.Errorf("the newest event is not the first:\n%s", got.out)
	}
	got = f.run(t, "alloc", "status", "-short", "5f3a9c01")
	if wants(t, got.out, "serve  running  Started"); strings.Contains(got.out, "Recent Events") {
		t.Errorf("-short shows events:\n%s", got.out)
	}
}

func TestAllocStatusWithoutFigures(t *testing.T) {
	f := newFake(t).on("GET /v1/allocations", []*structs.AllocListStub{webAlloc(allocA, structs.AllocClientRunning).Stub(false, true)}).
		on("GET /v1/allocation/"+allocA, webAlloc(allocA, structs.AllocClientRunning))
	if got := f.run(t, "alloc", "status", "5f3a9c01"); got.code != exitDone || got.err != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	got := f.run(t, "alloc", "status", "-stats", "5f3a9c01")
	if got.code != exitFailed {
		t.Errorf("-stats that could not be had: exit code %d", got.code)
	}
	wants(t, got.err, "read the resource usage of the allocation")
	wants(t, got.out, "500 MHz", "256 MiB")
}

func TestNodeStatus(t *testing.T) {
	f := cluster(t)
	got := f.run(t, "node", "status", "-verbose", "-stats", "gpu-1")
	wants(t, got.out, "Uptime        = 1m30s", "500/8000 MHz  2/4    256 MiB/4.0 GiB  300 MiB/10 GiB", "nvidia/gpu/H100  2    1     0     1",
		"gpu-1-gpu-0  <none>      healthy            "+allocA+" web.front[0]", "unhealthy: Xid 79", "123/8000 MHz  1.0 GiB/4.0 GiB", "kernel.name = linux", "rack = r1", "CPU Stats", "Disk Stats")
	got = f.run(t, "node", "status", "-allocs", "-os", "-verbose")
	wants(t, got.out, nodeA, "debian", "10.0.0.1", "Running Allocs")
	if got = f.run(t, "node", "status", "-self", "gpu-1"); got.code != exitFailed {
		t.Errorf("-self and a node: exit code %d", got.code)
	}
}

func TestEvalListRequestsForWhatIsWanted(t *testing.T) {
	f := cluster(t)
	f.run(t, "eval", "list", "-job", "web", "-status", "blocked", "-per-page", "2", "-filter", "Priority > 1")
	requested := f.requests("GET")
	wants(t, requested[len(requested)-1], "job=web", "status=blocked", "per_page=2", "filter=Priority+%3E+1")
	if got := newFake(t).on("GET /v1/evaluations", []*structs.Evaluation{}).run(t, "eval", "list"); got.out != "No evals found\n" {
		t.Errorf("none: %q", got.out)
	}
}

func TestServerMembersWithoutLeaderFails(t *testing.T) {
	f := newFake(t).on("GET /v1/agent/members", map[string]any{"Members": []any{}}).on("GET /v1/status/leader", `""`)
	if got := f.run(t, "server", "members"); got.code != exitFailed || !strings.Contains(got.err, "no leader") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
}

func TestPrometheusMetricsAreAsTheyCome(t *testing.T) {
	f := newFake(t).on("GET /v1/metrics", "# HELP x\nx 1\n")
	if got := f.run(t, "metrics", "-format", "prometheus"); got.out != "# HELP x\nx 1\n" {
		t.Errorf("%q, stderr %q", got.out, got.err)
	}
	wants(t, f.requests("GET")[0], "format=prometheus")
	if got := f.run(t, "metrics", "-format", "xml"); got.code != exitFailed {
		t.Errorf("unknown format: exit code %d", got.code)
	}
}

func TestTwoNodesOfOneName(t *testing.T) {
	f := newFake(t).on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "gpu-1"}, {ID: nodeB, Name: "gpu-1"}})
	got := f.run(t, "topology", "-node", "gpu-1")
	if got.code != exitFailed {
		t.Errorf("exit code %d", got.code)
	}
	wants(t, got.err, `2 nodes are named "gpu-1"; use the ID of one:`, short(nodeA, false)+" ", short(nodeB, false)+" ")
}

// What an ambiguous beginning of an ID matches is listed as the list of its kind has it, each once.
func TestSeveralAreListedAsATable(t *testing.T) {
	const alike = "5f3a9c01-0000-8000-8000-000000000003"
	twin := webAlloc(alike, structs.AllocClientRunning)
	f := cluster(t)
	list := func(args ...string) (head string, rows []string) {
		t.Helper()
		got := f.run(t, args...)
		text, table, _ := strings.Cut(got.err, "\n\n")
		rows = strings.Split(strings.TrimSpace(table), "\n")
		if got.code != exitFailed || got.out != "" || !strings.Contains(text, "IDs that start with") {
			t.Fatalf("%q: exit code %d, %q, %q", args, got.code, got.out, got.err)
		}
		return strings.Join(strings.Fields(rows[0]), " "), rows[1:]
	}
	for _, c := range []struct {
		line, head string
		rows       [][]string
	}{
		{"job status we", "ID Type Priority Status Submit Date", [][]string{{"web ", "service"}, {"webhook ", "dead (stopped)"}}},
		{"node status 01976c1c", "ID Node Pool DC Name Class Drain Eligibility Status", [][]string{{short(nodeA, false) + " ", "gpu-1"}, {short(nodeB, false) + " ", "ready"}}},
		{"alloc logs 5f3a", "ID Node ID Node Name Task Group Version Desired Status Created Modified Job ID", [][]string{{"5f3a9c01 ", "running"}, {"5f3a9c02 ", "complete"}}},
		{"eval status 01976c1d", "ID Priority Triggered By Job ID Namespace Node ID Status Placement Failures", [][]string{{short(evalA, false) + " ", "complete"}, {short(evalB, false) + " ", "blocked"}}},
	} {
		head, rows := list(strings.Fields(c.line)...)
		if head != c.head || len(rows) != len(c.rows) {
			t.Errorf("%s: %q\n%s", c.line, head, strings.Join(rows, "\n"))
			continue
		}
		for i, parts := range c.rows {
			for _, p := range parts {
				if strings.Count(rows[i], p) != 1 {
					t.Errorf("%s: %q stands %d times in %q", c.line, p, strings.Count(rows[i], p), rows[i])
				}
			}
		}
	}
	f.answers["GET /v1/allocations"] = []any{[]*structs.AllocListStub{webAlloc(allocA, structs.AllocClientRunning).Stub(false, true), twin.Stub(false, true)}}
	if _, rows := list("alloc", "status", "5f3a9c01"); !strings.HasPrefix(rows[0], allocA) && !strings.HasPrefix(rows[1], allocA) {
		t.Errorf("IDs that are alike are cut: %q", rows)
	}
	var many []*structs.JobListStub
	for i := range 3 * maxListed {
		many = append(many, &structs.JobListStub{ID: fmt.Sprintf("bulk-%d", i), Name: fmt.Sprintf("bulk-%d", i)})
	}
	f.answers["GET /v1/jobs"] = []any{many}
	if _, rows := list("job", "status", "bulk"); len(rows) != maxListed+1 || rows[maxListed] != fmt.Sprintf("… and %d more", 2*maxListed) {
		t.Errorf("%q", rows)
	}
}

func TestOneFindsByPrefixAndName(t *testing.T) {
	f := cluster(t)
	ends := func(code int, part string, args ...string) {
		t.Helper()
		got := f.run(t, args...)
		if got.code != code {
			t.Errorf("%q: exit code %d, want %d; stderr %q", args, got.code, code, got.err)
		}
		wants(t, got.out+got.err, part)
	}
	ends(exitFailed, `2 allocations have IDs that start with "5f3a"`, "alloc", "status", "5f3a")
	ends(exitFailed, "5f3a9c02", "alloc", "status", "5f3a")
	ends(exitFailed, `no allocation is named "9999" or has an ID that starts so`, "alloc", "status", "9999")
	ends(exitFailed, `no evaluation has an ID that starts with "9999"`, "eval", "status", "9999") // which have no names
	ends(exitFailed, `no node pool has a name that starts with "cpu"`, "node", "pool", "info", "cpu")
	ends(exitFailed, `no node is named "gpu-9" or has an ID that starts so`, "node", "status", "gpu-9")
	ends(exitFailed, `2 nodes have IDs that start with "01976c1c"`, "node", "status", "01976c1c")
	ends(exitDone, "gpu-1", "node", "status", "01976c1c-5f3a")
	ends(exitDone, "= web", "job", "status", "web") // not webhook, though both start so
	ends(exitFailed, `2 jobs have IDs that start with "we"`, "job", "status", "we")
	ends(exitFailed, `no job is named "zzz" or has an ID that starts so`, "job", "status", "zzz")
	ends(exitFailed, "its ID is missing", "eval", "status", "")
	ends(exitFailed, "one evaluation is needed, 0 given", "eval", "status")
}

func TestRefusalsAreShown(t *testing.T) {
	f := newFake(t).on("GET /v1/jobs", refusal{500, "no leader; try again"})
	if got := f.run(t, "job", "status"); got.code != exitFailed || got.out != "" || !strings.Contains(got.err, "no leader; try again") {
		t.Errorf("exit code %d, output %q, stderr %q", got.code, got.out, got.err)
	}
}

// A flag that is wrong is told with what is meant or allowed, and where to read on.
func TestWrongFlags(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if got := newFake(t).run(t, args...); got.code != exitFailed || got.err != want || got.out != "" {
			t.Errorf("%q: %d %q, want %q", args, got.code, got.err, want)
		}
	}
	f("there is no flag -verbos; did you mean -verbose?\nSee `nomadish job status -help`.\n", "job", "status", "-verbos", "web")
	f("-keep-whole \"maybe\": must be true or false\nSee `nomadish operator scheduler set-config -help`.\n", "operator", "scheduler", "set-config", "-keep-whole=maybe")
	f("-parallel \"all\": must be a whole number\nSee `nomadish sim run -help`.\n", "sim", "run", "-parallel", "all")
}

package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// threeOf is the job "shop" with instances that sleep.
const threeOf = `job "shop" {
  group "front" {
    count = 3
    task "serve" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`

// says runs a command and fails the test unless it ends with the code and prints all parts.
func says(a *harness.Agent, code int, want []string, args ...string) string {
	a.T.Helper()
	out, got := a.CLI(args...)
	if got != code {
		a.T.Errorf("%q: exit code %d, want %d: %s", args, got, code, out)
	}
	for _, part := range want {
		if !strings.Contains(out, part) {
			a.T.Errorf("%q: %q is missing in:\n%s", args, part, out)
		}
	}
	return out
}

// starts are when the running instances of a job last started their task, by their IDs.
func starts(a *harness.Agent, job string, n int) map[string]time.Time {
	a.T.Helper()
	out := map[string]time.Time{}
	for _, alloc := range a.WaitRunning(job, n, 20*time.Second) {
		out[alloc.ID] = alloc.TaskStates["serve"].StartedAt
	}
	return out
}

// TestHabitsCommands: commands of Nomad's on a real agent, with their exit codes.
func TestHabitsCommands(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	file := a.JobFile("shop", threeOf)
	says(a, 0, nil, "job", "run", "-detach", file)
	before := starts(a, "shop", 3)
	node := says(a, 0, nil, "node", "status", "-quiet")
	node = strings.TrimSpace(node)
	var alloc string
	for alloc = range before { // any
	}

	// What an ID is of is found out.
	says(a, 0, []string{"shop", "service", "running"}, "status")
	says(a, 0, []string{"Allocations", "front"}, "status", "shop")
	says(a, 0, []string{"Client Status", `Task "serve" is running`}, "status", alloc[:8])
	says(a, 0, []string{"Drivers", "e2e"}, "status", node[:8])
	says(a, 0, []string{"Drivers", node}, "status", "-verbose", "e2e") // by its name
	// No ID of an allocation begins so: it would be found by that alone.
	says(a, 1, []string{`Multiple matches found for id "ho"`, "Jobs:\n  shop\n", "Allocations:\n"}, "status", "ho")
	says(a, 1, []string{"no job, workflow, evaluation, allocation or node"}, "status", "nothing-of-the-kind")

	// Restarted in place, then replaced.
	out := says(a, 0, []string{"Restarting 3 allocations", "2nd batch of 1 allocation", "All allocations restarted successfully!"}, "job", "restart", "-batch-size=2", "shop")
	after := starts(a, "shop", 3)
	for id, was := range before {
		if now, there := after[id]; !there || !now.After(was) {
			t.Errorf("allocation %s was not restarted: started %v, before %v\n%s", id, now, was, out)
		}
	}
	says(a, 0, []string{"All allocations rescheduled successfully!"}, "job", "restart", "-reschedule", "-batch-size=100%", "shop")
	for id := range starts(a, "shop", 3) {
		if _, there := before[id]; there {
			t.Errorf("allocation %s was not replaced", id)
		}
	}
	says(a, 1, []string{`no group "back"`}, "job", "restart", "-group", "back", "shop")

	// Stopped, and started again from the version that ran, with its source.
	says(a, 1, []string{"is not stopped"}, "job", "start", "shop")
	says(a, 0, nil, "job", "stop", "-detach", "shop")
	a.WaitInStatus("shop", structs.AllocClientRunning, 0, 20*time.Second)
	says(a, 0, []string{"No allocations to restart"}, "job", "restart", "shop")
	says(a, 0, []string{`"shop" started as its version 0`}, "job", "start", "-detach", "shop")
	a.WaitRunning("shop", 3, 20*time.Second)
	if out := says(a, 0, nil, "job", "inspect", "-hcl", "shop"); out != threeOf {
		t.Errorf("the source is %q", out)
	}

	says(a, 0, []string{"No scaling events found"}, "job", "scaling-events", "shop")
	says(a, 0, nil, "job", "scale", "-detach", "shop", "front", "2")
	says(a, 0, []string{"PrevCount", "front       2      3"}, "job", "scaling-events", "shop")

	says(a, 0, nil, "check")
	says(a, 2, []string{"known peers: 0, expected are at least 1"}, "check", "-min-peers", "1")
	says(a, 2, []string{"known servers: 1, expected are at least 2"}, "check", "-min-servers", "2")
	says(a, 2, []string{"no agent answers"}, "check", "-address", "http://127.0.0.1:1")
	says(a, 0, []string{"last_heartbeat", "heartbeat_ttl"}, "agent-info")
	says(a, 1, []string{`nomadish: "volume create" is not there yet: `}, "volume", "create", "x.hcl")
}

// TestHabitsFiles: commands that need no agent.
func TestHabitsFiles(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(a.Dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agent := []string{filepath.Join(a.Dir, "agent.hcl"), filepath.Join(a.Dir, "more.hcl")}
	says(a, 0, []string{"Configuration is valid!"}, append([]string{"config", "validate"}, agent...)...)
	bad := write("bad.hcl", "server {\n  enabledd = true\n}\n")
	says(a, 1, []string{"bad.hcl:2", "enabled"}, "config", "validate", bad)
	says(a, 1, []string{"server.enabled"}, "config", "validate", write("empty.hcl", ""))
	says(a, 1, []string{"at least one file or directory"}, "config", "validate")

	untidy := write("job.nomad", "job \"a\" {\ngroup \"b\" {\ncount=1\n}\n}\n")
	says(a, 1, []string{"job.nomad"}, "fmt", "-check", untidy)
	if out := says(a, 0, nil, "fmt", untidy); out != untidy+"\n" {
		t.Errorf("fmt printed %q", out)
	}
	if got, err := os.ReadFile(untidy); err != nil || string(got) != "job \"a\" {\n  group \"b\" {\n    count = 1\n  }\n}\n" { // a test's own
		t.Errorf("formatted: %q, %v", got, err)
	}
	says(a, 0, nil, "fmt", "-check", untidy)
	says(a, 1, []string{"open.hcl:1"}, "fmt", write("open.hcl", "a = {"))
}

// TestHabitsRaftFiles: the Raft data of a server that does not run can be read, that of one that runs cannot.
func TestHabitsRaftFiles(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	a.Start()
	a.WaitReady(1)
	says(a, 0, nil, "job", "run", "-detach", a.JobFile("shop", threeOf))
	a.WaitRunning("shop", 3, 20*time.Second)
	data := filepath.Join(a.Dir, "data")
	says(a, 1, []string{"a server is running with it"}, "operator", "raft", "info", data)
	report, err := a.API.Operator().Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Kill()
	says(a, 0, []string{"first index: 1", "JobRegister", "PlanCommit", "No snapshots"}, "operator", "raft", "info", data)
	var state struct {
		Jobs   []*structs.Job
		Nodes  []*structs.Node
		Allocs []*structs.Allocation
	}
	if err := json.Unmarshal([]byte(says(a, 0, nil, "operator", "raft", "state", data)), &state); err != nil {
		t.Fatal(err)
	}
	if len(state.Jobs) != 1 || state.Jobs[0].ID != "shop" || len(state.Nodes) != 1 || state.Nodes[0].SecretID != "" || len(state.Allocs) != 3 {
		t.Errorf("state of %d jobs, %d nodes, %d allocations", len(state.Jobs), len(state.Nodes), len(state.Allocs))
	}
	lines := 0
	for line := range strings.Lines(says(a, 0, nil, "operator", "raft", "logs", data)) {
		if lines++; !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if lines < int(report.StateIndex) { // small
		t.Errorf("%d entries, and the state was at index %d", lines, report.StateIndex)
	}
	a.Start() // nothing was broken
	a.WaitReady(1)
	says(a, 0, []string{"shop"}, "status")
}

// TestHabitsPriorities: the priority of a job that states none, and the highest that one may state, are what the servers'
// configuration says, whether a job comes as HCL, as JSON or from Nomad's client.
func TestHabitsPriorities(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "server {\n  job_default_priority = 30\n  job_max_priority = 60\n}\n")
	plain := a.JobFile("shop", threeOf)
	says(a, 0, nil, "job", "run", "-detach", plain)
	says(a, 0, []string{"Priority      = 30"}, "job", "status", "shop")
	says(a, 0, []string{`"Priority": 0`}, "job", "run", "-output", plain) // which it does not state, and may be sent so
	unranked := harness.OfficialJob("json", "sleep 1000")
	unranked.Priority = nil
	if _, _, err := a.Nomad.Jobs().Register(unranked, nil); err != nil {
		t.Fatal(err)
	}
	says(a, 0, []string{"Priority      = 30"}, "job", "status", "json")
	parsed, err := a.Nomad.Jobs().ParseHCL(threeOf, false)
	if err != nil || parsed.Priority != nil {
		t.Errorf("parsed: priority %v, %v", parsed.Priority, err)
	}
	high := a.JobFile("high", strings.Replace(threeOf, "job \"shop\" {", "job \"high\" {\n  priority = 61", 1))
	for _, command := range []string{"run", "plan", "validate"} {
		out, code := a.CLI("job", command, high)
		if want := "priority 61: the servers of this region allow at most 60 (job_max_priority)"; code == 0 || !strings.Contains(out, want) {
			t.Errorf("job %s: exit code %d, %s", command, code, out)
		}
	}
	file := filepath.Join(t.TempDir(), "a.hcl")
	if err := os.WriteFile(file, []byte("data_dir = \"/d\"\nserver {\n  enabled = true\n  job_max_priority = 200\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(a, 1, []string{"a.hcl:4: server.job_max_priority 200: must be from job_default_priority (50) to 100"}, "config", "validate", file)
}

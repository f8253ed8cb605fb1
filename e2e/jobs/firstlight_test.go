package jobs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestDevAgentRunsTheExamples: what `job init` writes runs as it stands, and its
// output can be read.
func TestDevAgentRunsTheExamples(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	path := filepath.Join(a.Dir, "hello.nomad.hcl")
	if out, code := a.CLI("job", "init", "-batch", path); code != 0 {
		t.Fatalf("job init: exit %d\n%s", code, out)
	}
	out, code := a.CLI("job", "run", path)
	if code != 0 || !strings.Contains(out, "complete") {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	allocs := a.WaitInStatus("hello", structs.AllocClientComplete, 3, 10*time.Second)
	out, code = a.CLI("alloc", "logs", allocs[0].ID)
	if code != 0 || !strings.Contains(out, "of hello") || !strings.Contains(out, "done") {
		t.Fatalf("alloc logs: exit %d\n%s", code, out)
	}
	out, code = a.CLI("job", "status", "hello")
	if code != 0 || !strings.Contains(out, "dead") || !strings.Contains(out, "complete") {
		t.Fatalf("job status: exit %d\n%s", code, out)
	}
}

// TestHundredProcessesComplete: a hundred one-shot processes, all with exit code 0.
func TestHundredProcessesComplete(t *testing.T) {
	harness.Alone(t)
	a := harness.StartDev(t, "")
	path := a.JobFile("many", `job "many" {
  type = "batch"
  group "g" {
    count = 100
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 2
        max_file_size = 1
      }
      config { command = "/bin/true" }
      resources {
        cpu = 20
        memory = 10
      }
    }
  }
}`)
	start := time.Now()
	if out, code := a.CLI("job", "run", "-detach", path); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	a.WaitInStatus("many", structs.AllocClientComplete, 100, 60*time.Second)
	took := time.Since(start)
	t.Logf("FIGURE 100 processes complete %s after the command began", took.Round(time.Millisecond))
	if limit := 2 * time.Second; took > harness.Scaled(limit) {
		t.Errorf("100 processes took %s, far more than %s", took, limit)
	}
}

const suspendedJobs = `job "sleepers" {
  group "g" {
    count = 20
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 2
        max_file_size = 1
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "echo started $$; exec sleep 1000"]
      }
      resources {
        cpu = 20
        memory = 10
      }
    }
  }
}`

// TestAgentCrashKeepsTasks: after kill -9 and a restart there are the same
// allocations with the same processes, nothing was restarted, and all jobs are there.
func TestAgentCrashKeepsTasks(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	a.Start()
	a.WaitReady(1)
	if out, code := a.CLI("job", "run", "-detach", a.JobFile("sleepers", suspendedJobs)); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	before := a.WaitRunning("sleepers", 20, 30*time.Second)
	pids := a.PIDs(before)
	a.Kill()
	for id, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("task of %s (pid %d) after the agent's crash: %v", id, pid, err)
		}
	}
	a.Start()
	a.WaitReady(1)
	after := a.WaitRunning("sleepers", 20, 30*time.Second)
	if got := a.PIDs(after); !maps.Equal(got, pids) {
		t.Fatalf("after the restart:\n%v\nnot\n%v", got, pids)
	}
	for _, alloc := range after {
		whole, _, err := a.API.Allocations().Info(t.Context(), alloc.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := whole.TaskStates["t"].Restarts; n != 0 {
			t.Errorf("allocation %s: %d restarts", alloc.ID, n)
		}
	}
	all, _, err := a.API.Jobs().Allocations(t.Context(), "sleepers", true, nil)
	if err != nil || len(all) != 20 {
		t.Fatalf("%d allocations in all, not 20 (%v)", len(all), err)
	}
	if out, code := a.CLI("job", "stop", "-detach", "sleepers"); code != 0 {
		t.Fatalf("job stop: exit %d\n%s", code, out)
	}
	a.WaitInStatus("sleepers", structs.AllocClientComplete, 20, 30*time.Second)
	for id, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("task of %s (pid %d) still runs after the job's stop", id, pid)
		}
	}
}

// TestAcknowledgedRegistrationsSurvive: killed between two writes of a busy loop, the
// agent has every job whose registration it had answered.
func TestAcknowledgedRegistrationsSurvive(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, "server {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	a.Start()
	a.WaitReady(0)
	harness.Within(t, 20*time.Second, "a leader", func(ctx context.Context) error { return a.API.Status().WaitLeader(ctx) })
	acknowledged := make(chan string, 100_000)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			job := &structs.Job{ID: fmt.Sprintf("job-%05d", i), Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{
				Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1s"}}},
			}}}
			job.Canonicalize()
			if _, err := a.API.Jobs().Register(ctx, &structs.JobRegisterRequest{Job: job}); err != nil {
				return
			}
			acknowledged <- job.ID
		}
	}()
	harness.Within(t, 30*time.Second, "200 registrations", func(context.Context) error {
		if n := len(acknowledged); n < 200 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	a.Kill()
	<-done
	close(acknowledged)
	a.Start()
	harness.Within(t, 20*time.Second, "the jobs", func(ctx context.Context) error {
		_, _, err := a.API.Jobs().List(ctx, nil)
		return err
	})
	jobs, _, err := a.API.Jobs().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, j := range jobs {
		there[j.ID] = true
	}
	n := 0
	for id := range acknowledged {
		n++
		if !there[id] {
			t.Errorf("job %s was acknowledged and is gone", id)
		}
	}
	t.Logf("%d acknowledged, %d there", n, len(jobs))
}

const layouts = `shape "small" {
  count  = 100
  cores  = 16
  mhz    = 2000
  memory = 65536
  disk   = 200000
}
`

// TestThousandInstances: a job of 1,000 on 100 nodes is placed by one evaluation, no
// node over its capacity; counted down to 10, 990 stop.
func TestThousandInstances(t *testing.T) {
	t.Parallel()
	// A machine too slow for a hundred heartbeats in time must not look like one that lost nodes.
	a := harness.NewAgent(t, true, harness.Simulate(t, layouts)+"server {\n  enabled = true\n  heartbeat_grace = \"1m\"\n}\n")
	a.Start()
	a.WaitReady(100)
	path := a.JobFile("big", `job "big" {
  group "g" {
    count = 1000
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
      resources {
        cpu    = 2500
        memory = 4096
      }
    }
  }
}`)
	if out, code := a.CLI("job", "run", path); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	allocs := a.WaitRunning("big", 1000, 60*time.Second)
	evals, _, err := a.API.Jobs().Evaluations(t.Context(), "big", nil)
	evals = slices.DeleteFunc(evals, func(e *structs.Evaluation) bool { return e.TriggeredBy == structs.EvalTriggerAllocHealth }) // ten seconds on
	if err != nil || len(evals) != 1 {
		for _, e := range evals {
			t.Logf("evaluation %s by %s: %s %s", e.ID, e.TriggeredBy, e.Status, e.StatusDescription)
		}
		t.Fatalf("%d evaluations, not 1 (%v)", len(evals), err)
	}
	cpu, memory := map[string]int64{}, map[string]int64{}
	for _, alloc := range allocs {
		c, m, _, _ := alloc.AllocatedResources.Total()
		cpu[alloc.NodeName] += c
		memory[alloc.NodeName] += m
	}
	for _, node := range slices.Sorted(maps.Keys(cpu)) {
		if cpu[node] > 32000 || memory[node] > 65536 {
			t.Errorf("node %s holds %d MHz and %d MiB: over its 32000 and 65536", node, cpu[node], memory[node])
		}
	}
	if out, code := a.CLI("job", "scale", "-detach", "big", "10"); code != 0 {
		t.Fatalf("job scale: exit %d\n%s", code, out)
	}
	a.WaitInStatus("big", structs.AllocClientComplete, 990, 60*time.Second)
	a.WaitRunning("big", 10, 10*time.Second)
}

// TestLostNode: when a client's process is killed, its services run elsewhere and its
// batch work runs again; its return stops nothing twice.
func TestLostNode(t *testing.T) {
	t.Parallel()
	server := harness.NewAgent(t, false, "server {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	server.Start()
	server.WaitReady(0)
	var clients []*harness.Agent
	for i := range 2 {
		c := harness.NewAgent(t, false, fmt.Sprintf("name = \"node-%d\"\nclient {\n  enabled = true\n  servers = [%q]\n}\n", i, server.RPC))
		c.Start()
		clients = append(clients, c)
		server.WaitReady(i + 1)
	}
	for _, kind := range []string{"service", "batch"} {
		path := server.JobFile(kind, `job "`+kind+`" {
  type = "`+kind+`"
  group "g" {
    count = 4
    spread { attribute = "${node.unique.name}" }
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 2
        max_file_size = 1
      }
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu = 20
        memory = 10
      }
    }
  }
}`)
		if out, code := server.CLI("job", "run", "-detach", path); code != 0 {
			t.Fatalf("job run: exit %d\n%s", code, out)
		}
	}
	reserved := 0
	for _, kind := range []string{"service", "batch"} {
		for _, alloc := range server.WaitRunning(kind, 4, 30*time.Second) {
			if alloc.NodeName == "node-0" {
				reserved++
			}
		}
	}
	if reserved == 0 {
		t.Fatal("nothing was placed on node-0: the test would show nothing")
	}
	clients[0].Kill()
	for _, pid := range harness.ProcessesOf(clients[0].Dir) { // the machine is gone with all on it
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, kind := range []string{"service", "batch"} {
		harness.Within(t, harness.LostWithin, kind+" elsewhere", func(ctx context.Context) error {
			allocs, _, err := server.API.Jobs().Allocations(ctx, kind, true, nil)
			if err != nil {
				return err
			}
			n := 0
			for _, alloc := range allocs {
				if alloc.ClientStatus == structs.AllocClientRunning && alloc.DesiredStatus == structs.AllocDesiredRun && alloc.NodeName == "node-1" {
					n++
				}
			}
			if n != 4 {
				return fmt.Errorf("%d run on node-1", n)
			}
			return nil
		})
	}
	before := harness.AllocStates(t, server)
	clients[0].Start()
	server.WaitReady(2)
	harness.Within(t, 10*time.Second, "the returned node's evaluations", func(ctx context.Context) error {
		evals, _, err := server.API.Evaluations().List(ctx, nil)
		if err != nil {
			return err
		}
		for _, ev := range evals {
			if ev.Status == structs.EvalStatusPending {
				return fmt.Errorf("evaluation %s is pending", ev.ID)
			}
		}
		return nil
	})
	if after := harness.AllocStates(t, server); !maps.Equal(before, after) {
		t.Fatalf("the node's return changed\n%v\nto\n%v", before, after)
	}
}

// TestUnplaceable: the command line says what filtered how many nodes and exits 2;
// the evaluation goes on by itself when a fitting node joins.
func TestUnplaceable(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, harness.Simulate(t, strings.Replace(layouts, "100", "3", 1)))
	a.Start()
	a.WaitReady(3)
	job := func(id, extra, driver string) string {
		return a.JobFile(id, `job "`+id+`" {
  type = "batch"
  `+extra+`
  group "g" {
    task "t" {
      driver = "`+driver+`"
      config { run_for = "10ms" }
    }
  }
}`)
	}
	want := func(path string, parts ...string) {
		t.Helper()
		out, code := a.CLI("job", "run", path)
		if code != 2 {
			t.Errorf("exit code %d, not 2\n%s", code, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("it does not say %q:\n%s", part, out)
			}
		}
	}
	want(job("rack", "constraint {\n    attribute = \"${meta.rack}\"\n    value     = \"r9\"\n  }", "mock_driver"),
		"${meta.rack} = r9", "3 nodes excluded")
	want(job("driver", "", "docker"), "docker", "3 nodes excluded")
	layout := filepath.Join(a.Dir, "more.hcl")
	text := strings.Replace(strings.Replace(layouts, "100", "1", 1), "small", "rack", 1)
	text = strings.Replace(text, "disk   = 200000", "disk   = 200000\n  meta   = { rack = \"r9\" }", 1)
	if err := os.WriteFile(layout, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	more := harness.NewAgent(t, false, "") // a process of its own, that is ended with the test
	more.Args = []string{"sim", "nodes", "-count", "1", "-shape", layout, "-server", a.RPC}
	more.Start()
	a.WaitReady(4)
	a.WaitInStatus("rack", structs.AllocClientComplete, 1, 20*time.Second)
}

// TestPortsAreReal: a task's ports are on its allocation and in its environment.
func TestPortsAreReal(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	path := a.JobFile("ports", `job "ports" {
  group "g" {
    count = 3
    network {
      port "http" {}
    }
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 2
        max_file_size = 1
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "echo port $NOMAD_PORT_http; exec sleep 1000"]
      }
      resources {
        cpu = 20
        memory = 10
      }
    }
  }
}`)
	if out, code := a.CLI("job", "run", path); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	seen := map[int]bool{}
	allocs := a.WaitRunning("ports", 3, 20*time.Second)
	reported := a.PIDs(allocs) // the word before the number differs, the number is the port
	for _, alloc := range allocs {
		ports := alloc.AllocatedResources.Shared.Ports
		if len(ports) != 1 || ports[0].Label != "http" || ports[0].Value < 20000 || seen[ports[0].Value] {
			t.Fatalf("ports of %s: %+v", alloc.ID, ports)
		}
		seen[ports[0].Value] = true
		if reported[alloc.ID] != ports[0].Value {
			t.Errorf("the task of %s was told port %s, its allocation has %d", alloc.ID, strconv.Itoa(reported[alloc.ID]), ports[0].Value)
		}
	}
}

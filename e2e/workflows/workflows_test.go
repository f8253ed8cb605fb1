package workflows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestWorkflowExample runs the workflow of examples/ to its end with real processes: each stage reads what the one before has written.
func TestWorkflowExample(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	dir := filepath.Join(a.Dir, "chip")
	const file = "../../examples/workflows/chip.nomad.hcl"
	harness.CheckOutput(t, a, 0, "workflow validate "+file, `Workflow "chip" is valid: 5 stages, 6 jobs`)
	harness.CheckOutput(t, a, 0, "workflow plan "+file, "synthesis      low, high  2", "Largest stage", "Reserved       max")
	harness.CheckOutput(t, a, 0, "workflow run -var dir="+dir+" "+file, `Stage "rtl": complete after`, `Workflow "chip" is complete`)
	report, err := os.ReadFile(filepath.Join(dir, "report"))
	if want := "chip run 1 stage signoff attempt 1: 60 cells, sum 1830\n"; err != nil || string(report) != want {
		t.Errorf("the report is %q, want %q: %v", report, want, err)
	}
	w, _, err := a.API.Workflows().Info(t.Context(), "chip", nil)
	if err != nil || w.State != structs.WorkflowComplete || len(w.Stages) != 5 {
		t.Fatalf("%+v %v", w, err)
	}
	for i, s := range w.Stages {
		if s.State != structs.StageComplete || s.Start == 0 || s.End < s.Start || i > 0 && s.Start < w.Stages[i-1].End {
			t.Errorf("stage %d: %+v", i, s)
		}
	}
	harness.CheckOutput(t, a, 0, "workflow status chip", "chip run 1  complete  stage 5 of 5", "synthesis [low ✓", " ── place [place ✓", "3 of 3 instances complete")
	harness.CheckOutput(t, a, 0, "workflow list", "chip  default    1    complete  5 of 5 (signoff)  70")
	harness.CheckOutput(t, a, 0, "workflow logs chip signoff", "60 cells, sum 1830")
	harness.CheckOutput(t, a, 0, "job status", "chip/1/place")
	harness.CheckOutput(t, a, 0, "workflow retry -stage route chip", `Workflow "chip" is complete`)
	harness.CheckOutput(t, a, 0, "workflow status chip", "chip run 2  complete", "1    complete  5")
	harness.CheckOutput(t, a, 0, "workflow delete chip")
	harness.CheckOutput(t, a, 0, "workflow status", "No workflows")
}

// stepsWorkflow returns a workflow of stages with one job each, which appends a line to a file and runs a command.
func stepsWorkflow(stages int, command string) string {
	var b strings.Builder
	b.WriteString("variable \"log\" {}\nworkflow \"steps\" {\n")
	for i := range stages {
		fmt.Fprintf(&b, `stage "s%d" {
  job "j%d" {
    group "g" {
      task "t" {
        driver = "raw_exec"
        kill_timeout = "1s"
        config {
          command = "/bin/sh"
          args    = ["-ec", "echo $NOMADISH_WORKFLOW_STAGE $NOMADISH_WORKFLOW_RUN $NOMADISH_WORKFLOW_ATTEMPT >> '${var.log}'; %s"]
        }
      }
    }
  }
}
`, i, i, command)
	}
	return b.String() + "}\n"
}

// stageStarted waits until a stage of a workflow has an attempt.
func stageStarted(t *testing.T, a *harness.Agent, id string, stage int) *structs.WorkflowStatus {
	t.Helper()
	var found *structs.WorkflowStatus
	harness.Within(t, 30*time.Second, fmt.Sprintf("stage %d of workflow %s", stage, id), func(ctx context.Context) error {
		w, _, err := a.API.Workflows().Info(ctx, id, nil)
		if err == nil && w.Stages[stage].State == structs.StageWaiting {
			err = fmt.Errorf("it is %s, stage %d", w.State, w.Stage)
		}
		found = w
		return err
	})
	return found
}

// TestWorkflowCancel: what was cancelled leaves no process, and a paused workflow starts no further stage.
func TestWorkflowCancel(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	log := filepath.Join(a.Dir, "log")
	run := "workflow run -detach -var log=" + log + " "
	harness.CheckOutput(t, a, 0, run+a.JobFile("steps", stepsWorkflow(2, "exec sleep 300")), `Run 1 of workflow "steps" was started`)
	a.WaitRunning("steps/1/j0", 1, 20*time.Second)
	harness.CheckOutput(t, a, 1, run+filepath.Join(a.Dir, "steps.nomad.hcl"), "run 1 has not ended, it is running", "(HTTP 409)")
	harness.CheckOutput(t, a, 1, "workflow delete steps", "run 1 has not ended", "(HTTP 409)")
	harness.CheckOutput(t, a, 0, "workflow cancel steps", `Workflow "steps" is cancelled`)
	a.WaitInStatus("steps/1/j0", structs.AllocClientComplete, 1, 20*time.Second)
	for _, pid := range harness.ProcessesOf(log) {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			t.Errorf("process %d is left: %q", pid, text)
		}
	}
	harness.CheckOutput(t, a, 0, "workflow status steps", "steps run 1  cancelled", "s0 [j0 ✗", "s0 [--------------------] 0 of 1 instance complete  cancelled")
	harness.CheckOutput(t, a, 1, "workflow cancel steps", "run 1 has ended, it is cancelled", "(HTTP 409)")
	jobs, _, err := a.API.Jobs().List(t.Context(), nil)
	if err != nil || len(jobs) != 1 || jobs[0].Status != structs.JobStatusDead {
		t.Errorf("jobs are left: %+v %v", jobs, err)
	}

	harness.CheckOutput(t, a, 0, run+a.JobFile("steps", stepsWorkflow(2, "until test -e '${var.log}.go'; do sleep 0.1; done")), `Run 2 of workflow "steps" was started`)
	stageStarted(t, a, "steps", 0)
	harness.CheckOutput(t, a, 0, "workflow pause steps")
	if err := os.WriteFile(log+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "the first stage to end", func(ctx context.Context) error {
		return harness.TryOutput(a, 0, "workflow status steps", "steps run 2  paused  stage 2 of 2", "s0 [j0 ✓", "s1 [j1]")
	})
	harness.CheckOutput(t, a, 0, "workflow resume steps")
	harness.WaitOutput(t, a, "workflow status steps", "steps run 2  complete", "s1 [j1 ✓")
	text, err := os.ReadFile(log)
	if want := "s0 1 1\ns0 2 1\ns1 2 1\n"; err != nil || string(text) != want {
		t.Errorf("the tasks have written %q, want %q: %v", text, want, err)
	}
}

// TestWorkflowLeaderKilled kills the leader while stages follow each other: each job runs once, in order, to the end.
func TestWorkflowLeaderKilled(t *testing.T) {
	t.Parallel()
	all := harness.StartServers(t, 3, "")
	client := harness.NewAgent(t, false, fmt.Sprintf("name = \"client\"\nclient {\n  enabled = true\n  servers = [%q, %q, %q]\n}\n", all[0].RPC, all[1].RPC, all[2].RPC))
	client.Start()
	client.WaitReady(1)
	const stages = 6
	log := filepath.Join(client.Dir, "log")
	harness.CheckOutput(t, client, 0, "workflow run -detach -var log="+log+" "+client.JobFile("steps", stepsWorkflow(stages, "exec sleep 0.2")))
	for i := 0; i < stages; i += 2 {
		stageStarted(t, client, "steps", i)
		lost := all.Leader(t)
		lost.Kill()
		lost.Start()
		all.WaitFormed(t, len(all))
	}
	harness.Within(t, time.Minute, "the workflow to complete", func(context.Context) error {
		return harness.TryOutput(client, 0, "workflow status steps", "steps run 1  complete")
	})
	var want strings.Builder
	for i := range stages {
		fmt.Fprintf(&want, "s%d 1 1\n", i)
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != want.String() {
		t.Errorf("the tasks have written %q, want %q: %v", text, want.String(), err)
	}
	for i := range stages {
		allocs, _, err := client.API.Jobs().Allocations(t.Context(), fmt.Sprintf("steps/1/j%d", i), true, nil)
		if err != nil || len(allocs) != 1 {
			t.Errorf("job j%d has %d allocations: %v", i, len(allocs), err)
		}
	}
}

// coresWorkflow returns a workflow of a priority with a stage of one job for each number of cores of 1,000 MHz. Each job appends a line to a file, and
// ends when another is there.
func coresWorkflow(name string, priority int, log, ends string, cores ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %q {\npriority = %d\nlend { to = \"namespace:default\" }\n", name, priority)
	for i, n := range cores {
		fmt.Fprintf(&b, `stage "s%d" {
  job "j%d" {
    group "g" {
      task "t" {
        driver = "raw_exec"
        config {
          command = "/bin/sh"
          args    = ["-ec", "echo %s %d >> '%s'; until test -e '%s'; do sleep 0.05; done"]
        }
        resources {
          cpu    = %d
          memory = 100
        }
      }
    }
  }
}
`, i, i, name, i, log, ends, 1000*n)
	}
	return b.String() + "}\n"
}

// TestWorkflowsInOrder: of three workflows that each need all of the cluster the one of the highest priority goes first, and each runs whole; two that need
// half of it each run side by side.
func TestWorkflowsInOrder(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  cpu_total_compute = 8000\n  memory_total_mb = 8000\n}\n")
	log, ends := filepath.Join(a.Dir, "log"), filepath.Join(a.Dir, "ends")
	first := filepath.Join(a.Dir, "first")
	harness.CheckOutput(t, a, 0, "workflow run -detach "+a.JobFile("now", coresWorkflow("now", 90, log, first, 8)))
	a.WaitRunning("now/1/j0", 1, 20*time.Second)
	for i, name := range []string{"low", "middle", "high"} {
		harness.CheckOutput(t, a, 0, "workflow run -detach "+a.JobFile(name, coresWorkflow(name, 30+20*i, log, ends, 8, 4)))
	}
	harness.WaitOutput(t, a, "queue", "Workflows that wait for their reservation", "high      default    default  70", "middle    default    default  50", "low       default    default  30")
	for _, file := range []string{ends, first} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	harness.WaitOutput(t, a, "workflow status low", "low run 1  complete")
	text, err := os.ReadFile(log)
	if want := "now 0\nhigh 0\nhigh 1\nmiddle 0\nmiddle 1\nlow 0\nlow 1\n"; err != nil || string(text) != want {
		t.Errorf("they ran in the order %q, want %q: %v", text, want, err)
	}

	for _, name := range []string{"left", "right"} {
		harness.CheckOutput(t, a, 0, "workflow run -detach "+a.JobFile(name, coresWorkflow(name, 50, log, filepath.Join(a.Dir, "never"), 4)))
	}
	for _, name := range []string{"left", "right"} {
		a.WaitRunning(name+"/1/j0", 1, 20*time.Second)
		harness.CheckOutput(t, a, 0, "workflow status "+name, "reserved 4000 MHz")
		harness.CheckOutput(t, a, 0, "topology", "reserved by workflow "+name+": 4000 MHz, 100 MiB, 300 MiB of disk   used 4000 MHz, 100 MiB, 300 MiB of disk  lent 0  idle 0")
		live, err := a.Live(t.Context(), name+"/1/j0")
		if err != nil || len(live) != 1 {
			t.Fatalf("%d allocations of %s: %v", len(live), name, err)
		}
		harness.CheckOutput(t, a, 0, "alloc status "+live[0].ID, "guaranteed (reserved by workflow default/"+name+")")
		harness.CheckOutput(t, a, 0, "workflow cancel "+name)
	}
}

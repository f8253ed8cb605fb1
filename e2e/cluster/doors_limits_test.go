package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// limitsJob is a job of one group with one task that a shell runs, with a memory limit in MB. It is not started again.
func limitsJob(id, kind string, memory int, command string) *nomad.Job {
	job := harness.OfficialJob(id, command)
	job.Type = harness.Ptr(kind)
	g := job.TaskGroups[0]
	g.Tasks[0].Resources.MemoryMB = harness.Ptr(memory)
	g.Tasks[0].KillTimeout = harness.Ptr(5 * time.Second)
	g.RestartPolicy = &nomad.RestartPolicy{Attempts: harness.Ptr(0), Mode: harness.Ptr("fail")}
	g.ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: harness.Ptr(0), Unlimited: harness.Ptr(false)}
	return job
}

// rawExecLimits is what the only node says of the limits that raw_exec enforces.
func rawExecLimits(a *harness.Agent) (limits, reason string) {
	a.T.Helper()
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		a.T.Fatalf("%d nodes, %v", len(nodes), err)
	}
	node, _, err := a.Nomad.Nodes().Info(nodes[0].ID, nil)
	if err != nil {
		a.T.Fatal(err)
	}
	return node.Attributes["driver.raw_exec.limits"], node.Attributes["driver.raw_exec.limits_reason"]
}

// terminated waits until an allocation's task has ended and returns the event that says how.
func terminated(a *harness.Agent, allocID string) *nomad.TaskEvent {
	a.T.Helper()
	var event *nomad.TaskEvent
	harness.Within(a.T, 20*time.Second, "the end of the task of "+allocID, func(context.Context) error {
		alloc, _, err := a.Nomad.Allocations().Info(allocID, nil)
		if err != nil {
			return err
		}
		state := alloc.TaskStates["t"]
		if state == nil {
			return fmt.Errorf("the allocation is %s and has no task yet", alloc.ClientStatus)
		}
		for _, e := range state.Events {
			if e.Type == structs.TaskTerminated {
				event = e
				return nil
			}
		}
		return fmt.Errorf("the task is %s, with %d events", state.State, len(state.Events))
	})
	return event
}

// submitOne registers a job and returns the ID of its only allocation once there is one.
func submitOne(a *harness.Agent, job *nomad.Job) string {
	a.T.Helper()
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		a.T.Fatal(err)
	}
	id := ""
	harness.Within(a.T, 20*time.Second, "an allocation of "+*job.ID, func(context.Context) error {
		allocs, _, err := a.Nomad.Jobs().Allocations(*job.ID, true, nil)
		if err != nil || len(allocs) != 1 {
			return fmt.Errorf("%d allocations, %w", len(allocs), err)
		}
		id = allocs[0].ID
		return nil
	})
	return id
}

// TestDoorLimits: a task of raw_exec gets no more memory and processes than its job and its node allow. One that takes more ends
// alone, with an event that names the limit, and nothing that it has started outlives it.
func TestDoorLimits(t *testing.T) {
	t.Parallel()
	const maxProcesses = 200
	a := harness.StartDev(t, fmt.Sprintf("plugin \"raw_exec\" {\n  config {\n    pids_limit = %d\n  }\n}\n", maxProcesses))
	limits, reason := rawExecLimits(a)
	if limits != "memory,pids,cpu" {
		if os.Geteuid() == 0 && limits == "" {
			t.Fatalf("the node does not say what it limits")
		}
		t.Logf("this machine limits %q: %s", limits, reason)
		if reason == "" {
			t.Errorf("the node limits %q and does not say why no more", limits)
		}
	}
	neighbour := submitOne(a, limitsJob("neighbour", "service", 20, "exec sleep 1000"))
	a.WaitRunning("neighbour", 1, 10*time.Second)
	// The first process of both tasks would live on if only the one that took too much were ended.
	const spawn = `i=0; while [ $i -lt 2000 ]; do sleep 1000 & i=$((i+1)); done; echo all of them; wait`
	for _, c := range []struct {
		name, needs, command, says string
		memory                     int
		oom                        bool
	}{
		{"memory", "memory", "head -c 400000000 /dev/zero | tail | wc -c; sleep 1000", "memory limit of 20 MiB", 20, true},
		{"processes", "pids", spawn, fmt.Sprintf("limit of %d processes", maxProcesses), 300, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(limits, c.needs) {
				t.Logf("not limited on this machine: %s", reason) // as the node says, and TestDoorNoLimits has planned
				return
			}
			id := submitOne(a, limitsJob(c.name, "batch", c.memory, c.command))
			event := terminated(a, id)
			if got := event.Details["oom_killed"] == "true"; got != c.oom {
				t.Errorf("oom_killed is %q: %+v", event.Details["oom_killed"], event)
			}
			if c.oom && (event.ExitCode != 137 || event.Signal != int(syscall.SIGKILL)) {
				t.Errorf("exit code %d, signal %d, want 137 and 9", event.ExitCode, event.Signal)
			}
			if !strings.Contains(event.DisplayMessage, c.says) {
				t.Errorf("the event says %q, want it to name the %s", event.DisplayMessage, c.says)
			}
			a.WaitInStatus(c.name, structs.AllocClientFailed, 1, 10*time.Second)
			if out, _ := a.CLI("alloc", "logs", id); strings.Contains(out, "all of them") {
				t.Errorf("2,000 processes were started")
			}
			harness.Within(t, 10*time.Second, "the removal of its control groups", func(context.Context) error {
				if left := harness.CgroupsNamed(id); len(left) > 0 {
					return fmt.Errorf("%q", left)
				}
				return nil
			})
			a.WaitRunning("neighbour", 1, 10*time.Second)
		})
	}
	for _, group := range []string{"unified", "/"} {
		refusesCgroup(t, a, group, "allow_cgroup_override = true")
	}
	if limits != "none" && len(harness.CgroupsNamed(neighbour)) == 0 {
		t.Errorf("a running task has no control group")
	}
	if out, _ := a.CLI("job", "plan", a.JobFile("plan", sleepJob("plan"))); limits == "memory,pids,cpu" && strings.Contains(out, "do not limit") {
		t.Errorf("job plan warns where there are limits:\n%s", out)
	}
	if _, _, err := a.Nomad.Jobs().Deregister("neighbour", false, nil); err != nil {
		t.Fatal(err)
	}
	a.WaitInStatus("neighbour", structs.AllocClientComplete, 1, 10*time.Second)
}

// refusesCgroup checks that a task that names a control group to run in does not run, and that its events say what.
func refusesCgroup(t *testing.T, a *harness.Agent, group, says string) {
	t.Helper()
	task := harness.ShellTask{Script: "echo ran", Config: map[string]any{"cgroup_v2_override": group}}
	if os.Geteuid() == 0 {
		task.User = "nobody"
		harness.OpenDataDir(t, a)
	}
	o := harness.RunShellJob(t, a, "in-"+strings.ReplaceAll(group, "/", "root"), map[string]harness.ShellTask{"t": task})
	if o.Status != structs.AllocClientFailed || !strings.Contains(o.Events, says) || strings.Contains(o.Out["t"], "ran") {
		t.Errorf("cgroup_v2_override = %q: %s, want it refused with %q:\n%s", group, o.Status, says, o.Events)
	}
}

// TestDoorDaemon: what a task has started ends with it, also if it has left the task's session and emptied its environment.
func TestDoorDaemon(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	limits, reason := rawExecLimits(a)
	pidFile := filepath.Join(t.TempDir(), "pid")
	daemon := fmt.Sprintf("(setsid env -i /bin/sh -c 'echo $$ > %s.new; mv %[1]s.new %[1]s; exec sleep 1000' &) ; exec sleep 1000", pidFile)
	submitOne(a, limitsJob("daemon", "service", 20, daemon))
	var pid int
	harness.Within(t, 10*time.Second, "the daemon", func(context.Context) error {
		text, err := os.ReadFile(pidFile)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has ended if the test passes
	if _, _, err := a.Nomad.Jobs().Deregister("daemon", false, nil); err != nil {
		t.Fatal(err)
	}
	a.WaitInStatus("daemon", structs.AllocClientComplete, 1, 10*time.Second)
	left := func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && strings.HasPrefix(string(text), "sleep")
	}()
	if limited := limits != "none"; limited == left {
		t.Errorf("limits are %q (%s); the daemon is left: %v", limits, reason, left)
	}
}

func sleepJob(id string) string {
	return fmt.Sprintf(`job %q {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`, id)
}

// TestDoorNoLimits: a node that does not limit its tasks says so and why, its tasks run all the same, and who plans a job is warned.
func TestDoorNoLimits(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "plugin \"raw_exec\" {\n  config {\n    no_cgroups = true\n    allow_cgroup_override = true\n  }\n}\n")
	limits, reason := rawExecLimits(a)
	if limits != "none" || !strings.Contains(reason, "no_cgroups") {
		t.Errorf("limits %q, reason %q", limits, reason)
	}
	out, code := a.CLI("job", "plan", a.JobFile("plan", sleepJob("plan")))
	if code != 1 {
		t.Errorf("job plan: exit %d\n%s", code, out)
	}
	for _, want := range []string{`group "g": 1 of 1 nodes that could run it do not limit`, "memory", "no_cgroups"} {
		if !strings.Contains(out, want) {
			t.Errorf("job plan does not say %q:\n%s", want, out)
		}
	}
	id := submitOne(a, limitsJob("free", "batch", 20, "head -c 60000000 /dev/zero | tail | wc -c"))
	if event := terminated(a, id); event.ExitCode != 0 {
		t.Errorf("without limits: %+v", event)
	}
	if left := harness.CgroupsNamed(id); len(left) > 0 {
		t.Errorf("control groups %q", left)
	}
	refusesCgroup(t, a, "no-such-group", "open /sys/fs/cgroup/no-such-group") // by the machine: the node allows it
}

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/structs"
)

// limitsJob is a job of one group with one task that a shell runs, with a memory limit in MB. It is not started again.
func limitsJob(id, kind string, memory int, command string) *nomad.Job {
	job := officialJob(id, command)
	job.Type = ptr(kind)
	g := job.TaskGroups[0]
	g.Tasks[0].Resources.MemoryMB = ptr(memory)
	g.Tasks[0].KillTimeout = ptr(5 * time.Second)
	g.RestartPolicy = &nomad.RestartPolicy{Attempts: ptr(0), Mode: ptr("fail")}
	g.ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: ptr(0), Unlimited: ptr(false)}
	return job
}

// rawExecLimits is what the only node says of the limits that raw_exec enforces.
func (a *agent) rawExecLimits() (limits, reason string) {
	a.t.Helper()
	nodes, _, err := a.nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		a.t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	node, _, err := a.nomad.Nodes().Info(nodes[0].ID, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return node.Attributes["driver.raw_exec.limits"], node.Attributes["driver.raw_exec.limits_reason"]
}

// terminated waits until an allocation's task has ended and returns the event that says how.
func (a *agent) terminated(allocID string) *nomad.TaskEvent {
	a.t.Helper()
	var event *nomad.TaskEvent
	within(a.t, 20*time.Second, "the end of the task of "+allocID, func(context.Context) error {
		alloc, _, err := a.nomad.Allocations().Info(allocID, nil)
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
func (a *agent) submitOne(job *nomad.Job) string {
	a.t.Helper()
	if _, _, err := a.nomad.Jobs().Register(job, nil); err != nil {
		a.t.Fatal(err)
	}
	id := ""
	within(a.t, 20*time.Second, "an allocation of "+*job.ID, func(context.Context) error {
		allocs, _, err := a.nomad.Jobs().Allocations(*job.ID, true, nil)
		if err != nil || len(allocs) != 1 {
			return fmt.Errorf("%d allocations, %w", len(allocs), err)
		}
		id = allocs[0].ID
		return nil
	})
	return id
}

// cgroupsNamed lists the control groups whose path holds a word.
func cgroupsNamed(word string) []string {
	var out []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, word) {
			out = append(out, path)
		}
		return nil // a group that went away meanwhile is none
	})
	return out
}

// TestDoorLimits: a task of raw_exec gets no more memory and processes than its job and its node allow. One that takes more ends
// alone, with an event that names the limit, and nothing that it has started outlives it.
func TestDoorLimits(t *testing.T) {
	t.Parallel()
	const maxProcesses = 200
	a := startDev(t, fmt.Sprintf("plugin \"raw_exec\" {\n  config {\n    pids_limit = %d\n  }\n}\n", maxProcesses))
	limits, reason := a.rawExecLimits()
	if limits != "memory,pids,cpu" {
		if os.Geteuid() == 0 && limits == "" {
			t.Fatalf("the node does not say what it limits")
		}
		t.Logf("this machine limits %q: %s", limits, reason)
		if reason == "" {
			t.Errorf("the node limits %q and does not say why no more", limits)
		}
	}
	neighbour := a.submitOne(limitsJob("neighbour", "service", 20, "exec sleep 1000"))
	a.running("neighbour", 1, 10*time.Second)
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
			id := a.submitOne(limitsJob(c.name, "batch", c.memory, c.command))
			event := a.terminated(id)
			if got := event.Details["oom_killed"] == "true"; got != c.oom {
				t.Errorf("oom_killed is %q: %+v", event.Details["oom_killed"], event)
			}
			if c.oom && (event.ExitCode != 137 || event.Signal != int(syscall.SIGKILL)) {
				t.Errorf("exit code %d, signal %d, want 137 and 9", event.ExitCode, event.Signal)
			}
			if !strings.Contains(event.DisplayMessage, c.says) {
				t.Errorf("the event says %q, want it to name the %s", event.DisplayMessage, c.says)
			}
			a.inStatus(c.name, structs.AllocClientFailed, 1, 10*time.Second)
			if out, _ := a.cli("alloc", "logs", id); strings.Contains(out, "all of them") {
				t.Errorf("2,000 processes were started")
			}
			within(t, 10*time.Second, "the removal of its control groups", func(context.Context) error {
				if left := cgroupsNamed(id); len(left) > 0 {
					return fmt.Errorf("%q", left)
				}
				return nil
			})
			a.running("neighbour", 1, 10*time.Second)
		})
	}
	for _, group := range []string{"unified", "/"} {
		a.refusesCgroup(t, group, "allow_cgroup_override = true")
	}
	if limits != "none" && len(cgroupsNamed(neighbour)) == 0 {
		t.Errorf("a running task has no control group")
	}
	if out, _ := a.cli("job", "plan", a.job("plan", sleepJob("plan"))); limits == "memory,pids,cpu" && strings.Contains(out, "do not limit") {
		t.Errorf("job plan warns where there are limits:\n%s", out)
	}
	if _, _, err := a.nomad.Jobs().Deregister("neighbour", false, nil); err != nil {
		t.Fatal(err)
	}
	a.inStatus("neighbour", structs.AllocClientComplete, 1, 10*time.Second)
}

// refusesCgroup checks that a task that names a control group to run in does not run, and that its events say what.
func (a *agent) refusesCgroup(t *testing.T, group, says string) {
	t.Helper()
	task := doorTask{script: "echo ran", config: map[string]any{"cgroup_v2_override": group}}
	if os.Geteuid() == 0 {
		task.user = "nobody"
		openTo(t, a)
	}
	o := runDoor(t, a, "in-"+strings.ReplaceAll(group, "/", "root"), map[string]doorTask{"t": task})
	if o.status != structs.AllocClientFailed || !strings.Contains(o.events, says) || strings.Contains(o.out["t"], "ran") {
		t.Errorf("cgroup_v2_override = %q: %s, want it refused with %q:\n%s", group, o.status, says, o.events)
	}
}

// TestDoorDaemon: what a task has started ends with it, also if it has left the task's session and emptied its environment.
func TestDoorDaemon(t *testing.T) {
	t.Parallel()
	a := startDev(t, "")
	limits, reason := a.rawExecLimits()
	pidFile := filepath.Join(t.TempDir(), "pid")
	daemon := fmt.Sprintf("(setsid env -i /bin/sh -c 'echo $$ > %s.new; mv %[1]s.new %[1]s; exec sleep 1000' &) ; exec sleep 1000", pidFile)
	a.submitOne(limitsJob("daemon", "service", 20, daemon))
	var pid int
	within(t, 10*time.Second, "the daemon", func(context.Context) error {
		text, err := os.ReadFile(pidFile)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has ended if the test passes
	if _, _, err := a.nomad.Jobs().Deregister("daemon", false, nil); err != nil {
		t.Fatal(err)
	}
	a.inStatus("daemon", structs.AllocClientComplete, 1, 10*time.Second)
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
	a := startDev(t, "plugin \"raw_exec\" {\n  config {\n    no_cgroups = true\n    allow_cgroup_override = true\n  }\n}\n")
	limits, reason := a.rawExecLimits()
	if limits != "none" || !strings.Contains(reason, "no_cgroups") {
		t.Errorf("limits %q, reason %q", limits, reason)
	}
	out, code := a.cli("job", "plan", a.job("plan", sleepJob("plan")))
	if code != 1 {
		t.Errorf("job plan: exit %d\n%s", code, out)
	}
	for _, want := range []string{`group "g": 1 of 1 nodes that could run it do not limit`, "memory", "no_cgroups"} {
		if !strings.Contains(out, want) {
			t.Errorf("job plan does not say %q:\n%s", want, out)
		}
	}
	id := a.submitOne(limitsJob("free", "batch", 20, "head -c 60000000 /dev/zero | tail | wc -c"))
	if event := a.terminated(id); event.ExitCode != 0 {
		t.Errorf("without limits: %+v", event)
	}
	if left := cgroupsNamed(id); len(left) > 0 {
		t.Errorf("control groups %q", left)
	}
	a.refusesCgroup(t, "no-such-group", "open /sys/fs/cgroup/no-such-group") // by the machine: the node allows it
}

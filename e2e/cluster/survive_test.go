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

// TestTaskEndsWhileAgentIsAway: the agent comes back and reports the true exit code, and the log is complete.
func TestTaskEndsWhileAgentIsAway(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	a.Start()
	a.WaitReady(1)
	gate := filepath.Join(a.Dir, "gate")
	job := harness.OfficialJob("away", fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done; echo last words; exit 7", gate))
	job.Type = harness.Ptr("batch")
	job.TaskGroups[0].RestartPolicy = &nomad.RestartPolicy{Attempts: harness.Ptr(0), Mode: harness.Ptr("fail")}
	job.TaskGroups[0].ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: harness.Ptr(0), Unlimited: harness.Ptr(false)}
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	id := a.WaitRunning("away", 1, 10*time.Second)[0].ID
	a.Kill()
	before := len(harness.ProcessesOf(a.Dir))
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 10*time.Second, "the task's end", func(context.Context) error {
		if now := harness.ProcessesOf(a.Dir); len(now) >= before {
			return fmt.Errorf("processes %v", now)
		}
		return nil
	})
	a.Start()
	a.WaitReady(1)
	a.WaitInStatus("away", structs.AllocClientFailed, 1, 15*time.Second)
	alloc, _, err := a.Nomad.Allocations().Info(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, e := range alloc.TaskStates["t"].Events {
		told = told || e.Type == "Terminated" && e.ExitCode == 7
	}
	if !told {
		t.Errorf("no event tells of exit code 7: %+v", alloc.TaskStates["t"])
	}
	if out, code := a.CLI("alloc", "logs", id); code != 0 || out != "last words\n" {
		t.Errorf("alloc logs: exit %d, %q", code, out)
	}
}

// TestLeave: SIGTERM ends an agent with exit code 0 and leaves its tasks be; a dev agent takes all of them away.
func TestLeave(t *testing.T) {
	t.Parallel()
	f := func(dev bool, config string) int {
		t.Helper()
		a := harness.NewAgent(t, dev, config)
		a.Start()
		a.WaitReady(1)
		if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("left", "exec sleep 1000"), nil); err != nil {
			t.Fatal(err)
		}
		a.WaitRunning("left", 1, 10*time.Second)
		sleeping := func() (n int) {
			for _, pid := range harness.ProcessesOf(a.Dir) {
				if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && strings.HasPrefix(string(text), "sleep") {
					n++
				}
			}
			return n
		}
		harness.Within(t, 10*time.Second, "the task's shell to become sleep", func(context.Context) error { // it runs before it is that
			if n := sleeping(); n != 1 {
				return fmt.Errorf("%d processes are sleep", n)
			}
			return nil
		})
		if err := a.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-a.Exited:
			if err != nil {
				t.Errorf("dev %v: SIGTERM: %v", dev, err)
			}
			a.Exited <- err // for cleanup
		case <-time.After(harness.Scaled(harness.EndsWithin)):
			t.Fatalf("dev %v: it does not end on SIGTERM", dev)
		}
		return sleeping()
	}
	if n := f(false, harness.ServerAndClient); n != 1 {
		t.Errorf("%d tasks outlive the agent, want the one", n)
	}
	if n := f(true, ""); n != 0 {
		t.Errorf("%d tasks outlive a dev agent, want none", n)
	}
}

// TestReload: SIGHUP reloads the log level and keeps the agent at work.
func TestReload(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	file := filepath.Join(a.Dir, "more.hcl")
	if err := os.WriteFile(file, []byte("log_level = \"ERROR\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 10*time.Second, "a quiet log", func(context.Context) error {
		before := a.Log.Tail(1)
		if _, err := a.Nomad.Status().Leader(); err != nil {
			return err
		}
		if after := a.Log.Tail(1); strings.Contains(a.Log.Tail(2), "/v1/status/leader") && before != after {
			return fmt.Errorf("it still logs requests: %q", after)
		}
		return nil
	})
}

// TestReturnedNodeStops: an agent that was cut off while its tasks went on has lost them to another node; when it comes back
// it stops each of them, once.
func TestReturnedNodeStops(t *testing.T) {
	t.Parallel()
	server := harness.NewAgent(t, false, "name = \"server\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n  min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"1s\"\n}\n")
	server.Start()
	server.WaitReady(0)
	client := func(name string, n int) *harness.Agent {
		c := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n}\n", name, server.RPC))
		c.Start()
		server.WaitReady(n)
		return c
	}
	first := client("first", 1)
	job := harness.OfficialJob("kept", "exec sleep 1000")
	job.TaskGroups[0].Count = harness.Ptr(3)
	if _, _, err := server.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	old := server.WaitRunning("kept", 3, 15*time.Second)
	second := client("second", 2)

	first.Kill() // its tasks go on
	harness.Within(t, harness.LostWithin, "three on the second node", func(context.Context) error {
		if n := harness.SleepTasks(second); n != 3 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if n := harness.SleepTasks(first); n != 3 {
		t.Fatalf("%d tasks of the killed agent go on, want 3", n)
	}
	first.Start()
	server.WaitReady(2)
	harness.Within(t, 20*time.Second, "the returned node stopping what it lost", func(context.Context) error {
		if n := harness.SleepTasks(first); n != 0 {
			return fmt.Errorf("%d go on", n)
		}
		return nil
	})
	if n := harness.SleepTasks(second); n != 3 {
		t.Errorf("%d tasks on the second node after the first's return, want 3", n)
	}
	for _, stub := range old {
		alloc, _, err := server.Nomad.Allocations().Info(stub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		kills := 0
		for _, e := range alloc.TaskStates["t"].Events {
			if e.Type == "Killed" {
				kills++
			}
		}
		if alloc.DesiredStatus != "stop" || kills > 1 {
			t.Errorf("allocation %s: wanted %s, is %s, killed %d times", alloc.ID, alloc.DesiredStatus, alloc.ClientStatus, kills)
		}
	}
	if all := len(harness.AllocStates(t, server)); all != 6 {
		t.Errorf("%d allocations in all, want the 3 lost and the 3 in their place", all)
	}
}

// TestDisconnectedNode: work that is to outlive a lost connection goes on while another stands for it, and goes on as it was
// when its node is back; the other is stopped then.
func TestDisconnectedNode(t *testing.T) {
	t.Parallel()
	server := harness.NewAgent(t, false, "name = \"server\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n")
	server.Start()
	clients := map[string]*harness.Agent{}
	for i := range 2 {
		name := "client-" + strconv.Itoa(i)
		c := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n}\n", name, server.RPC))
		c.Start()
		clients[name] = c
	}
	server.WaitReady(2)
	job := server.JobFile("stays", `job "stays" {
  group "g" {
    disconnect {
      lost_after = "1h"
      reconcile  = "keep_original"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "exec sleep 1000"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}`)
	if out, code := server.CLI("job", "run", job); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	} else if strings.Contains(out, "disconnect") {
		t.Errorf("a warning of what works:\n%s", out)
	}
	// is tells how the job's allocations are, by node.
	is := func() map[string]structs.AllocListStub {
		list, _, err := server.API.Jobs().Allocations(t.Context(), "stays", false, nil)
		if err != nil {
			return nil
		}
		by := map[string]structs.AllocListStub{}
		for _, a := range list {
			by[a.NodeName] = *a
		}
		return by
	}
	first, other := "", ""
	harness.Within(t, 20*time.Second, "the job running", func(context.Context) error {
		for name, a := range is() {
			if a.ClientStatus == structs.AllocClientRunning {
				first = name
				return nil
			}
		}
		return fmt.Errorf("%+v", is())
	})
	other = "client-" + strconv.Itoa(1-int(first[len(first)-1]-'0'))
	id := is()[first].ID
	pid := clients[first].Cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	harness.Within(t, harness.LostWithin, "another standing for it", func(context.Context) error {
		if a := is(); a[first].ClientStatus != structs.AllocClientUnknown || a[other].ClientStatus != structs.AllocClientRunning {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	if out, _ := server.CLI("node", "status"); !strings.Contains(out, structs.NodeStatusDisconnected) {
		t.Errorf("no node is disconnected:\n%s", out)
	}
	if out, _ := server.CLI("job", "status", "stays"); !strings.Contains(out, structs.AllocClientUnknown) {
		t.Errorf("job status does not say that it is unknown:\n%s", out)
	}
	if n := harness.SleepTasks(clients[first]); n != 1 {
		t.Errorf("%d tasks go on where nobody hears of them, want 1", n)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 60*time.Second, "the first running, the other stopped", func(context.Context) error {
		a := is()
		if a[first].ClientStatus != structs.AllocClientRunning || !structs.TerminalClientStatus(a[other].ClientStatus) {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	if a := is()[first]; a.ID != id || a.DesiredStatus != structs.AllocDesiredRun || a.TaskStates["t"].Restarts != 0 {
		t.Errorf("the first: %+v", a)
	}
	if a, b := harness.SleepTasks(clients[first]), harness.SleepTasks(clients[other]); a != 1 || b != 0 {
		t.Errorf("%d and %d tasks, want 1 and none", a, b)
	}
}

//go:build netns

package net

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// run registers a job of sleeping tasks and waits until all run.
func run(a *harness.Agent, job string, count int) []*structs.AllocListStub {
	a.T.Helper()
	if out, code := a.CLI("job", "run", "-detach", a.JobFile(job, restful(job, count))); code != 0 {
		a.T.Fatalf("job run: exit %d\n%s", code, out)
	}
	return a.WaitRunning(job, count, 30*time.Second)
}

// soundly waits until the tasks of all agents are n: one that runs, as its node says, is a shell yet for a moment.
func soundly(t *testing.T, n int, agents ...*harness.Agent) {
	t.Helper()
	harness.Within(t, 30*time.Second, fmt.Sprintf("%d tasks on the machines", n), func(context.Context) error {
		found := 0
		for _, a := range agents {
			found += harness.SleepTasks(a)
		}
		if found != n {
			return fmt.Errorf("there are %d", found)
		}
		return nil
	})
}

// nodeStatus waits until a node, by its name, is in a status.
func nodeStatus(a *harness.Agent, name, status string, limit time.Duration) {
	a.T.Helper()
	harness.Within(a.T, limit, name+" being "+status, func(ctx context.Context) error {
		nodes, _, err := a.API.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if n.Name == name && n.Status == status {
				return nil
			}
		}
		return fmt.Errorf("the nodes are %s", nodesText(nodes))
	})
}

func nodesText(nodes []*structs.NodeListStub) string {
	var s []string
	for _, n := range nodes {
		s = append(s, n.Name+" "+n.Status)
	}
	return strings.Join(s, ", ")
}

// TestNetClientKilled: a client that is killed, at default settings, has its work running elsewhere soon. How soon is
// logged, from the kill.
func TestNetClientKilled(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 4)
	server, clients := w.serverAndClients(plainServer)
	allocs := run(server, "moved", 6)
	victim := 0
	for i, c := range clients {
		if harness.SleepTasks(c) > harness.SleepTasks(clients[victim]) {
			victim = i
		}
	}
	name := fmt.Sprintf("node-%d", victim+1)
	killed := time.Now()
	clients[victim].Kill()
	harness.Within(t, harness.LostWithin, "the work of the dead elsewhere", func(ctx context.Context) error {
		now, _, err := server.API.Jobs().Allocations(ctx, "moved", true, nil)
		if err != nil {
			return err
		}
		elsewhere := 0
		for _, a := range now {
			if a.NodeName != name && a.ClientStatus == structs.AllocClientRunning && a.DesiredStatus == structs.AllocDesiredRun {
				elsewhere++
			}
		}
		if elsewhere != len(allocs) {
			return fmt.Errorf("%d of %d", elsewhere, len(allocs))
		}
		return nil
	})
	t.Logf("FIGURE client killed -9, its work runs elsewhere at default settings: %v", time.Since(killed).Round(time.Millisecond))
}

// TestNetServerBack: a server that is killed and started again, and one that is stopped for a while, find their clients and
// the tasks that went on; nothing is started anew. What was acknowledged is there.
func TestNetServerBack(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server, clients := w.serverAndClients(plainServer)
	before := run(server, "lasting", 4)
	r := newRegisters(t, "register", 3, server)
	stop := r.load(4)
	same := func() {
		t.Helper()
		server.WaitReady(2)
		after := server.WaitRunning("lasting", 4, 30*time.Second)
		ids := map[string]bool{}
		for _, a := range before {
			ids[a.ID] = true
		}
		for _, a := range after {
			if !ids[a.ID] {
				t.Errorf("allocation %s was started anew", a.ID)
			}
		}
		soundly(t, 4, clients...)
	}
	acked := func(what string) {
		t.Helper()
		since := r.now()
		harness.Within(t, 60*time.Second, what, func(context.Context) error {
			if r.acked.Load() < since {
				return fmt.Errorf("no write acknowledged")
			}
			return nil
		})
	}
	acked("writes before")
	server.Kill()
	soundly(t, 4, clients...)
	server.Start()
	same()
	acked("writes after the restart")

	resume := pause(server)
	time.Sleep(long(3*time.Second, 30*time.Second))
	soundly(t, 4, clients...)
	resume()
	same()
	acked("writes after the pause")
	stop()
	r.judge()
}

// TestNetBadLinks: with a fifth of the packets lost and 50 ms each way, writes are slow or of unknown outcome, and what is
// acknowledged is there.
func TestNetBadLinks(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server := w.hosts[0].agent("server", plainServer)
	server.Start()
	client := w.hosts[1].agent("node-1", fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n", server.RPC))
	client.Start()
	server.WaitReady(1)
	// a client's agent forwards requests while the network fails
	r := newRegisters(t, "register", 3, server, client)
	clear := w.hosts[1].lossy(20)
	still := w.hosts[1].relay(badLinks{delay: 50 * time.Millisecond, reorder: 5})
	stop := r.load(6)
	time.Sleep(long(6*time.Second, 60*time.Second))
	stop()
	clear()
	still()
	r.judge()
	run(server, "after", 2)
}

// TestNetClientDiskFull: a client with a full disk says so and goes on; when there is room again, so is work.
func TestNetClientDiskFull(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server := w.hosts[0].agent("server", plainServer)
	server.Start()
	d := newDisk(t, 64)
	small := w.hosts[1].agent("node-1", fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n%s", server.RPC, d.config()))
	other := w.hosts[2].agent("node-2", fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n", server.RPC))
	small.Start()
	other.Start()
	server.WaitReady(2)
	run(server, "before", 4)
	chatty := strings.ReplaceAll(restful("chatty", 1), "echo here; exec sleep 1000", "while :; do echo here and there and everywhere; sleep 0.01; done")
	chatty = strings.Replace(chatty, "group \"g\" {", "constraint {\n attribute = \"${node.unique.name}\"\n value = \"node-1\"\n }\n group \"g\" {", 1)
	if out, code := server.CLI("job", "run", "-detach", server.JobFile("chatty", chatty)); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	server.WaitRunning("chatty", 1, 30*time.Second)
	onDisk := &harness.Agent{Dir: d.dir} // where the tasks of the first lie
	soundly(t, 4, onDisk, other)
	tasks := harness.SleepTasks(onDisk)
	free := d.fill()
	filled := time.Now()
	waitDiskFull(t, server, "node-1", true)
	t.Logf("FIGURE client's disk full → servers and tasks know: %v", time.Since(filled).Round(time.Millisecond))
	for _, a := range run(server, "meanwhile", 4) {
		if a.NodeName != "node-2" {
			t.Errorf("an instance was placed on the node with the full disk")
		}
	}
	small.Kill() // a later life finds all, with the disk still full
	small.Start()
	harness.Within(t, 60*time.Second, "the agent that starts on a full disk serving", func(ctx context.Context) error {
		_, _, err := small.API.Nodes().List(ctx, nil)
		return err
	})
	server.WaitReady(2)
	server.WaitRunning("before", 4, 30*time.Second)
	if n := harness.SleepTasks(onDisk); n != tasks {
		t.Errorf("%d tasks run on the machine with the full disk, before it was %d", n, tasks)
	}
	if out, code := server.CLI("node", "status"); code != 0 || !strings.Contains(out, "node-1 takes no new work: the disk of ") {
		t.Errorf("node status: exit %d\n%s", code, out)
	}
	select {
	case err := <-small.Exited:
		small.Exited <- err // for cleanup
		t.Errorf("the agent with the full disk ended: %v\n%s", err, small.Log.Tail(20))
	default:
	}
	free()
	waitDiskFull(t, server, "node-1", false)
	for _, a := range server.WaitRunning("chatty", 1, 30*time.Second) {
		if s := a.TaskStates["t"]; s.Restarts > 0 || s.Failed {
			t.Errorf("the task that writes all the time was restarted: %+v", s)
		}
	}
	run(server, "after", 4)
}

// waitDiskFull waits until a node is known to have a full disk, by what the servers say of it, its events, and those of a
// task of the job chatty on it; or to have room again.
func waitDiskFull(t *testing.T, a *harness.Agent, name string, want bool) {
	t.Helper()
	ofNode, ofTask := "The disk is full; the node accepts no new allocations", structs.TaskDiskFull
	if !want {
		ofNode, ofTask = "The disk has room again", structs.TaskDiskHasRoom
	}
	harness.Within(t, 30*time.Second, fmt.Sprintf("%s with a full disk: %t", name, want), func(ctx context.Context) error {
		nodes, _, err := a.API.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		for _, stub := range nodes {
			if stub.Name != name {
				continue
			}
			n, _, err := a.API.Nodes().Info(ctx, stub.ID, nil)
			if err != nil {
				return err
			}
			reported := slices.ContainsFunc(n.Events, func(e *structs.NodeEvent) bool { return strings.Contains(e.Message, ofNode) })
			if (n.DiskFull != "") != want || !reported {
				return fmt.Errorf("the node says %q, event: %t", n.DiskFull, reported)
			}
		}
		allocs, _, err := a.API.Jobs().Allocations(ctx, "chatty", false, nil)
		if err != nil {
			return err
		}
		for _, stub := range allocs {
			for _, e := range stub.TaskStates["t"].Events {
				if e.Type == ofTask {
					return nil
				}
			}
		}
		return fmt.Errorf("no task was told")
	})
}

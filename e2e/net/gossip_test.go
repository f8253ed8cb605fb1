//go:build netns

package net

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// suspectSince is since when a server declares nobody lost.
func suspectSince(a *harness.Agent) string {
	since, err := a.Stat("nomad", "clients_in_doubt_since")
	if err != nil {
		return err.Error()
	}
	return since
}

// lostEvent waits until a node has been told of something in its events.
func lostEvent(a *harness.Agent, name, message string, limit time.Duration) {
	a.T.Helper()
	harness.Within(a.T, limit, name+" being told: "+message, func(context.Context) error {
		node := nodeNamed(a, name)
		if node == nil {
			return fmt.Errorf("there is no such node")
		}
		for _, e := range node.Events {
			if e.Message == message {
				return nil
			}
		}
		return fmt.Errorf("it is %s, told %d things", node.Status, len(node.Events))
	})
}

// nodeNamed reads a node; nil: it is not known, or nobody answers.
func nodeNamed(a *harness.Agent, name string) *api.Node {
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil {
		return nil
	}
	for _, stub := range nodes {
		if stub.Name == name {
			if node, _, err := a.Nomad.Nodes().Info(stub.ID, nil); err == nil {
				return node
			}
		}
	}
	return nil
}

func idsOf(allocs []*structs.AllocListStub) map[string]bool {
	ids := map[string]bool{}
	for _, a := range allocs {
		ids[a.ID] = true
	}
	return ids
}

// TestNetGossipCut: a client whose gossip alone is cut is warned of, is ready and keeps its work.
func TestNetGossipCut(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server, clients := w.serverAndClients(plainServer)
	server.WaitGossip(2)
	before := idsOf(run(server, "kept", 4))
	cut := time.Now()
	w.hosts[1].cutPort("", 4650)
	lostEvent(server, "node-1", "Gossip of the node is not heard any more, RPC is: is its gossip port cut off (UDP and TCP)?", 60*time.Second)
	t.Logf("FIGURE client whose gossip is cut is warned of: %v", time.Since(cut).Round(time.Millisecond))
	if n := nodeNamed(server, "node-1"); n == nil || n.Status != structs.NodeStatusReady {
		t.Fatalf("it is not ready: %v", n)
	}
	if after := idsOf(server.WaitRunning("kept", 4, 30*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 4, clients...)
}

// TestNetRPCCut: a client whose RPC alone is cut is disconnected, its work goes on and is not started elsewhere; when it is
// healed it is ready again with the same.
func TestNetRPCCut(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server, clients := w.serverAndClients(plainServer)
	server.WaitGossip(2)
	before := idsOf(run(server, "kept", 4))
	cut := time.Now()
	heal := w.hosts[1].cutPort("tcp", 4647)
	nodeStatus(server, "node-1", structs.NodeStatusDisconnected, harness.LostWithin)
	t.Logf("FIGURE client whose RPC is cut is disconnected: %v", time.Since(cut).Round(time.Millisecond))
	soundly(t, 4, clients...)
	heal()
	nodeStatus(server, "node-1", structs.NodeStatusReady, 60*time.Second)
	if after := idsOf(server.WaitRunning("kept", 4, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 4, clients...)
}

// TestNetRPCCutLeaderKilled: so it is when the leader, with which that client has its session, is killed at the same moment: the next
// one has never heard it, and probes by RPC and by gossip.
func TestNetRPCCutLeaderKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 3, 0, "  failover_heartbeat_ttl = \"8s\"\n")
	lead := c.servers.Leader(t)
	rest := c.servers.Except(lead)
	lead.WaitMembers("serf_clients", 3+3)
	at := slices.Index(c.servers, lead) // of the client that was told of that server
	name := fmt.Sprintf("node-%d", at)
	affinity := fmt.Sprintf("affinity {\n  attribute = \"${node.unique.name}\"\n  value = %q\n  weight = 100\n}\n", name)
	job := lead.JobFile("kept", strings.Replace(restful("kept", 4), "group ", affinity+"group ", 1))
	if out, code := lead.CLI("job", "run", "-detach", job); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	before := idsOf(lead.WaitRunning("kept", 4, 30*time.Second))
	soundly(t, 4, c.clients[at])
	heal := c.host(c.clients[at]).cutPort("tcp", 4647)
	lead.Kill()
	cut := time.Now()
	lostEvent(rest[0], name, "Node cannot be reached by RPC, gossip hears it: its work is kept", 60*time.Second)
	t.Logf("FIGURE client whose RPC is cut while the leader is killed is disconnected: %v", time.Since(cut).Round(time.Millisecond))
	nodeStatus(rest[0], name, structs.NodeStatusDisconnected, 10*time.Second)
	soundly(t, 4, c.clients...)
	heal()
	nodeStatus(rest[0], name, structs.NodeStatusReady, 60*time.Second)
	if after := idsOf(rest[0].WaitRunning("kept", 4, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 4, c.clients...)
	lead.Start()
	c.healed()
	c.agree()
}

// TestNetMassFailure: with most clients deaf at once nobody is declared lost, and it is said; when they are heard again all is as it was.
func TestNetMassFailure(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 7)
	server, clients := w.serverAndClients(plainServer)
	server.WaitGossip(6)
	before := idsOf(run(server, "kept", 6))
	var heal []func()
	for _, h := range w.hosts[2:] {
		heal = append(heal, h.cutOff())
	}
	for i := range clients[1:] {
		lostEvent(server, fmt.Sprintf("node-%d", i+2), "Node is not heard, and not declared lost: too many are not heard at once", 60*time.Second)
	}
	if since := suspectSince(server); since == "never" {
		t.Error("agent-info does not tell of it")
	}
	for _, f := range heal {
		f()
	}
	harness.Within(t, 60*time.Second, "the end of the storm", func(context.Context) error {
		if since := suspectSince(server); since != "never" {
			return fmt.Errorf("it is since %s", since)
		}
		return nil
	})
	for i := range clients {
		name := fmt.Sprintf("node-%d", i+1)
		node := nodeNamed(server, name)
		if node == nil {
			t.Fatalf("%s is not known", name)
		}
		for _, e := range node.Events {
			if strings.Contains(e.Message, "neither its RPC session nor gossip hears it") {
				t.Errorf("%s was declared lost", name)
			}
		}
	}
	server.WaitReady(6)
	if after := idsOf(server.WaitRunning("kept", 6, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 6, clients...)
}

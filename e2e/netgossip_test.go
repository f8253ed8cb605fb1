//go:build netns

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/structs"
)

// lostEvent waits until a node has been told of something in its events.
func (a *agent) lostEvent(name, message string, limit time.Duration) {
	a.t.Helper()
	within(a.t, limit, name+" being told: "+message, func(context.Context) error {
		node := a.nodeNamed(name)
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
func (a *agent) nodeNamed(name string) *api.Node {
	nodes, _, err := a.nomad.Nodes().List(nil)
	if err != nil {
		return nil
	}
	for _, stub := range nodes {
		if stub.Name == name {
			if node, _, err := a.nomad.Nodes().Info(stub.ID, nil); err == nil {
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
	server.gossiping(2)
	before := idsOf(server.run("kept", 4))
	cut := time.Now()
	w.hosts[1].cutPort("", 4650)
	server.lostEvent("node-1", "Gossip of the node is not heard any more, RPC is: is its gossip port cut off (UDP and TCP)?", 60*time.Second)
	t.Logf("FIGURE client whose gossip is cut is warned of: %v", time.Since(cut).Round(time.Millisecond))
	if n := server.nodeNamed("node-1"); n == nil || n.Status != structs.NodeStatusReady {
		t.Fatalf("it is not ready: %v", n)
	}
	if after := idsOf(server.running("kept", 4, 30*time.Second)); !maps.Equal(before, after) {
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
	server.gossiping(2)
	before := idsOf(server.run("kept", 4))
	cut := time.Now()
	heal := w.hosts[1].cutPort("tcp", 4647)
	server.nodeStatus("node-1", structs.NodeStatusDisconnected, lostWithin)
	t.Logf("FIGURE client whose RPC is cut is disconnected: %v", time.Since(cut).Round(time.Millisecond))
	soundly(t, 4, clients...)
	heal()
	server.nodeStatus("node-1", structs.NodeStatusReady, 60*time.Second)
	if after := idsOf(server.running("kept", 4, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 4, clients...)
}

// TestNetRPCCutLeaderKilled: so it is when the leader, with which that client has its session, is killed at the same moment: the next
// one has never heard it, and probes by RPC and by gossip.
func TestNetRPCCutLeaderKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 3, 0, "  failover_heartbeat_ttl = \"8s\"\n")
	lead := c.servers.leader(t)
	rest := c.servers.but(lead)
	lead.members("serf_clients", 3+3)
	at := slices.Index(c.servers, lead) // of the client that was told of that server
	name := fmt.Sprintf("node-%d", at)
	affinity := fmt.Sprintf("affinity {\n  attribute = \"${node.unique.name}\"\n  value = %q\n  weight = 100\n}\n", name)
	job := lead.job("kept", strings.Replace(restful("kept", 4), "group ", affinity+"group ", 1))
	if out, code := lead.cli("job", "run", "-detach", job); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	before := idsOf(lead.running("kept", 4, 30*time.Second))
	soundly(t, 4, c.clients[at])
	heal := c.host(c.clients[at]).cutPort("tcp", 4647)
	lead.kill()
	cut := time.Now()
	rest[0].lostEvent(name, "Node cannot be reached by RPC, gossip hears it: its work is kept", 60*time.Second)
	t.Logf("FIGURE client whose RPC is cut while the leader is killed is disconnected: %v", time.Since(cut).Round(time.Millisecond))
	rest[0].nodeStatus(name, structs.NodeStatusDisconnected, 10*time.Second)
	soundly(t, 4, c.clients...)
	heal()
	rest[0].nodeStatus(name, structs.NodeStatusReady, 60*time.Second)
	if after := idsOf(rest[0].running("kept", 4, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 4, c.clients...)
	lead.start()
	c.healed()
	c.agree()
}

// TestNetMassFailure: with most clients deaf at once nobody is declared lost, and it is said; when they are heard again all is as it was.
func TestNetMassFailure(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 7)
	server, clients := w.serverAndClients(plainServer)
	server.gossiping(6)
	before := idsOf(server.run("kept", 6))
	var heal []func()
	for _, h := range w.hosts[2:] {
		heal = append(heal, h.cutOff())
	}
	for i := range clients[1:] {
		server.lostEvent(fmt.Sprintf("node-%d", i+2), "Node is not heard, and not declared lost: too many are not heard at once", 60*time.Second)
	}
	if since := server.suspectSince(); since == "never" {
		t.Error("agent-info does not tell of it")
	}
	for _, f := range heal {
		f()
	}
	within(t, 60*time.Second, "the end of the storm", func(context.Context) error {
		if since := server.suspectSince(); since != "never" {
			return fmt.Errorf("it is since %s", since)
		}
		return nil
	})
	for i := range clients {
		name := fmt.Sprintf("node-%d", i+1)
		node := server.nodeNamed(name)
		if node == nil {
			t.Fatalf("%s is not known", name)
		}
		for _, e := range node.Events {
			if strings.Contains(e.Message, "neither its RPC session nor gossip hears it") {
				t.Errorf("%s was declared lost", name)
			}
		}
	}
	server.ready(6)
	if after := idsOf(server.running("kept", 6, 60*time.Second)); !maps.Equal(before, after) {
		t.Errorf("the work has changed: %v, then %v", before, after)
	}
	soundly(t, 6, clients...)
}

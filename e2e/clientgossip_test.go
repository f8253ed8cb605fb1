package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stat returns one of an agent's numbers for people; empty: there is none.
func (a *agent) stat(section, name string) (string, error) {
	self, err := a.nomad.Agent().Self()
	if err != nil {
		return "", err
	}
	return self.Stats[section][name], nil
}

// gossiping waits until a server hears n clients by gossip.
func (a *agent) gossiping(n int) {
	a.t.Helper()
	within(a.t, 60*time.Second, fmt.Sprintf("%d clients by gossip", n), func(context.Context) error {
		members, err := a.stat("serf_clients", "members")
		if err == nil && members != itoa(n+1) {
			err = fmt.Errorf("the clients' gossip has %s members", members)
		}
		return err
	})
}

// suspectSince is since when a server declares nobody lost.
func (a *agent) suspectSince() string {
	since, err := a.stat("nomad", "clients_in_doubt_since")
	if err != nil {
		return err.Error()
	}
	return since
}

// TestOneAddress: a client that knows nobody but another client finds the servers by gossip; one with another key finds nobody,
// and that is logged once.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	const key, other = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU=", "b3RoZXJzZWNyZXRzb3RoZXJzZWNyZXRzb3RoZXJzZWM="
	server := newAgent(t, false, fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = 1\n  client_gossip_encrypt = %q\n}\n", key))
	server.start()
	server.ready(0)
	client := func(name, key, to string) *agent {
		a := newAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  gossip_encrypt = %q\n  gossip_join = [%q]\n}\n", name, key, to))
		a.start()
		return a
	}
	first := client("first", key, server.gossip)
	second := client("second", key, first.gossip)
	unknown := client("stranger", other, server.gossip)
	server.ready(2)
	server.gossiping(2)
	second.ready(2) // it passes on what it is asked
	within(t, 30*time.Second, "the stranger's complaint", func(context.Context) error {
		if !strings.Contains(unknown.log.tail(1000), "the clients' gossip is not reached") {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	if nodes, _, err := server.api.Nodes().List(t.Context(), nil); err != nil || len(nodes) != 2 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}

// TestOneKeyForBoth: a server that would give the clients the key of its servers does not start.
func TestOneKeyForBoth(t *testing.T) {
	t.Parallel()
	const key = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU="
	a := newAgent(t, false, fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = 1\n  encrypt = %q\n  client_gossip_encrypt = %q\n}\n", key, key))
	a.start()
	if err := a.wait(); err == nil {
		t.Error("it started")
	}
	a.exited <- nil // for cleanup
	if log := a.log.tail(100); !strings.Contains(log, "could act as a server") || strings.Contains(log, key) {
		t.Errorf("it says:\n%s", log)
	}
}

// TestWithoutGossip: a client that does not gossip, and is told of one server, learns the others by its heartbeats, and takes work
// when that one is gone. Simulated nodes gossip when they are told to. A server that does not gossip with clients has theirs
// all the same.
func TestWithoutGossip(t *testing.T) {
	t.Parallel()
	all := startServers(t, 3, "")
	told := all.but(all.leader(t))[0]
	quiet := newAgent(t, false, fmt.Sprintf("name = \"quiet\"\nclient {\n  enabled = true\n  gossip = false\n  servers = [%q]\n}\n", told.rpc))
	quiet.start()
	all[0].ready(1)
	simulated := func(name, more string, of *agent) {
		a := newAgent(t, false, "name = \""+name+"\"\n")
		layout := a.job("shape", fmt.Sprintf("shape %q {\n  count = 2\n  cores = 8\n  mhz = 2000\n  memory = 65536\n  disk = 10000000\n  class = \"sim\"\n}\n", name))
		more = fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  simulate = %q\n  servers = [%q]\n%s}\n", name, layout, of.rpc, more)
		if err := os.WriteFile(filepath.Join(a.dir, "more.hcl"), []byte(more), 0o600); err != nil {
			t.Fatal(err)
		}
		a.start()
	}
	simulated("loud", "  simulate_gossip = true\n", told)
	simulated("still", "", told)
	all[0].ready(5)
	all[0].members("serf_clients", 5) // the servers and the loud ones

	told.kill()
	rest := all.but(told)
	if out, code := rest[0].cli("job", "run", "-detach", rest[0].job("after", onNode("after", "quiet"))); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	rest[0].running("after", 1, 60*time.Second)
	rest[0].members("serf_clients", 4)

	deaf := newAgent(t, false, "server {\n  enabled = true\n  bootstrap_expect = 1\n  client_gossip = false\n}\n")
	deaf.start()
	client := newAgent(t, false, fmt.Sprintf("name = \"its\"\nclient {\n  enabled = true\n  servers = [%q]\n}\n", deaf.rpc))
	client.start()
	deaf.ready(1)
	if out, code := deaf.cli("job", "run", "-detach", deaf.job("its", onNode("its", "its"))); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	deaf.running("its", 1, 30*time.Second)
	if n, err := deaf.stat("serf_clients", "members"); err != nil || n != "" {
		t.Errorf("a server that does not gossip with clients has %s members, %v", n, err)
	}
}

// onNode is a job that sleeps on a node.
func onNode(name, node string) string {
	return fmt.Sprintf(`job %q {
  constraint {
    attribute = "${node.unique.name}"
    value     = %q
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
`, name, node)
}

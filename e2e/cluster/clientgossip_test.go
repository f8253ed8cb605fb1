package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestOneAddress: a client that knows nobody but another client finds the servers by gossip; one with another key finds nobody,
// and that is logged once.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	const key, other = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU=", "b3RoZXJzZWNyZXRzb3RoZXJzZWNyZXRzb3RoZXJzZWM="
	server := harness.NewAgent(t, false, fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = 1\n  client_gossip_encrypt = %q\n}\n", key))
	server.Start()
	server.WaitReady(0)
	client := func(name, key, to string) *harness.Agent {
		a := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  gossip_encrypt = %q\n  gossip_join = [%q]\n}\n", name, key, to))
		a.Start()
		return a
	}
	first := client("first", key, server.Gossip)
	second := client("second", key, first.Gossip)
	unknown := client("stranger", other, server.Gossip)
	server.WaitReady(2)
	server.WaitGossip(2)
	second.WaitReady(2) // it passes on what it is asked
	harness.Within(t, 30*time.Second, "the stranger's complaint", func(context.Context) error {
		if !strings.Contains(unknown.Log.Tail(1000), "the clients' gossip is not reached") {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	if nodes, _, err := server.API.Nodes().List(t.Context(), nil); err != nil || len(nodes) != 2 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}

// TestOneKeyForBoth: a server that would give the clients the key of its servers does not start.
func TestOneKeyForBoth(t *testing.T) {
	t.Parallel()
	const key = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU="
	a := harness.NewAgent(t, false, fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = 1\n  encrypt = %q\n  client_gossip_encrypt = %q\n}\n", key, key))
	a.Start()
	if err := a.Wait(); err == nil {
		t.Error("it started")
	}
	a.Exited <- nil // for cleanup
	if log := a.Log.Tail(100); !strings.Contains(log, "could act as a server") || strings.Contains(log, key) {
		t.Errorf("it says:\n%s", log)
	}
}

// TestWithoutGossip: a client that does not gossip, and whose configuration names one server, learns the others by its heartbeats, and takes work
// when that one is gone. Simulated nodes gossip when they are told to. A server that does not gossip with clients has theirs
// all the same.
func TestWithoutGossip(t *testing.T) {
	t.Parallel()
	all := harness.StartServers(t, 3, "")
	told := all.Except(all.Leader(t))[0]
	quiet := harness.NewAgent(t, false, fmt.Sprintf("name = \"quiet\"\nclient {\n  enabled = true\n  gossip = false\n  servers = [%q]\n}\n", told.RPC))
	quiet.Start()
	all[0].WaitReady(1)
	simulated := func(name, more string, of *harness.Agent) {
		a := harness.NewAgent(t, false, "name = \""+name+"\"\n")
		layout := a.JobFile("shape", fmt.Sprintf("shape %q {\n  count = 2\n  cores = 8\n  mhz = 2000\n  memory = 65536\n  disk = 10000000\n  class = \"sim\"\n}\n", name))
		more = fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  simulate = %q\n  servers = [%q]\n%s}\n", name, layout, of.RPC, more)
		if err := os.WriteFile(filepath.Join(a.Dir, "more.hcl"), []byte(more), 0o600); err != nil {
			t.Fatal(err)
		}
		a.Start()
	}
	simulated("loud", "  simulate_gossip = true\n", told)
	simulated("still", "", told)
	all[0].WaitReady(5)
	all[0].WaitMembers("serf_clients", 5) // the servers and the loud ones

	told.Kill()
	rest := all.Except(told)
	if out, code := rest[0].CLI("job", "run", "-detach", rest[0].JobFile("after", onNode("after", "quiet"))); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	rest[0].WaitRunning("after", 1, 60*time.Second)
	rest[0].WaitMembers("serf_clients", 4)

	deaf := harness.NewAgent(t, false, "server {\n  enabled = true\n  bootstrap_expect = 1\n  client_gossip = false\n}\n")
	deaf.Start()
	client := harness.NewAgent(t, false, fmt.Sprintf("name = \"its\"\nclient {\n  enabled = true\n  servers = [%q]\n}\n", deaf.RPC))
	client.Start()
	deaf.WaitReady(1)
	if out, code := deaf.CLI("job", "run", "-detach", deaf.JobFile("its", onNode("its", "its"))); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	deaf.WaitRunning("its", 1, 30*time.Second)
	if n, err := deaf.Stat("serf_clients", "members"); err != nil || n != "" {
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

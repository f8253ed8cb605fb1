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

// TestClientGossipKeyRotated: servers and clients get another key while they run, by the commands that the documentation names. A client that
// is started again with the first key in its configuration is heard; one that was away for all of it is told.
func TestClientGossipKeyRotated(t *testing.T) {
	t.Parallel()
	const first = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU="
	all := harness.StartServers(t, 3, fmt.Sprintf("server {\n  client_gossip_encrypt = %q\n}\n", first))
	client := func(name string) *harness.Agent {
		a := harness.NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  gossip_encrypt = %q\n  servers = [%q, %q]\n}\n", name, first, all[0].RPC, all[1].RPC))
		a.Start()
		return a
	}
	one, two, away := client("one"), client("two"), client("away")
	all[0].WaitReady(3)
	all[0].WaitMembers("serf_clients", 6)
	away.Kill()
	all[0].WaitReady(2)
	out, code := all[0].CLI("operator", "gossip", "keyring", "generate")
	if code != 0 {
		t.Fatal(out)
	}
	key := strings.TrimSpace(out)
	keyring := func(a *harness.Agent, want string, args ...string) {
		t.Helper()
		harness.Within(t, 60*time.Second, args[0], func(context.Context) error { // one that is slow to answer is named
			out, code := a.CLI(append([]string{"operator", "gossip", "keyring"}, args...)...)
			if !strings.Contains(out, want) {
				return fmt.Errorf("exit %d: %s", code, out)
			}
			return nil
		})
	}
	keyring(all[0], "key of the clients' gossip", "install", first)
	keyring(all[0], "key of the servers' gossip", "install", "-clients", "MDEyMzQ1Njc4OWFiY2RlZg==")
	keyring(all[1], "Done by 2 clients", "install", "-clients", key)
	keyring(all[2], "Done by 2 clients", "use", "-clients", key)
	keyring(all[0], "Done by 2 clients", "remove", "-clients", first)
	keyring(all[1], key+"  5/5      5/5", "list", "-clients")
	harness.Within(t, 30*time.Second, "the client's file", func(context.Context) error {
		raw, err := os.ReadFile(filepath.Join(one.Dir, "data", "client", "gossip.keyring"))
		if err == nil && (!strings.Contains(string(raw), key) || strings.Contains(string(raw), first)) {
			err = fmt.Errorf("it has not the new key alone")
		}
		return err
	})
	one.Kill()
	one.Start()
	back := all.Except(all.Leader(t))[0]
	back.Kill()
	back.Start()
	all.WaitFormed(t, 3)
	all[0].WaitReady(2)
	for _, s := range all {
		s.WaitMembers("serf_clients", 5)
	}
	keyring(back, key+"  5/5      5/5", "list", "-clients")
	away.Start()
	all[0].WaitReady(3)
	harness.Within(t, 60*time.Second, "what the one is told that was away", func(context.Context) error {
		if log := away.Log.Tail(1 << 20); !strings.Contains(log, "encrypted with a key that this client does not have") {
			return fmt.Errorf("nothing")
		}
		return nil
	})
	for _, a := range []*harness.Agent{all[0], all[1], all[2], one, two, away} {
		if log := a.Log.Tail(1 << 20); strings.Contains(log, key) || strings.Contains(log, first) {
			t.Error("a key is in the log")
		}
	}
}

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

// TestClientGossipKeyRotated: servers and clients get another key while they run, by the commands that the documentation names. A client that
// is started again with the first key in its configuration is heard; one that was away for all of it is told.
func TestClientGossipKeyRotated(t *testing.T) {
	t.Parallel()
	const first = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU="
	all := startServers(t, 3, fmt.Sprintf("server {\n  client_gossip_encrypt = %q\n}\n", first))
	client := func(name string) *agent {
		a := newAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  gossip_encrypt = %q\n  servers = [%q, %q]\n}\n", name, first, all[0].rpc, all[1].rpc))
		a.start()
		return a
	}
	one, two, away := client("one"), client("two"), client("away")
	all[0].ready(3)
	all[0].members("serf_clients", 6)
	away.kill()
	all[0].ready(2)
	out, code := all[0].cli("operator", "gossip", "keyring", "generate")
	if code != 0 {
		t.Fatal(out)
	}
	key := strings.TrimSpace(out)
	keyring := func(a *agent, want string, args ...string) {
		t.Helper()
		within(t, 60*time.Second, args[0], func(context.Context) error { // one that is slow to answer is named
			out, code := a.cli(append([]string{"operator", "gossip", "keyring"}, args...)...)
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
	within(t, 30*time.Second, "the client's file", func(context.Context) error {
		raw, err := os.ReadFile(filepath.Join(one.dir, "data", "client", "gossip.keyring"))
		if err == nil && (!strings.Contains(string(raw), key) || strings.Contains(string(raw), first)) {
			err = fmt.Errorf("it has not the new key alone")
		}
		return err
	})
	one.kill()
	one.start()
	back := all.but(all.leader(t))[0]
	back.kill()
	back.start()
	all.formed(t, 3)
	all[0].ready(2)
	for _, s := range all {
		s.members("serf_clients", 5)
	}
	keyring(back, key+"  5/5      5/5", "list", "-clients")
	away.start()
	all[0].ready(3)
	within(t, 60*time.Second, "what the one is told that was away", func(context.Context) error {
		if log := away.log.tail(1 << 20); !strings.Contains(log, "encrypted with a key that this client does not have") {
			return fmt.Errorf("nothing")
		}
		return nil
	})
	for _, a := range []*agent{all[0], all[1], all[2], one, two, away} {
		if log := a.log.tail(1 << 20); strings.Contains(log, key) || strings.Contains(log, first) {
			t.Error("a key is in the log")
		}
	}
}

// members waits until a server's gossip has so many members that are heard.
func (a *agent) members(section string, n int) {
	a.t.Helper()
	within(a.t, 60*time.Second, fmt.Sprintf("%d members", n), func(context.Context) error {
		failed, err := a.stat(section, "failed")
		if err != nil {
			return err
		}
		members, err := a.stat(section, "members")
		if err != nil {
			return err
		}
		left, err := a.stat(section, "left")
		if err != nil {
			return err
		}
		var m, f, l int
		if _, err := fmt.Sscan(members+" "+failed+" "+left, &m, &f, &l); err != nil {
			return err
		}
		if m-f-l != n {
			return fmt.Errorf("%d of %d are heard", m-f-l, m)
		}
		return nil
	})
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// stat gives one of an agent's numbers for people; empty: there is none.
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

// inDoubtSince is since when a server declares nobody lost.
func (a *agent) inDoubtSince() string {
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
	stranger := client("stranger", other, server.gossip)
	server.ready(2)
	server.gossiping(2)
	second.ready(2) // it passes on what it is asked
	within(t, 30*time.Second, "the stranger's complaint", func(context.Context) error {
		if !strings.Contains(stranger.log.tail(1000), "the clients' gossip is not reached") {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	if nodes, _, err := server.api.NodeList(t.Context(), nil); err != nil || len(nodes) != 2 {
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
	if log := a.log.tail(100); !strings.Contains(log, "speaks as a server") || strings.Contains(log, key) {
		t.Errorf("it says:\n%s", log)
	}
}

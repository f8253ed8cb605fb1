package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Stat returns one of an agent's statistics; empty: there is none.
func (a *Agent) Stat(section, name string) (string, error) {
	self, err := a.Nomad.Agent().Self()
	if err != nil {
		return "", err
	}
	return self.Stats[section][name], nil
}

// WaitGossip waits until a server hears n clients by gossip.
func (a *Agent) WaitGossip(n int) {
	a.T.Helper()
	Within(a.T, 60*time.Second, fmt.Sprintf("%d clients by gossip", n), func(context.Context) error {
		members, err := a.Stat("serf_clients", "members")
		if err == nil && members != strconv.Itoa(n+1) {
			err = fmt.Errorf("the clients' gossip has %s members", members)
		}
		return err
	})
}

// WaitMembers waits until a server's gossip has so many members that are heard.
func (a *Agent) WaitMembers(section string, n int) {
	a.T.Helper()
	Within(a.T, 60*time.Second, fmt.Sprintf("%d members", n), func(context.Context) error {
		failed, err := a.Stat(section, "failed")
		if err != nil {
			return err
		}
		members, err := a.Stat(section, "members")
		if err != nil {
			return err
		}
		left, err := a.Stat(section, "left")
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

// Servers are agents that run a server each, and form a cluster.
type Servers []*Agent

// StartServers starts n servers, each of which joins the next one alone, and waits until they have formed a cluster.
func StartServers(t testing.TB, n int, more string) Servers {
	t.Helper()
	all := NewServers(t, n, more)
	for _, a := range all {
		a.Start()
	}
	all.WaitFormed(t, n)
	return all
}

// NewServers prepares n servers, each of which joins the next one alone.
func NewServers(t testing.TB, n int, more string) Servers {
	t.Helper()
	var all Servers
	for i := range n {
		all = append(all, NewAgent(t, false, fmt.Sprintf("name = \"server-%d\"\n%s", i, more)))
	}
	for i, a := range all {
		joins := filepath.Join(a.Dir, "server.hcl")
		text := fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = %d\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  server_join {\n    retry_join = [%q]\n    retry_interval = \"1s\"\n  }\n}\n",
			n, all[(i+1)%n].Serf)
		if err := os.WriteFile(joins, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a.Args = append(a.Args, "-config", joins)
	}
	return all
}

// WaitFormed waits until each server that runs sees n voters and a leader.
func (all Servers) WaitFormed(t testing.TB, n int) {
	t.Helper()
	for _, a := range all {
		Within(t, 20*time.Second, fmt.Sprintf("%d voters", n), func(ctx context.Context) error {
			select {
			case err := <-a.Exited:
				a.Exited <- err // for cleanup
				t.Fatalf("a server ended: %v\n%s", err, a.Log.Tail(30))
			default:
			}
			conf, err := a.API.Operator().RaftConfig(ctx)
			if err != nil {
				return err
			}
			voters, leads := 0, 0
			for _, s := range conf.Servers {
				if s.Voter {
					voters++
				}
				if s.Leader {
					leads++
				}
			}
			if voters != n || len(conf.Servers) != n || leads != 1 {
				return fmt.Errorf("%d voters of %d servers, %d lead", voters, len(conf.Servers), leads)
			}
			return nil
		})
	}
}

// Leader waits for a leader and returns it.
func (all Servers) Leader(t testing.TB) *Agent {
	t.Helper()
	var found *Agent
	Within(t, 20*time.Second, "a leader", func(ctx context.Context) error {
		var err error
		for _, a := range all {
			var addr string
			if addr, err = a.API.Status().Leader(ctx); err != nil {
				continue // it may be the dead one
			}
			if at := slices.IndexFunc(all, func(o *Agent) bool { return o.RPC == addr }); at >= 0 {
				found = all[at]
				return nil
			}
		}
		return errors.Join(errors.New("nobody leads"), err)
	})
	return found
}

// Except returns all but one.
func (all Servers) Except(one *Agent) Servers {
	return slices.DeleteFunc(slices.Clone(all), func(a *Agent) bool { return a == one })
}

// StartClient starts an agent with n simulated nodes that joins one server.
func StartClient(t testing.TB, name string, n int, server *Agent) *Agent {
	t.Helper()
	layout := filepath.Join(t.TempDir(), name+".hcl")
	text := fmt.Sprintf("shape %q {\n  count = %d\n  cores = 8\n  mhz = 2000\n  memory = 65536\n  disk = 100000\n}\n", name, n)
	if err := os.WriteFile(layout, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := NewAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n  simulate = %q\n}\n", name, server.RPC, layout))
	a.Start()
	return a
}

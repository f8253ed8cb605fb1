//go:build netns

package net

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// cluster is servers on the first hosts of a network, and clients on the others.
type cluster struct {
	*network
	servers harness.Servers
	clients harness.Servers
	disks   map[*harness.Agent]*disk // of those that have one of their own
}

// stale asks a server for what it has itself.
var stale = &api.Query{Stale: true}

// gossipKey is the key of the gossip among the servers of all tests.
const gossipKey = "MDEyMzQ1Njc4OWFiY2RlZg=="

// newCluster starts servers and clients from configuration files that name one address to join each. A client has simulated
// machines, if any are asked for, and else is one itself. More goes into the servers' block.
func newCluster(t *testing.T, n, clients, simulated int, more ...string) *cluster {
	t.Helper()
	c := &cluster{network: newNetwork(t, n+clients)}
	c.addServers(n, 0, more...)
	for range clients {
		c.addClient(simulated, 0, "")
	}
	c.servers.WaitFormed(t, n)
	c.servers[0].WaitReady(clients * max(1, simulated))
	return c
}

// addServers starts servers on the first hosts, on disks of their own of some MiB if these are not 0. More goes into their block.
func (c *cluster) addServers(n, mib int, more ...string) {
	c.t.Helper()
	for i := range n {
		c.servers = append(c.servers, c.add(fmt.Sprintf("server-%d", i), serverJoining(n, c.hosts[(i+1)%n], strings.Join(more, "")), mib))
	}
}

// addClient starts a client on the next host, with simulated machines if any are asked for; see addServers.
func (c *cluster) addClient(simulated, mib int, more string) *harness.Agent {
	c.t.Helper()
	i := len(c.clients)
	name := fmt.Sprintf("node-%d", i)
	text := fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n%s", c.servers[i%len(c.servers)].RPC, more)
	if simulated > 0 {
		layout := filepath.Join(c.t.TempDir(), name+".hcl")
		like := fmt.Sprintf("shape %q {\n  count = %d\n  cores = 8\n  mhz = 2000\n  memory = 65536\n  disk = 10000000\n}\n", name, simulated)
		if err := os.WriteFile(layout, []byte(like), 0o600); err != nil {
			c.t.Fatal(err)
		}
		text += fmt.Sprintf("  simulate = %q\n", layout)
	}
	a := c.add(name, text+"}\n", mib)
	c.clients = append(c.clients, a)
	return a
}

// add starts an agent on the next host.
func (c *cluster) add(name, config string, mib int) *harness.Agent {
	c.t.Helper()
	var own *disk
	if mib > 0 {
		own = newDisk(c.t, mib)
		config += own.config()
	}
	a := c.hosts[len(c.servers)+len(c.clients)].agent(name, config)
	a.Start()
	if own != nil {
		if c.disks == nil {
			c.disks = map[*harness.Agent]*disk{}
		}
		c.disks[a] = own
	}
	return a
}

// serverJoining is the configuration of one of n servers that is told of another's host. More goes into its block.
func serverJoining(n int, other *host, more string) string {
	return fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = %d\n  encrypt = %q\n  server_join {\n    retry_join = [%q]\n    retry_interval = \"1s\"\n  }\n%s}\n",
		n, gossipKey, other.addr, more)
}

// host is where an agent lives.
func (c *cluster) host(a *harness.Agent) *host {
	return c.hosts[slices.IndexFunc(c.hosts, func(h *host) bool { return h.ns == a.NetNS })]
}

// hostsOf are where agents live.
func (c *cluster) hostsOf(agents harness.Servers) []*host {
	var all []*host
	for _, a := range agents {
		all = append(all, c.host(a))
	}
	return all
}

// steadily registers jobs through all servers, so many a second while all is well, until it is ended. Each worker keeps to one
// server, so that those go on at full speed whose server is well.
func steadily(t *testing.T, all harness.Servers, perSecond int) *harness.Load {
	const workers = 15
	l := &harness.Load{All: all, Stop: make(chan struct{})}
	for w := range workers {
		l.Done.Go(func() {
			tick := time.NewTicker(workers * time.Second / time.Duration(perSecond))
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-l.Stop:
					return
				}
				id := fmt.Sprintf("load-%d-%d", w, i)
				ctx, cancel := context.WithTimeout(t.Context(), requesting)
				if harness.Register(ctx, all[w%len(all)].API, id) == nil {
					l.Mu.Lock()
					l.Acked = append(l.Acked, id)
					l.Mu.Unlock()
				}
				cancel()
			}
		})
	}
	return l
}

// accepted returns the time until a write is accepted by one of some servers.
func accepted(t *testing.T, some harness.Servers, id string) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(30*time.Second))
	defer cancel()
	done := make(chan time.Duration, len(some))
	for _, a := range some {
		go func() {
			for ctx.Err() == nil {
				try, stop := context.WithTimeout(ctx, requesting)
				err := harness.Register(try, a.API, id)
				stop()
				if err == nil {
					done <- time.Since(began)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}()
	}
	select {
	case took := <-done:
		return took
	case <-ctx.Done():
		t.Fatalf("no write is accepted by the others")
		return 0
	}
}

// agree waits until all servers have the same state and sees that it is in order: equal hashes at one index.
func (c *cluster) agree() {
	c.t.Helper()
	harness.Within(c.t, 60*time.Second, "equal states of all servers", func(ctx context.Context) error {
		var first *structs.CheckReport
		for _, a := range c.servers {
			r, err := a.API.Operator().Check(ctx, stale)
			if err != nil {
				return err
			}
			for _, f := range r.Faults {
				c.t.Errorf("the state of %s at index %d is not in order: %s: %s %s: %s", a.HTTP, r.StateIndex, f.Rule, f.Kind, f.ID, f.What)
			}
			if first == nil {
				first = r
			}
			if r.StateIndex != first.StateIndex {
				return fmt.Errorf("index %d and %d", first.StateIndex, r.StateIndex)
			}
			if r.Hash != first.Hash {
				c.t.Fatalf("at index %d %s has the hash %s, %s %s", r.StateIndex, c.servers[0].HTTP, first.Hash, a.HTTP, r.Hash)
			}
		}
		return nil
	})
}

// healed waits until the cluster is whole after a fault.
func (c *cluster) healed() {
	c.t.Helper()
	c.servers.WaitFormed(c.t, len(c.servers))
}

// kept ends a load and sees that what was acknowledged runs, once each.
func (c *cluster) kept(l *harness.Load, more ...string) {
	c.t.Helper()
	acked := append(l.End(), more...)
	if len(acked) == len(more) {
		c.t.Error("no registration of the load was acknowledged")
	}
	harness.Within(c.t, 60*time.Second, "all that was acknowledged running, once", func(ctx context.Context) error {
		return harness.AllRunOnce(ctx, c.servers[0].API, acked)
	})
	c.t.Logf("%d registrations were acknowledged; each runs once", len(acked))
}

// documented is the first configuration that docs/guides/clients.md gives a client, with a key and an address.
func documented(t *testing.T, key, addr string) string {
	t.Helper()
	docs, err := os.ReadFile("../../docs/guides/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(docs), "```hcl\n")
	block, _, _ = strings.Cut(block, "```")
	for old, now := range map[string]string{`"…"  `: fmt.Sprintf("%q  ", key), `["10.0.0.1"]`: fmt.Sprintf("[%q]", addr)} {
		if strings.Count(block, old) != 1 {
			t.Fatalf("%s is not once in:\n%s", old, block)
		}
		block = strings.Replace(block, old, now, 1)
	}
	return block
}

// TestNetEveryone: three servers and five clients, one address to join each, as documented: everyone sees everyone, and the
// clients gossip.
func TestNetEveryone(t *testing.T) {
	t.Parallel()
	const key = "c3VwZXJzZWNyZXRzdXBlcnNlY3JldHN1cGVyc2VjcmU="
	c := &cluster{network: newNetwork(t, 8)}
	c.addServers(3, 0, fmt.Sprintf("  client_gossip_encrypt = %q\n", key))
	for i, h := range c.hosts[3:] {
		to := c.hosts[i%3]
		if i == 4 {
			to = c.hosts[3] // "or any other client"
		}
		a := h.agent(fmt.Sprintf("node-%d", i), documented(t, key, to.addr))
		a.Start()
		c.clients = append(c.clients, a)
	}
	c.servers.WaitFormed(t, 3)
	for _, a := range c.servers {
		a.WaitReady(5)
		a.WaitMembers("serf_clients", 8)
	}
	for _, a := range slices.Concat(c.servers, c.clients) {
		lines(t, a, 30*time.Second, 3, []string{"server-", "alive"}, "server", "members")
		lines(t, a, 30*time.Second, 5, []string{"node-", "ready"}, "node", "status")
	}
	for _, a := range c.servers {
		lines(t, a, 30*time.Second, 1, []string{"leader"}, "operator", "raft", "list-peers")
		lines(t, a, 30*time.Second, 2, []string{"follower"}, "operator", "raft", "list-peers")
	}
	run(c.servers[0], "spread", 5)
	soundly(t, 5, c.clients...)
	c.agree()
}

// TestNetLeaderKilled: leaders are killed, one after the other, under load. Nothing that was acknowledged is lost, nothing is
// placed twice, clients see one copy. How long no write is accepted is logged.
func TestNetLeaderKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 2, 4)
	l := steadily(t, c.servers, 50)
	r := newRegisters(t, "register", 4, c.servers...)
	stop := r.load(4)
	var times []time.Duration
	var after []string
	for i := range 5 {
		l.WaitMore(t, 25)
		lost := c.servers.Leader(t)
		lost.Kill()
		after = append(after, fmt.Sprintf("after-%d", i))
		times = append(times, accepted(t, c.servers.Except(lost), after[i]))
		lost.Start()
		c.healed()
	}
	stop()
	slices.Sort(times)
	t.Logf("FIGURE leader killed -9 → next write accepted: median %v of %v", times[2].Round(time.Millisecond), times)
	c.kept(l, after...)
	r.judge()
	c.agree()
}

// TestNetLeaderAway: under load the leader is stopped for a while, cut off from the other servers, made deaf; then a follower is
// cut off from them. Clients see one copy throughout.
func TestNetLeaderAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 2, 4)
	l := steadily(t, c.servers, 50)
	r := newRegisters(t, "register", 4, c.servers...)
	stop := r.load(6)
	var after []string
	f := func(what string, follower bool, lasts time.Duration, fault func(*harness.Agent, harness.Servers) (undo func())) {
		t.Helper()
		l.WaitMore(t, 25)
		away := c.servers.Leader(t)
		if follower {
			away = c.servers.Except(away)[0]
		}
		undo := fault(away, c.servers.Except(away))
		id := fmt.Sprintf("after-%d", len(after))
		after = append(after, id)
		t.Logf("FIGURE %s → next write accepted: %v", what, accepted(t, c.servers.Except(away), id).Round(time.Millisecond))
		time.Sleep(lasts)
		requested := r.call(away, 40)
		time.Sleep(500 * time.Millisecond)
		undo()
		requested.Wait()
		c.healed()
	}
	const leased = 30 * time.Second // for which a server may be stopped: in every run: a stop of 4 s does not show that one of 30 s is survived
	short := long(4*time.Second, leased)
	f("leader stopped", false, leased, func(a *harness.Agent, _ harness.Servers) func() { return pause(a) })
	f("leader alone", false, short, func(a *harness.Agent, rest harness.Servers) func() { return c.host(a).cutFrom(c.hostsOf(rest)...) })
	f("leader deaf", false, short, func(a *harness.Agent, rest harness.Servers) func() { return c.host(a).deafTo(c.hostsOf(rest)...) })
	f("follower alone", true, short, func(a *harness.Agent, rest harness.Servers) func() { return c.host(a).cutFrom(c.hostsOf(rest)...) })
	stop()
	c.kept(l, after...)
	r.judge()
	c.agree()
}

// TestNetServerDiskFull: the leader's disk is full under load: another leads, nothing acknowledged is lost, and when there is
// room again the server catches up.
func TestNetServerDiskFull(t *testing.T) {
	t.Parallel()
	c := &cluster{network: newNetwork(t, 3)}
	c.addServers(3, 200)
	c.servers.WaitFormed(t, 3)
	r := newRegisters(t, "register", 4, c.servers...)
	stop := r.load(6)
	full := c.servers.Leader(t)
	room := c.disks[full].fill()
	others := c.servers.Except(full)
	t.Logf("FIGURE leader's disk full → next write accepted: %v", accepted(t, others, "after").Round(time.Millisecond))
	stepsDown(t, full, others[0], true)
	time.Sleep(long(3*time.Second, 30*time.Second))
	room()
	stepsDown(t, full, others[0], false)
	c.healed()
	stop()
	if n := full.LogCount("this server steps down"); n > 1 { // an old line may be forgotten
		t.Errorf("it says %d times that it steps down", n)
	}
	r.judge()
	c.agree()
}

// stepsDown waits until a server says of itself, and others of it, that it does not take leadership because its disk is full; or that
// it has not.
func stepsDown(t *testing.T, full, other *harness.Agent, want bool) {
	t.Helper()
	harness.Within(t, 60*time.Second, fmt.Sprintf("the server with the full disk stepping down: %t", want), func(context.Context) error {
		for _, args := range [][]string{{"server", "members"}, {"operator", "autopilot", "health"}} {
			out, _ := other.CLI(args...)
			if strings.Contains(out, "does not take leadership") != want || want && !strings.Contains(out, "left") {
				return fmt.Errorf("%s: %s", strings.Join(args, " "), out)
			}
		}
		health, err := full.Nomad.Agent().Health()
		if err == nil && strings.Contains(health.Server.Message, "is full (") != want {
			err = fmt.Errorf("of itself it says %q", health.Server.Message)
		}
		return err
	})
}

// TestNetStaleFound: what a server that is cut off gives to a stale read is found to be stale by the checker; to one that is
// not, it gives nothing.
func TestNetStaleFound(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 0, 0)
	r := newRegisters(t, "register", 1, c.servers...)
	write := func(a *harness.Agent) {
		t.Helper()
		harness.Within(t, 30*time.Second, "a write", func(ctx context.Context) error { return r.write(ctx, 1, a, 0) })
	}
	lead := c.servers.Leader(t)
	behind := c.servers.Except(lead)[0]
	write(lead)
	harness.Within(t, 30*time.Second, "the follower having it", func(ctx context.Context) error {
		_, _, err := behind.API.Jobs().Info(ctx, r.id(0), stale)
		return err
	})
	heal := c.host(behind).cutFrom(c.hostsOf(c.servers.Except(behind))...)
	write(lead)
	if err := r.read(t.Context(), 2, behind, 0, false); err == nil {
		t.Error("a server that is cut off answers a read that must be up to date")
	}
	if err := r.check(time.Minute); err != nil {
		t.Fatalf("before the stale read: %v", err)
	}
	if err := r.read(t.Context(), 3, behind, 0, true); err != nil {
		t.Fatalf("a stale read: %v", err)
	}
	if err := r.check(time.Minute); !errors.Is(err, errNotLinearizable) {
		t.Errorf("the stale read was not found: %v", err)
	} else {
		t.Logf("found: %s", strings.TrimSpace(err.Error()))
	}
	heal()
	c.healed()
}

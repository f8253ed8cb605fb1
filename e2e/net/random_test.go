//go:build netns

package net

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

var faultsSeed = flag.Uint64("faults-seed", 0, "the seed that random faults are drawn from; 0: another one each time")

// mishap is a kind of fault that befalls an agent; the others are those of its kind.
type mishap struct {
	name string
	make func(c *cluster, a *harness.Agent, others harness.Servers) (undo func())
}

// ofServers befall a server. Each of them alone leaves a majority.
var ofServers = []mishap{
	{"killed", killed},
	{"stopped", stopped},
	{"cut off", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutOff() }},
	{"cut from the other servers", func(c *cluster, a *harness.Agent, others harness.Servers) func() {
		return c.host(a).cutFrom(c.hostsOf(others)...)
	}},
	{"cut from one other server", func(c *cluster, a *harness.Agent, others harness.Servers) func() {
		return c.host(a).cutFrom(c.host(others[0]))
	}},
	{"deaf to one other server", func(c *cluster, a *harness.Agent, others harness.Servers) func() {
		return c.host(a).deafTo(c.host(others[0]))
	}},
	{"deaf to the other servers", func(c *cluster, a *harness.Agent, others harness.Servers) func() {
		return c.host(a).deafTo(c.hostsOf(others)...)
	}},
	{"without RPC", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutPort("tcp", 4647) }},
	{"without gossip", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutPort("", 4648) }},
	{"with a full disk", diskFull},
	{"losing a fifth of its packets", lossy},
	{"far away", farAway},
}

// ofClients befall a client.
var ofClients = []mishap{
	{"killed", killed},
	{"stopped", stopped},
	{"unplugged", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).unplug() }},
	{"cut off", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutOff() }},
	{"without RPC", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutPort("tcp", 4647) }},
	{"without gossip", func(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).cutAllBut(4647) }}, // simulated nodes gossip at any port
	{"with a full disk", diskFull},
	{"losing a fifth of its packets", lossy},
	{"far away", farAway},
}

func diskFull(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.disks[a].fill() }

func killed(_ *cluster, a *harness.Agent, _ harness.Servers) func() {
	a.Kill()
	return a.Start
}

func stopped(_ *cluster, a *harness.Agent, _ harness.Servers) func() { return pause(a) }

func lossy(c *cluster, a *harness.Agent, _ harness.Servers) func() { return c.host(a).lossy(20) }

func farAway(c *cluster, a *harness.Agent, _ harness.Servers) func() {
	return c.host(a).relay(badLinks{delay: 50 * time.Millisecond, loss: 1, reorder: 5})
}

// randomTime is how long faults went on in all runs of this process.
var randomTime, randomFaults atomic.Int64

// TestNetRandomFaults: under load, servers and clients suffer faults drawn at random, now and then two servers at once. The
// state is in order after each; at the end nothing acknowledged is lost, all that was asked for runs, on machines that are no
// simulated ones as often as was asked for, clients have seen one copy, and the servers' states are equal.
func TestNetRandomFaults(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{
		"defaults":        "",
		"nodes soon lost": "  min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"1s\"\n  client_liveness {\n    check = \"1s\"\n    silence = \"1s\"\n  }\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			randomly(t, more)
		})
	}
	t.Cleanup(func() {
		t.Logf("FIGURE random faults: %d in %v", randomFaults.Load(), time.Duration(randomTime.Load()).Round(time.Second))
	})
}

// randomCluster is three servers, two agents with simulated nodes, and two that are nodes themselves, all on small disks. It gives
// where the tasks of the last lie, too. The load has no room on those two.
func randomCluster(t *testing.T, more string) (c *cluster, tasks harness.Servers) {
	c = &cluster{network: newNetwork(t, 7)}
	c.addServers(3, 200, more)
	for range 2 {
		c.addClient(4, 64, "  simulate_gossip = true\n")
	}
	for range 2 {
		tasks = append(tasks, &harness.Agent{Dir: c.disks[c.addClient(0, 64, "")].dir})
	}
	c.servers.WaitFormed(t, 3)
	c.servers[0].WaitReady(2*4 + 2)
	c.servers[0].WaitMembers("serf_clients", 3+2*4+2)
	return c, tasks
}

func randomly(t *testing.T, more string) {
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64() // a test
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0)) // a test
	c, real := randomCluster(t, more)
	const suspendedJobs = 6
	run(c.servers[0], "sleepers", suspendedJobs)
	l := steadily(t, c.servers, 10)
	r := newRegisters(t, "register", 4, c.servers...)
	stop := r.load(6)
	began := time.Now()
	for time.Since(began) < long(185*time.Second, 5*time.Minute) {
		var faults []string
		var undo []func()
		befall := func(who harness.Servers, at int, kinds []mishap) {
			kind := kinds[rng.IntN(len(kinds))]
			faults = append(faults, who[at].HTTP+" "+kind.name)
			undo = append(undo, kind.make(c, who[at], who.Except(who[at])))
			randomFaults.Add(1)
		}
		order := rng.Perm(len(c.servers))
		befall(c.servers, order[0], ofServers)
		if rng.IntN(4) == 0 {
			befall(c.servers, order[1], ofServers)
		}
		if rng.IntN(2) == 0 {
			befall(c.clients, rng.IntN(len(c.clients)), ofClients)
		}
		lasts := time.Duration(1000+rng.IntN(4000)) * time.Millisecond
		t.Logf("%v: for %v: %s", time.Since(began).Round(time.Millisecond), lasts, strings.Join(faults, ", "))
		time.Sleep(lasts)
		for _, f := range undo {
			f()
		}
		c.healed()
		for _, a := range c.servers {
			a.CheckState()
		}
		if t.Failed() {
			return
		}
	}
	randomTime.Add(int64(time.Since(began)))
	stop()
	whole := time.Now()
	harness.Within(t, 60*time.Second, "all nodes being ready", func(ctx context.Context) error {
		nodes, _, err := c.servers[0].API.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		if text := nodesText(nodes); strings.Count(text, " ready") != len(nodes) {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.kept(l)
	c.servers[0].WaitRunning("sleepers", suspendedJobs, 60*time.Second)
	soundly(t, suspendedJobs, real...)
	t.Logf("FIGURE the faults over → all that was asked for runs: %v", time.Since(whole).Round(time.Millisecond))
	r.judge()
	c.agree()
}

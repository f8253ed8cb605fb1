//go:build netns

package net

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// startRegion starts a region of three servers and one client on four hosts, from configuration files as docs/guides/regions.md
// tells. meets is the address of a server of another region that the first server is told of; empty: none.
func (w *network) startRegion(name string, hosts []*host, meets string) *cluster {
	w.t.Helper()
	c := &cluster{network: w}
	add := func(h *host, agent, text string) *harness.Agent {
		a := h.agent(agent, fmt.Sprintf("region = %q\ndatacenter = %q\n", name, name+"-1"))
		file := filepath.Join(a.Dir, "region.hcl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		a.Args = append(a.Args, "-config", file)
		a.Start()
		return a
	}
	for i, h := range hosts[:3] {
		wan := ""
		if i == 0 && meets != "" {
			wan = fmt.Sprintf("    retry_join_wan = [%q]\n    retry_interval_wan = \"1s\"\n", meets)
		}
		c.servers = append(c.servers, add(h, fmt.Sprintf("%s-%d", name, i), fmt.Sprintf(`
ports { serf_wan = 4649 }
server {
  enabled          = true
  bootstrap_expect = 3
  encrypt          = %q
  server_join {
    retry_join     = [%q]
    retry_interval = "1s"
%s  }
}
`, gossipKey, hosts[(i+1)%3].addr, wan)))
	}
	c.clients = harness.Servers{add(hosts[3], name+"-node", fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n", c.servers[1].RPC))}
	return c
}

// regionList waits until an agent lists the regions so: the words of each in a line.
func regionList(t *testing.T, a *harness.Agent, regions ...string) {
	t.Helper()
	for _, words := range regions {
		lines(t, a, 60*time.Second, 1, strings.Fields(words), "region", "list")
	}
}

// TestNetRegions: two regions that know each other by one address. A job goes to the other region through an agent of this one.
// One region is cut off whole, and later killed whole: the other goes on and says what is lost; what is asked of the lost one
// fails in bounded time, and does not any more when it is back.
func TestNetRegions(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 8)
	west := w.startRegion("west", w.hosts[:4], "")
	east := w.startRegion("east", w.hosts[4:], w.hosts[0].addr)
	for _, c := range []*cluster{west, east} {
		c.servers.WaitFormed(t, 3)
		c.servers[0].WaitReady(1)
	}
	bothThere(t, slices.Concat(west.servers, east.servers, west.clients, east.clients))

	here := east.servers[1]
	over := here.JobFile("over", strings.Replace(restful("over", 2), "{\n", "{\n  region = \"west\"\n  datacenters = [\"west-1\"]\n", 1))
	if out, code := here.CLI("job", "run", "-detach", over); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	ran := idsOf(west.servers[0].WaitRunning("over", 2, 30*time.Second))
	soundly(t, 2, west.clients...)
	soundly(t, 0, east.clients...)
	lines(t, here, 30*time.Second, 2, []string{"west-node", "running"}, "job", "allocs", "-region", "west", "over")
	if out, code := here.CLI("job", "status", "over"); code == 0 {
		t.Errorf("east has the job too:\n%s", out)
	}

	var heal []func()
	for _, h := range w.hosts[:4] {
		heal = append(heal, h.cutFrom(w.hosts[4:]...))
	}
	lost := time.Now()
	east.without(t, "west", "cut")
	for _, a := range slices.Concat(east.servers, east.clients) {
		regionList(t, a, "west 0 of 3 alive <none>", "east 3 of 3 alive :4647")
		lines(t, a, 60*time.Second, 3, []string{"east-", "alive"}, "server", "members")
		lines(t, a, 60*time.Second, 3, []string{"west-", "failed"}, "server", "members")
	}
	t.Logf("FIGURE region cut off → all agents of the other show it as lost: %v", time.Since(lost).Round(time.Millisecond))
	if out, code := here.CLI("job", "status", "-region", "west"); code == 0 || !strings.Contains(out, `No path to region "west": it is known`) {
		t.Errorf("job status of the lost region: exit %d\n%s", code, out)
	}
	healed := time.Now()
	for _, f := range heal {
		f()
	}
	bothThere(t, slices.Concat(west.servers, east.servers))
	t.Logf("FIGURE region healed → all servers show it: %v", time.Since(healed).Round(time.Millisecond))
	west.unchanged(t, ran)

	for _, a := range west.servers {
		a.Kill()
	}
	east.without(t, "west", "killed")
	for _, a := range west.servers {
		a.Start()
	}
	west.healed()
	bothThere(t, slices.Concat(west.servers, east.servers))
	west.unchanged(t, ran)
	for _, c := range []*cluster{west, east} {
		c.agree()
	}
}

// bothThere waits until agents show all servers of both regions, and their leaders.
func bothThere(t *testing.T, agents harness.Servers) {
	t.Helper()
	for _, a := range agents {
		regionList(t, a, "west 3 of 3 alive :4647", "east 3 of 3 alive :4647")
		lines(t, a, 30*time.Second, 6, []string{"alive"}, "server", "members")
	}
}

// without sees that a region takes and places new work while another one has just been lost, and that what is asked of that one
// fails by itself, with a word on it.
func (c *cluster) without(t *testing.T, other, how string) {
	t.Helper()
	lost := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // what is bounded ends long before
	defer cancel()
	requested := map[string]func(*harness.Agent) error{
		"read":  func(a *harness.Agent) error { _, _, err := a.API.In(other).Jobs().List(ctx, nil); return err },
		"write": func(a *harness.Agent) error { return harness.Register(ctx, a.API.In(other), "nowhere-"+how) },
	}
	var failing sync.WaitGroup
	for what, request := range requested {
		for _, a := range []*harness.Agent{c.servers[2], c.clients[0]} {
			failing.Go(func() {
				err := request(a)
				if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), fmt.Sprintf("egion %q", other)) {
					t.Errorf("a %s of the region that is lost, by %s: %v", what, a.HTTP, err)
				}
				t.Logf("FIGURE region %s → a %s of it fails: %v", how, what, time.Since(lost).Round(time.Millisecond))
			})
		}
	}
	run(c.servers[0], "alone-"+how, 2)
	failing.Wait()
}

// unchanged sees that what ran in a region goes on.
func (c *cluster) unchanged(t *testing.T, ran map[string]bool) {
	t.Helper()
	if now := idsOf(c.servers[0].WaitRunning("over", len(ran), 60*time.Second)); !maps.Equal(now, ran) {
		t.Errorf("the work has changed: %v, then %v", ran, now)
	}
	soundly(t, len(ran), c.clients...)
}

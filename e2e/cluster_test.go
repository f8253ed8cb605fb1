package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// servers are agents that run a server each, and form a cluster.
type servers []*agent

// startServers starts n servers, each of which is told of the next one alone.
func startServers(t testing.TB, n int, more string) servers {
	t.Helper()
	all := newServers(t, n, more)
	for _, a := range all {
		a.start()
	}
	all.formed(t, n)
	return all
}

// newServers prepares them.
func newServers(t testing.TB, n int, more string) servers {
	t.Helper()
	var all servers
	for i := range n {
		all = append(all, newAgent(t, false, fmt.Sprintf("name = \"server-%d\"\n%s", i, more)))
	}
	for i, a := range all {
		joins := filepath.Join(a.dir, "server.hcl")
		text := fmt.Sprintf("server {\n  enabled = true\n  bootstrap_expect = %d\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  server_join {\n    retry_join = [%q]\n    retry_interval = \"1s\"\n  }\n}\n",
			n, all[(i+1)%n].serf)
		if err := os.WriteFile(joins, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a.args = append(a.args, "-config", joins)
	}
	return all
}

// formed waits until each server that runs sees n voters and a leader.
func (all servers) formed(t testing.TB, n int) {
	t.Helper()
	for _, a := range all {
		within(t, 20*time.Second, fmt.Sprintf("%d voters", n), func(ctx context.Context) error {
			select {
			case err := <-a.exited:
				a.exited <- err // for cleanup
				t.Fatalf("a server ended: %v\n%s", err, a.log.tail(30))
			default:
			}
			conf, err := a.api.Operator().RaftConfig(ctx)
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

// leader is the one that leads.
func (all servers) leader(t testing.TB) *agent {
	t.Helper()
	var found *agent
	within(t, 20*time.Second, "a leader", func(ctx context.Context) error {
		var err error
		for _, a := range all {
			var addr string
			if addr, err = a.api.Status().Leader(ctx); err != nil {
				continue // it may be the dead one
			}
			if at := slices.IndexFunc(all, func(o *agent) bool { return o.rpc == addr }); at >= 0 {
				found = all[at]
				return nil
			}
		}
		return errors.Join(errors.New("nobody leads"), err)
	})
	return found
}

// but are all others.
func (all servers) but(one *agent) servers {
	return slices.DeleteFunc(slices.Clone(all), func(a *agent) bool { return a == one })
}

// startClient starts an agent with n simulated nodes that is told of one server.
func startClient(t testing.TB, name string, n int, server *agent) *agent {
	t.Helper()
	layout := filepath.Join(t.TempDir(), name+".hcl")
	text := fmt.Sprintf("shape %q {\n  count = %d\n  cores = 8\n  mhz = 2000\n  memory = 65536\n  disk = 100000\n}\n", name, n)
	if err := os.WriteFile(layout, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, false, fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n  simulate = %q\n}\n", name, server.rpc, layout))
	a.start()
	return a
}

// TestEveryoneSeesEveryone: three servers and two clients, each with one address to join.
func TestEveryoneSeesEveryone(t *testing.T) {
	t.Parallel()
	all := startServers(t, 3, "")
	clients := servers{startClient(t, "left", 3, all[1]), startClient(t, "right", 2, all[2])}
	for _, a := range slices.Concat(all, clients) {
		a.ready(5)
	}
	for _, a := range all {
		lines := func(n int, word string, args ...string) {
			t.Helper()
			within(t, 20*time.Second, strings.Join(args, " "), func(context.Context) error {
				out, code := a.cli(args...)
				if got := strings.Count(out, word); code != 0 || got != n {
					return fmt.Errorf("exit %d, %d times %q, not %d:\n%s", code, got, word, n, out)
				}
				return nil
			})
		}
		lines(3, "alive", "server", "members")
		lines(1, "  true", "server", "members")
		lines(2, "follower", "operator", "raft", "list-peers")
		lines(5, "ready", "node", "status")
		lines(3, "127.0.0.1", "operator", "autopilot", "health")
	}
	for _, a := range clients {
		within(t, 20*time.Second, "the client to know all servers", func(context.Context) error {
			known, err := a.nomad.Agent().Servers()
			if err == nil && len(known) != 3 {
				err = fmt.Errorf("it knows %v", known)
			}
			return err
		})
	}
	// Its only address was that of a server that goes away: it goes on with another.
	all[1].kill()
	rest := all.but(all[1])
	within(t, 30*time.Second, "a job registered", func(ctx context.Context) error { return registerAt(ctx, rest[0].api, "on") })
	rest[1].running("on", 1, 20*time.Second)
	clients[0].running("on", 1, 20*time.Second)
	if out, code := all[1].cli("server", "members"); code == 0 {
		t.Fatalf("the dead server's agent answers: %s", out)
	}
}

// load registers jobs, one after the other, through whoever answers, until it is
// stopped.
type load struct {
	all   servers
	mu    sync.Mutex
	acked []string
	stop  chan struct{}
	done  sync.WaitGroup
}

func startLoad(t testing.TB, all servers, every time.Duration) *load {
	l := &load{all: all, stop: make(chan struct{})}
	for w := range 3 {
		l.done.Go(func() {
			tick := time.NewTicker(3 * every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
				case <-l.stop:
					return
				}
				id := fmt.Sprintf("load-%d-%d", w, i)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				if err := registerAt(ctx, all[(w+i)%len(all)].api, id); err == nil {
					l.mu.Lock()
					l.acked = append(l.acked, id)
					l.mu.Unlock()
				}
				cancel()
			}
		})
	}
	return l
}

// more waits until n more jobs are acknowledged.
func (l *load) more(t testing.TB, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acked)
	}
	was := count()
	within(t, 30*time.Second, "more jobs", func(context.Context) error {
		if now := count(); now < was+n {
			return fmt.Errorf("%d after %d", now, was)
		}
		return nil
	})
}

// end stops the load and gives the IDs of all jobs that were acknowledged.
func (l *load) end() []string {
	close(l.stop)
	l.done.Wait()
	return l.acked
}

func registerAt(ctx context.Context, c *api.Client, id string) error {
	job := &structs.Job{ID: id, Name: id, Type: structs.JobTypeBatch, Priority: 50, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: 1, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1h"}, Resources: &structs.Resources{CPU: 1, MemoryMB: 10},
		}},
	}}}
	_, err := c.Jobs().Register(ctx, &structs.JobRegisterRequest{Job: job})
	return err
}

// killLeader kills the leader and gives the time until the next write was accepted.
func killLeader(t testing.TB, all servers, round int) time.Duration {
	t.Helper()
	lost := all.leader(t)
	rest := all.but(lost)
	lost.kill()
	killed := time.Now()
	var took time.Duration
	tries := 0
	within(t, 30*time.Second, "a write after the leader was killed", func(ctx context.Context) error {
		tries++
		err := registerAt(ctx, rest[tries%2].api, fmt.Sprintf("after-%d", round))
		took = time.Since(killed)
		return err
	})
	lost.start()
	all.formed(t, len(all))
	return took
}

// TestLeaderKilled: leaders are killed while jobs are registered. Nothing that was
// acknowledged is lost, and nothing is placed twice.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	leadersKilled(t, 2)
}

// BenchmarkLeaderKilled is the time from the leader's kill to the next accepted write.
func BenchmarkLeaderKilled(b *testing.B) {
	for b.Loop() {
		times := leadersKilled(b, 5)
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds(), "s/median")
		b.ReportMetric(times[len(times)-1].Seconds(), "s/most")
	}
}

func leadersKilled(t testing.TB, rounds int) []time.Duration {
	all := startServers(t, 3, "")
	client := startClient(t, "node", 4, all[0])
	client.ready(4)
	l := startLoad(t, all, 20*time.Millisecond)
	var times []time.Duration
	for i := range rounds {
		l.more(t, 25)
		times = append(times, killLeader(t, all, i))
	}
	acked := l.end()
	t.Logf("killed → next accepted write: %v; %d jobs acknowledged", times, len(acked))
	if len(acked) == 0 {
		t.Fatal("no job was acknowledged")
	}
	for i := range rounds {
		acked = append(acked, fmt.Sprintf("after-%d", i))
	}
	within(t, time.Minute, "all that was acknowledged to run, once", func(ctx context.Context) error {
		return allOnce(ctx, all[0].api, acked)
	})
	return times
}

// allOnce returns which jobs have not exactly one allocation that shall run and runs. An
// instance that stands twice will not get better.
func allOnce(ctx context.Context, c *api.Client, jobs []string) error {
	allocs, _, err := c.Allocations().List(ctx, nil)
	if err != nil {
		return err
	}
	running, wanted := map[string]int{}, map[string]int{}
	last := map[string]*structs.AllocListStub{} // of each job
	for _, a := range allocs {
		last[a.JobID] = a
		if a.DesiredStatus == structs.AllocDesiredRun {
			wanted[a.JobID]++
			if a.ClientStatus == structs.AllocClientRunning {
				running[a.JobID]++
			}
		}
	}
	var wrong []string
	for _, id := range jobs {
		if wanted[id] != 1 || running[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d wanted, %d run", id, wanted[id], running[id]))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	n := len(wrong)
	wrong = wrong[:min(3, n)]
	first, _, _ := strings.Cut(wrong[0], ":")
	evals, _, err := c.Jobs().Evaluations(ctx, first, nil)
	if err != nil {
		return err
	}
	reported, err := json.Marshal([]any{last[first], evals})
	if err != nil {
		return err
	}
	return fmt.Errorf("%d of %d jobs: %s; an allocation and the evaluations of the first: %s", n, len(jobs), strings.Join(wrong, "; "), reported)
}

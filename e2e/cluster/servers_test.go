package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestEveryoneSeesEveryone: three servers and two clients, each with one address to join.
func TestEveryoneSeesEveryone(t *testing.T) {
	t.Parallel()
	all := harness.StartServers(t, 3, "")
	clients := harness.Servers{harness.StartClient(t, "left", 3, all[1]), harness.StartClient(t, "right", 2, all[2])}
	for _, a := range slices.Concat(all, clients) {
		a.WaitReady(5)
	}
	for _, a := range all {
		lines := func(n int, word string, args ...string) {
			t.Helper()
			harness.Within(t, 20*time.Second, strings.Join(args, " "), func(context.Context) error {
				out, code := a.CLI(args...)
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
		harness.Within(t, 20*time.Second, "the client to know all servers", func(context.Context) error {
			known, err := a.Nomad.Agent().Servers()
			if err == nil && len(known) != 3 {
				err = fmt.Errorf("it knows %v", known)
			}
			return err
		})
	}
	// Its only address was that of a server that goes away: it goes on with another.
	all[1].Kill()
	rest := all.Except(all[1])
	harness.Within(t, 30*time.Second, "a job registered", func(ctx context.Context) error { return harness.Register(ctx, rest[0].API, "on") })
	rest[1].WaitRunning("on", 1, 20*time.Second)
	clients[0].WaitRunning("on", 1, 20*time.Second)
	if out, code := all[1].CLI("server", "members"); code == 0 {
		t.Fatalf("the dead server's agent answers: %s", out)
	}
}

// killLeader kills the leader and gives the time until the next write was accepted.
func killLeader(t testing.TB, all harness.Servers, round int) time.Duration {
	t.Helper()
	lost := all.Leader(t)
	rest := all.Except(lost)
	lost.Kill()
	killed := time.Now()
	var took time.Duration
	tries := 0
	harness.Within(t, 30*time.Second, "a write after the leader was killed", func(ctx context.Context) error {
		tries++
		err := harness.Register(ctx, rest[tries%2].API, fmt.Sprintf("after-%d", round))
		took = time.Since(killed)
		return err
	})
	lost.Start()
	all.WaitFormed(t, len(all))
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
	all := harness.StartServers(t, 3, "")
	client := harness.StartClient(t, "node", 4, all[0])
	client.WaitReady(4)
	l := harness.StartLoad(t, all, 20*time.Millisecond)
	var times []time.Duration
	for i := range rounds {
		l.WaitMore(t, 25)
		times = append(times, killLeader(t, all, i))
	}
	acked := l.End()
	t.Logf("killed → next accepted write: %v; %d jobs acknowledged", times, len(acked))
	if len(acked) == 0 {
		t.Fatal("no job was acknowledged")
	}
	for i := range rounds {
		acked = append(acked, fmt.Sprintf("after-%d", i))
	}
	harness.Within(t, time.Minute, "all that was acknowledged to run, once", func(ctx context.Context) error {
		return harness.AllRunOnce(ctx, all[0].API, acked)
	})
	return times
}

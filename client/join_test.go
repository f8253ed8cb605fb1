package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/structs"
)

// crowd is the gossip as many joiners find it, which notes when each joins.
type crowd struct {
	mu sync.Mutex
	at []time.Time
}

// gossipMember is one joiner in a crowd.
type gossipMember struct {
	*crowd
	joined bool // guarded by crowd.mu
}

func (p *gossipMember) Join(string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.joined {
		p.joined = true
		p.at = append(p.at, time.Now())
	}
	return nil
}

func (p *gossipMember) Servers() []clientpool.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.joined {
		return nil
	}
	return []clientpool.Member{{ID: "s"}}
}

func (p *gossipMember) Alone() bool { return len(p.Servers()) == 0 }

// together starts n joiners at one time, each with an address of the gossip, and tells what becomes of them within a minute: when
// each has joined, from the start.
func together(t *testing.T, n int, known bool, then func(*joiner)) []time.Duration {
	t.Helper()
	var out []time.Duration
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, start := &crowd{}, time.Now()
		var wg sync.WaitGroup
		for range n {
			j := newJoiner(&gossipMember{crowd: c}, func() bool { return known }, GossipConfig{Join: []string{"10.0.0.1:4650"}}, hclog.NewNullLogger())
			wg.Go(func() { j.keepJoined(ctx) })
			wg.Go(func() { then(j) })
		}
		time.Sleep(time.Minute)
		cancel()
		wg.Wait()
		for _, at := range c.at {
			out = append(out, at.Sub(start))
		}
	})
	if len(out) != n {
		t.Fatalf("%d of %d have joined", len(out), n)
	}
	return out
}

// most is the greatest number that joined within any second.
func most(at []time.Duration) int {
	slices.Sort(at)
	n, from := 0, 0
	for to := range at {
		for at[to]-at[from] > time.Second {
			from++
		}
		n = max(n, to-from+1)
	}
	return n
}

// TestJoinsSpread: those that start together join over the time that servers tell, from the first time on; a few are not slowed down.
func TestJoinsSpread(t *testing.T) {
	const n = 3000
	contacts := []string{"10.0.0.1:4650"}
	f := func(what string, at []time.Duration, from, to time.Duration, perSecond int) {
		t.Helper()
		if first, last := slices.Min(at), slices.Max(at); first < from || last > to {
			t.Errorf("%s: they join from %s to %s, want %s to %s", what, first, last, from, to)
		}
		if got := most(at); got > perSecond {
			t.Errorf("%s: %d join within a second, want %d", what, got, perSecond)
		}
	}
	answer := func(after, spread time.Duration) func(*joiner) {
		return func(j *joiner) { time.Sleep(after); j.learn(contacts, spread) }
	}
	f("a large pool", together(t, n, true, answer(100*time.Millisecond, 30*time.Second)), 100*time.Millisecond, 31*time.Second, n/30*2)
	f("a small pool", together(t, 5, true, answer(100*time.Millisecond, 50*time.Millisecond)), 100*time.Millisecond, 200*time.Millisecond, 5)
	f("there is no leader for a while", together(t, n, true, func(j *joiner) {
		for range 10 {
			j.missed(structs.Errorf(structs.CodeNoLeader, "no leader"))
			time.Sleep(time.Second)
		}
		j.learn(contacts, 30*time.Second)
	}), 10*time.Second, 41*time.Second, n/30*2)
	f("servers without gossip", together(t, n, true, func(*joiner) {}), 15*time.Second, 45*time.Second, n/30*2)
	f("no server is known", together(t, n, false, func(*joiner) {}), 0, time.Second, n)
	f("no server is reached", together(t, 5, true, func(j *joiner) { j.missed(errors.New("connection refused")) }), 0, time.Second, 5)
	if at := together(t, n, false, func(*joiner) {}); slices.Max(at)-slices.Min(at) < 900*time.Millisecond {
		t.Errorf("%d that know no server join within %s", n, slices.Max(at)-slices.Min(at))
	}
}

// TestJoinsByGossipWhenNoServerAnswers: what is configured as a server may be another client. Who reaches none joins the gossip
// at once, and finds the servers there.
func TestJoinsByGossipWhenNoServerAnswers(t *testing.T) {
	gone := newFakeServer(t)
	gone.close()
	r := newRig(t)
	p := announce(t, r.s, "server-1", "")
	r.config.Servers = []string{gone.addr}
	r.config.Gossip = GossipConfig{On: true, BindAddr: "127.0.0.1:0", Key: gossipKey, Join: []string{p.Addr()}, ProbeInterval: 200 * time.Millisecond, Retry: time.Hour}
	begun := time.Now()
	r.start() // it registers, or the test fails
	t.Logf("registered after %s", time.Since(begun))
}

package rpc_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
)

// leaderTracker is who leads, and changes.
type leaderTracker struct {
	endpointtest.Alone
	mu      sync.Mutex
	leader  string
	changed chan struct{}
}

func (h *leaderTracker) Leader() rpc.LeaderInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return rpc.LeaderInfo{Addr: h.leader}
}

func (h *leaderTracker) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *leaderTracker) set(leader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader = leader
	close(h.changed)
	h.changed = make(chan struct{})
}

// TestNoLeaderIsLogged: that nobody leads is logged when it lasts, with who is missing, then once a minute, and its end once.
func TestNoLeaderIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := &leaderTracker{leader: "10.0.0.1:4647", changed: make(chan struct{})}
		e := rpc.New(rpc.Config{ID: "a"}, rpc.Deps{Leadership: h, Cluster: endpointtest.Three{}, Gossip: endpointtest.Three{}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { e.WatchLeader(ctx) })
		f := func(what, leader string, after time.Duration, want ...string) {
			t.Helper()
			synctest.Wait()
			log.Reset()
			h.set(leader)
			time.Sleep(after)
			synctest.Wait()
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if log.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(want) {
				t.Fatalf("%s: %d lines, want %d\n%s", what, len(lines), len(want), log.String())
			}
			for i, line := range lines {
				if !strings.Contains(line, want[i]) {
					t.Errorf("%s: %s, want %s", what, line, want[i])
				}
			}
		}
		missing := `1 of 3 servers can be seen, at least 2 must be; missing: b.global at 10.0.0.2:4647, c.global at 10.0.0.3:4647`
		f("an election", "", 9*time.Second)
		f("it is over", "10.0.0.2:4647", time.Hour)
		f("nobody leads", "", 9*time.Second)
		f("still nobody, after another election", "", 62*time.Second, missing, "for=1m10s")
		f("one leads", "10.0.0.3:4647", time.Hour, "[INFO]  there is a leader again: leader=10.0.0.3:4647 after=1m11s")
		f("it stays", "10.0.0.3:4647", time.Hour)
		cancel()
		wg.Wait()
	})
}

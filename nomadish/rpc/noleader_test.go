package rpc

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// throne is who leads, and changes.
type throne struct {
	alone
	mu      sync.Mutex
	leader  string
	changed chan struct{}
}

func (h *throne) Reign() Reign {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Reign{Addr: h.leader}
}

func (h *throne) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *throne) set(leader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader = leader
	close(h.changed)
	h.changed = make(chan struct{})
}

// three are servers of which gossip sees this one alone.
type three struct{ alone }

func (three) Configuration() (*structs.RaftConfigurationReply, error) {
	return &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{
		{ID: "a", Node: "a.global", Address: "10.0.0.1:4647", Voter: true}, {ID: "b", Node: "b.global", Address: "10.0.0.2:4647", Voter: true},
		{ID: "c", Node: "c.global", Address: "10.0.0.3:4647", Voter: true},
	}}, nil
}

func (three) Members() []structs.ServerMember        { return nil }
func (three) Join([]string) (reached int, err error) { return 0, nil }
func (three) ForceLeave(string, bool) error          { return nil }

// TestNoLeaderIsLogged: that nobody leads is logged when it lasts, with who is missing, then once a minute, and its end once.
func TestNoLeaderIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := &throne{leader: "10.0.0.1:4647", changed: make(chan struct{})}
		e := New(Config{ID: "a"}, Deps{Leadership: h, Cluster: three{}, Gossip: three{}, Now: time.Now, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
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

// forsaken is a server that knows no leader, and heard one 65 s ago.
type forsaken struct{ alone }

func (forsaken) Reign() Reign               { return Reign{} }
func (forsaken) IsLeader() bool             { return false }
func (forsaken) LastContact() time.Duration { return 65 * time.Second }

// What a server answers by itself says how long it has heard no leader.
func TestAnswersSayHowOldTheyMayBe(t *testing.T) {
	s := newSite(t)
	s.Leadership, s.Cluster = forsaken{}, three{}
	f := func(what string, meta structs.QueryMeta, err error) {
		t.Helper()
		if err != nil || meta.KnownLeader || meta.LastContact != 65*time.Second {
			t.Errorf("%s: %+v, %v", what, meta, err)
		}
	}
	check, err := s.check(t.Context(), &structs.CheckRequest{})
	f("check", check.QueryMeta, err)
	conf, err := s.raftConfig(t.Context(), &structs.EmptyRequest{})
	f("raft configuration", *conf.Meta, err)
	peers, err := s.peers(t.Context(), &structs.EmptyRequest{})
	f("peers", peers.QueryMeta, err)
	nodes := &structs.NodeListReply{}
	err = s.query(t.Context(), &structs.QueryOptions{}, &nodes.QueryMeta, func(*state.WatchSet, *state.Snapshot) (uint64, error) { return 1, nil })
	f("a query", nodes.QueryMeta, err)
}

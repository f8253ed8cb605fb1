package client

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// TestTrouble: servers that do not answer are logged when that lasts, with their addresses, and again once a minute; that one answers
// again is logged too.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &syncBuffer{}
		n := &node{
			c: &Client{config: Config{Gossip: GossipConfig{Join: []string{"10.0.0.9:4650"}}}}, servers: newServers(nil, []string{"10.0.0.1:4647", "10.0.0.2:4647"}),
			logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Info}),
		}
		failing, start := &trouble{node: n}, time.Now()
		want := func(lines int, text string) {
			t.Helper()
			if got := log.count("\n"); got != lines || log.count(text) != lines {
				t.Errorf("after %s %d lines, %d of them say %q; want %d", time.Since(start), got, log.count(text), text, lines)
			}
			log.b.Reset()
		}
		silent := func(long time.Duration) {
			for range int(long / time.Second) {
				time.Sleep(time.Second)
				failing.log(errors.New("connection refused"), true, time.Since(start))
			}
		}
		silent(2 * time.Second)
		want(0, "the servers")
		silent(30 * time.Second)
		want(1, `servers="10.0.0.1:4647, 10.0.0.2:4647"`)
		silent(3 * time.Minute)
		want(3, "the servers do not answer")
		failing.over()
		want(1, "a server answers again")

		for range 5 {
			failing.log(structs.Errorf(structs.CodeForbidden, "another secret"), true, 0)
			failing.log(structs.Errorf(structs.CodeForbidden, "another secret"), true, 0)
		}
		want(1, "refuse this node")
		failing.log(errors.New("connection refused"), true, time.Hour)
		want(0, "the servers") // it has had an answer
		time.Sleep(3 * time.Second)
		failing.log(errors.New("connection refused"), true, time.Hour)
		want(1, "for=3s")

		failing.over()
		want(1, "a server answers again")
		n.servers = newServers(nil, nil)
		time.Sleep(3 * time.Second)
		failing.log(errNoServer, false, time.Hour)
		want(1, "gossip=10.0.0.9:4650")
	})
}

// TestGossipPortTaken: a client that knows its servers by gossip alone does not start without it; one that knows them otherwise does.
func TestGossipPortTaken(t *testing.T) {
	r := newRig(t)
	other := announce(t, r.s, "other", "")
	servers := r.config.Servers
	r.config.Gossip = GossipConfig{On: true, MayMiss: true, BindAddr: other.Addr(), Join: []string{other.Addr()}}
	r.config.Servers = nil
	if c, err := New(r.config); err == nil || !strings.Contains(err.Error(), "client { servers") {
		if c != nil {
			r.c = c
			r.stop()
		}
		t.Fatalf("without a server: %v", err)
	}
	r.config.Servers = servers
	r.start()
}

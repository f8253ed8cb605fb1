package client

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// leaderless is a server that is cut off from the others: it answers that it knows no leader.
func leaderless(t *testing.T, code structs.Code) (addr string, contacted *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		wg.Wait()
	})
	contacted = &atomic.Int64{}
	m := wire.NewMux(hclog.NewNullLogger(), 0)
	m.Handle(wire.MethodNodeRegister, func(context.Context, *wire.Call) error {
		contacted.Add(1)
		return structs.Errorf(code, "No cluster leader")
	})
	wg.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				conn, err := (*wire.TLS)(nil).Accept(ctx, raw, time.Minute)
				if err != nil {
					_ = raw.Close()
					return
				}
				if s, err := wire.Server(conn, wire.Config{}); err == nil {
					m.Serve(ctx, s)
				}
			})
		}
	})
	return ln.Addr().String(), contacted
}

// TestServerWithoutLeaderIsLeft: a client turns to another server when its own knows no leader, and stays there.
func TestServerWithoutLeaderIsLeft(t *testing.T) {
	for _, code := range []structs.Code{structs.CodeNoLeader, structs.CodeNotLeader} {
		t.Run(string(code), func(t *testing.T) {
			good := newFakeServer(t)
			addr, contacted := leaderless(t, code)
			pool := wire.NewPool(wire.Config{}, nil)
			defer pool.Close()
			f := func(s *servers) {
				t.Helper()
				var reply structs.NodeUpdateReply
				for range 3 {
					args := &structs.NodeRegisterRequest{Node: &structs.Node{ID: "n"}}
					if err := s.call(t.Context(), maxHeartbeatLimit, wire.MethodNodeRegister, args, &reply); err != nil {
						t.Fatal(err)
					}
				}
				if now, _ := s.current(); now != good.addr {
					t.Errorf("it speaks with %s still", now)
				}
				if n := contacted.Swap(0); n != 1 {
					t.Errorf("the one without a leader was asked %d times", n)
				}
			}
			f(newServers(pool, []string{addr, good.addr}))
			hinted := newServers(pool, []string{addr})
			hinted.hint(good.addr)
			f(hinted)
		})
	}
	t.Run("all of them", func(t *testing.T) {
		one, _ := leaderless(t, structs.CodeNotLeader)
		other, _ := leaderless(t, structs.CodeNotLeader)
		pool := wire.NewPool(wire.Config{}, nil)
		defer pool.Close()
		err := newServers(pool, []string{one, other}).call(t.Context(), time.Minute, wire.MethodNodeRegister, &structs.NodeRegisterRequest{}, &structs.NodeUpdateReply{})
		if structs.CodeOf(err) != structs.CodeNotLeader {
			t.Errorf("answered %v", err)
		}
	})
}

// TestServersWordComesFirst: of a call that no server took, what one has said is told, not that another is not there.
func TestServersWordComesFirst(t *testing.T) {
	addr, _ := leaderless(t, structs.CodeNoLeader)
	gone := newFakeServer(t)
	gone.close()
	pool := wire.NewPool(wire.Config{}, nil)
	defer pool.Close()
	for _, seed := range [][]string{{addr, gone.addr}, {gone.addr, addr}} {
		args := &structs.NodeRegisterRequest{Node: &structs.Node{ID: "n"}}
		err := newServers(pool, seed).call(t.Context(), maxHeartbeatLimit, wire.MethodNodeRegister, args, &structs.NodeUpdateReply{})
		if structs.CodeOf(err) != structs.CodeNoLeader {
			t.Errorf("%v", err)
		}
	}
}

// TestSetServers: a client is notified of other servers while it runs, and changes nothing for those that nobody is at.
func TestSetServers(t *testing.T) {
	r := newRig(t).start()
	other := newFakeServer(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	dead := gone.Addr().String()
	if err := r.c.SetServers([]string{dead}); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), dead) {
		t.Errorf("nobody is there: %v", err)
	}
	for _, bad := range [][]string{nil, make([]string, maxServers+1)} {
		if err := r.c.SetServers(bad); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%d servers: %v", len(bad), err)
		}
	}
	if got := r.c.Servers(); len(got) != 1 || got[0] != r.s.addr {
		t.Fatalf("the servers are %v", got)
	}
	if err := r.c.SetServers([]string{other.addr, dead, other.addr}); err != nil {
		t.Fatal(err)
	}
	if got := r.c.Servers(); len(got) != 2 || got[0] != other.addr || got[1] != dead {
		t.Errorf("the servers are %v", got)
	}
	other.until("the node turns to the other server", func() bool { return other.beats[r.c.NodeID()] > 0 || other.registered[r.c.NodeID()] > 0 })
}

package nomadish

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/clientpool"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/structs"
)

// gossips has a fleet's servers take part in the clients' gossip.
func gossips(_ int, c *Config) {
	c.ClientGossip = clientgossip.Options{On: true, Addr: "127.0.0.1:0", Key: bytes.Repeat([]byte{3}, 16), Probe: 200 * time.Millisecond}
}

// member takes part in the clients' gossip beside servers.
func member(t *testing.T, id, role, at string) *clientpool.Pool {
	t.Helper()
	c := clientpool.Config{
		ID: id, Role: role, Region: "global", BindAddr: "127.0.0.1:0", Key: bytes.Repeat([]byte{3}, 16), ProbeInterval: 200 * time.Millisecond,
	}
	if role == clientpool.RoleServer {
		c.RPCAddr = "127.0.0.1:1"
	}
	p, err := clientpool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() }) // it may have been ended
	if err := p.Join(at); err != nil {
		t.Fatal(err)
	}
	return p
}

const nodeID = "0f7e3a52-0000-7000-8000-000000000001"

// registered is a node of a client that has nothing but its session.
func registered(t *testing.T, s *Server) *wire.Session {
	t.Helper()
	session, err := wire.Dial(t.Context(), "", s.RPCAddr(), wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mux := wire.NewMux(hclog.NewNullLogger(), 0)
	mux.Handle(wire.MethodClientPing, wire.Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, nil
	}))
	var wg sync.WaitGroup
	wg.Go(func() { mux.Serve(context.Background(), session) })
	t.Cleanup(func() { _ = session.Close(); wg.Wait() })
	node := &structs.Node{ID: nodeID, SecretID: "s", Name: "n", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}}
	within(t, time.Minute, "registering", func(ctx context.Context) error {
		reply := &structs.NodeUpdateReply{}
		if err := session.Call(ctx, wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node}, reply); err != nil {
			return err
		}
		if reply.Gossip == nil || len(reply.Gossip.Addrs) == 0 {
			return fmt.Errorf("it is not told of the gossip")
		}
		return session.Call(ctx, wire.MethodClientHello, &structs.NodeHeartbeatRequest{NodeID: nodeID, SecretID: "s"}, &structs.WriteReply{})
	})
	return session
}

func (f *fleet) status(i int) string {
	if n := f.all[i].store.Snapshot().Node(nil, nodeID); n != nil {
		return n.Status
	}
	return ""
}

// TestClientLostByBoth: three servers are in one pool of the clients; a client of a follower whose session and gossip end is
// down, whoever leads, long before its heartbeats are missed.
func TestClientLostByBoth(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(i int, c *Config) {
		gossips(i, c)
		c.Heartbeats.MinTTL, c.Heartbeats.Grace, c.Heartbeats.Liveness.Check = time.Hour, time.Hour, 5*time.Second // a machine of tests may be busy
	})
	for i := range f.all {
		within(t, time.Minute, "one pool", func(context.Context) error {
			if n := len(f.all[i].clients.Servers()); n != 2 {
				return fmt.Errorf("server %d sees %d others", i, n)
			}
			return nil
		})
	}
	follower := 0
	for f.all[follower].IsLeader() {
		follower++
	}
	p := member(t, nodeID, clientpool.RoleClient, f.all[follower].ClientGossipAddr())
	session := registered(t, f.all[follower])
	for i := range f.all {
		within(t, time.Minute, "the client in the pool", func(context.Context) error {
			if m, _ := f.all[i].clients.Member(nodeID); !m.Alive() || f.status(i) != structs.NodeStatusReady {
				return fmt.Errorf("server %d: %v, node %q", i, m, f.status(i))
			}
			return nil
		})
	}
	_ = session.Close() // it is lost; an error says that it was already
	if err := p.Shutdown(); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the node down", func(context.Context) error {
		if s := f.status(0); s != structs.NodeStatusDown {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
}

// TestSpreadOfThoseThatStart: clients that are started together are told to join over a time that grows with their number, before
// any of them is in the pool.
func TestSpreadOfThoseThatStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, gossips)
	session := registered(t, f.all[0])
	var spread time.Duration
	for i := range 49 {
		node := &structs.Node{
			ID: fmt.Sprintf("0f7e3a52-0000-7000-8000-1%011d", i), SecretID: "s", Name: "n", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
		}
		reply := &structs.NodeUpdateReply{}
		if err := session.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node}, reply); err != nil {
			t.Fatal(err)
		}
		spread = reply.Gossip.Spread
	}
	if want := 50 * 10 * time.Millisecond; spread != want {
		t.Errorf("the 50th is told to join within %s, want %s", spread, want)
	}
}

// words is a log.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *words) count(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.b.String(), text)
}

// TestFalseMembers: a client that calls itself a server has no effect and is logged once; one with the ID of another does not
// take that one's place.
func TestFalseMembers(t *testing.T) {
	t.Parallel()
	var log words
	f := newFleet(t, 1, func(i int, c *Config) {
		gossips(i, c)
		c.Heartbeats.MinTTL, c.Heartbeats.Grace, c.Heartbeats.Liveness.Check = time.Hour, time.Hour, time.Minute // it sends no heartbeats, and may be slow
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
	})
	s := f.all[0]
	session := registered(t, s)
	honest := member(t, nodeID, clientpool.RoleClient, s.ClientGossipAddr())
	member(t, "0f7e3a52-0000-7000-8000-0000000000ff", clientpool.RoleServer, s.ClientGossipAddr())
	within(t, time.Minute, "a line in the log", func(context.Context) error {
		if log.count("calls itself a server") == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	reply := &structs.NodeUpdateReply{}
	if err := session.Call(t.Context(), wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{NodeID: nodeID, SecretID: "s"}, reply); err != nil {
		t.Fatal(err)
	}
	if len(reply.Servers) != 1 || reply.Servers[0] != s.RPCAddr() {
		t.Errorf("clients are told of %v", reply.Servers)
	}
	within(t, time.Minute, "the honest one in the pool", func(context.Context) error { return s.clients.Probe(nodeID) })
	thief, err := clientpool.New(clientpool.Config{
		ID: nodeID, Role: clientpool.RoleClient, Region: "global", BindAddr: "127.0.0.1:0", Key: bytes.Repeat([]byte{3}, 16), ProbeInterval: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = thief.Join(s.ClientGossipAddr()) // whether it gets in is its own affair
	_ = thief.Leave()
	if err := thief.Shutdown(); err != nil {
		t.Fatal(err)
	}
	err = session.Call(t.Context(), wire.MethodNodeHeartbeat, &structs.NodeHeartbeatRequest{NodeID: nodeID, SecretID: "stolen"}, reply)
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("with another secret: %v", err)
	}
	within(t, time.Minute, "the honest one heard", func(context.Context) error {
		if m, _ := s.clients.Member(nodeID); !m.Alive() || m.Addr != honest.Addr() {
			return fmt.Errorf("%v", m)
		}
		return s.clients.Probe(nodeID)
	})
	if n := log.count("calls itself a server"); n != 1 {
		t.Errorf("the liar is logged %d times", n)
	}
	if got := f.status(0); got != structs.NodeStatusReady {
		t.Errorf("the honest one is %s", got)
	}
}

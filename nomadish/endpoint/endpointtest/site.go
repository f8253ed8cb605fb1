// Package endpointtest is what the tests of the endpoints, and of the router below them, have in common: a state that entries go
// into, a cluster of one server that leads itself, and jobs and nodes that are small. Only tests import it.
package endpointtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Alone is a cluster of one that leads itself, and its heartbeats.
type Alone struct{}

// Reign implements rpc.Leadership.
func (Alone) Reign() rpc.Reign {
	return rpc.Reign{Addr: "127.0.0.1:1", ID: "s", Over: context.Background()}
}

// IsLeader implements rpc.Leadership.
func (Alone) IsLeader() bool { return true }

// Verify implements rpc.Leadership.
func (Alone) Verify(context.Context) error { return nil }

// Changed implements rpc.Leadership.
func (Alone) Changed() <-chan struct{} { return nil }

// LastContact implements rpc.Leadership.
func (Alone) LastContact() time.Duration { return 0 }

// Readable implements rpc.Cluster.
func (Alone) Readable(structs.LogType) error { return nil }

// Configuration implements rpc.Cluster.
func (Alone) Configuration() (*structs.RaftConfigurationReply, error) {
	return nil, errors.New("not asked for")
}

// Beat implements node.Heartbeats.
func (Alone) Beat(string) time.Duration { return time.Second }

// Three are servers of which gossip sees the one with the ID a alone.
type Three struct{ Alone }

// Configuration implements rpc.Cluster.
func (Three) Configuration() (*structs.RaftConfigurationReply, error) {
	return &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{
		{ID: "a", Node: "a.global", Address: "10.0.0.1:4647", Voter: true}, {ID: "b", Node: "b.global", Address: "10.0.0.2:4647", Voter: true},
		{ID: "c", Node: "c.global", Address: "10.0.0.3:4647", Voter: true},
	}}, nil
}

// Members implements rpc.Gossip.
func (Three) Members() []structs.ServerMember { return nil }

// Site is a state, who commits to it, and a router over it.
type Site struct {
	T      testing.TB
	Store  *state.Store
	Router *rpc.Router
	Index  uint64 // of the last entry

	mu     sync.Mutex
	writer *state.Writer
}

// New makes a site with nodes, of region global.
func New(t testing.TB, nodes ...*structs.Node) *Site {
	t.Helper()
	store, writer := state.New(state.Options{EventBuffer: 10})
	s := &Site{T: t, Store: store, writer: writer}
	s.Router = rpc.New(rpc.Config{Region: structs.DefaultRegion}, rpc.Deps{Store: store, Leadership: Alone{}, Cluster: Alone{}})
	for _, n := range nodes {
		s.Put(&structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "e"})
	}
	return s
}

// Put applies an entry as it is.
func (s *Site) Put(entry any) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Index++
	var err error
	switch p := entry.(type) {
	case *structs.NodeRegisterEntry:
		err = s.writer.NodeRegister(s.Index, p)
	case *structs.SchedulerConfigEntry:
		err = s.writer.SchedulerConfig(s.Index, p)
	case *structs.JobRegisterEntry:
		err = s.writer.JobRegister(s.Index, p)
	case *structs.PlanCommit:
		err = s.writer.PlanApply(s.Index, p)
	default:
		err = fmt.Errorf("an entry of type %T is applied by Apply", entry)
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// Apply implements rpc.Applier: it sends an entry through the encoding of the log.
func (s *Site) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	raw, err := codec.Encode(payload)
	if err != nil {
		return 0, err
	}
	entry, err := structs.NewLogPayload(t)
	if err != nil {
		return 0, err
	}
	if err := codec.Decode(raw, entry); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Index++
	return s.Index, s.writer.Apply(s.Index, t, entry)
}

// Asks has a job's group g wait for some instances.
func (s *Site) Asks(ns, job string, missing int) {
	s.T.Helper()
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: time.Now().UnixNano(), Asks: []*structs.AskUpdate{{
		Namespace: ns, JobID: job, Group: "g", Missing: missing, EvalID: "b",
	}}}}})
}

// ID is a UUID with a number, by which they are ordered.
func ID(n int) string { return fmt.Sprintf("%08d-0000-8000-8000-000000000000", n) }

// Pair is the two ends of a session.
func Pair(t testing.TB) (server, client *wire.Session) {
	t.Helper()
	a, b := net.Pipe()
	server, err := wire.Server(a, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if client, err = wire.Client(b, wire.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return server, client
}

// Package endpointtest is what the tests of the endpoints, and of the router below them, have in common: a router over the log and
// state of testcluster, a cluster of one server that leads itself, and jobs and nodes that are small. Only tests import it.
package endpointtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Alone is a cluster of one that leads itself, and its heartbeats.
type Alone struct{}

// Leader implements rpc.Leadership.
func (Alone) Leader() rpc.LeaderInfo {
	return rpc.LeaderInfo{Addr: "127.0.0.1:1", ID: "s", Over: context.Background()}
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
	return nil, errors.New("not requested")
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

// Site is a server's log and state, and a router over it.
type Site struct {
	*testcluster.Log
	T      testing.TB
	Router *rpc.Router
}

// New makes a site with nodes, of region global.
func New(t testing.TB, nodes ...*structs.Node) *Site {
	t.Helper()
	s := &Site{Log: testcluster.New(0, state.Options{EventBuffer: 10}), T: t}
	s.Router = rpc.New(rpc.Config{Region: structs.DefaultRegion}, rpc.Deps{Store: s.Store, Leadership: Alone{}, Cluster: Alone{}})
	for _, n := range nodes {
		s.Put(&structs.NodeRegisterEntry{Node: n, Time: 1, EvalSeed: "e"})
	}
	return s
}

// Put commits an entry.
func (s *Site) Put(entry any) {
	s.T.Helper()
	s.Log.Put(s.T, entry)
}

// Requests has a job's group g wait for some instances.
func (s *Site) Requests(ns, job string, missing int) {
	s.T.Helper()
	s.Put(testcluster.Commit(&structs.JudgedPlan{Time: time.Now().UnixNano(), Requests: []*structs.RequestUpdate{{
		Namespace: ns, JobID: job, Group: "g", Missing: missing, EvalID: "b",
	}}}))
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

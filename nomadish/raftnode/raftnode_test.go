package raftnode

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/structs"
)

// aloneWith is a Raft of one server, which leads.
func aloneWith(t *testing.T, machine raft.FSM) *Node {
	t.Helper()
	addr, transport := raft.NewInmemTransport("")
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "alone", hclog.NewNullLogger()
	mem := raft.NewInmemStore()
	alone := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: addr}}}
	if err := raft.BootstrapCluster(conf, mem, mem, raft.NewInmemSnapshotStore(), transport, alone); err != nil {
		t.Fatal(err)
	}
	r, err := raft.NewRaft(conf, machine, mem, mem, raft.NewInmemSnapshotStore(), transport)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Raft: r, ended: make(chan struct{})}
	select {
	case <-r.LeaderCh():
	case <-time.After(time.Minute):
		t.Fatal("it does not lead")
	}
	return n
}

// unanswered is a future of a Raft that has ended.
type unanswered struct{ never chan struct{} }

func (u *unanswered) Error() error { <-u.never; return nil }

// What Raft had in its hands when it was shut down has failed.
func TestRaftEndsUnanswered(t *testing.T) {
	n := &Node{ended: make(chan struct{})}
	f := &unanswered{make(chan struct{})}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Await(gone, f); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	close(n.ended)
	if err := n.Await(t.Context(), f); !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("Raft has ended: %v", err)
	}
	close(f.never)
	n.await(time.Minute)
}

// TestRestoreIsCalledOff: who waits for Raft to restore a state does not when Raft ends, or nobody wants it any more.
func TestRestoreIsCalledOff(t *testing.T) {
	n := &Node{ended: make(chan struct{})}
	never := make(chan struct{})
	restore := func() error { <-never; return nil }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.restored(gone, restore); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	close(n.ended)
	if err := n.restored(t.Context(), restore); !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("Raft has ended: %v", err)
	}
	close(never)
	n.await(time.Minute)
	n.ended = make(chan struct{})
	if err := n.restored(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := n.restored(t.Context(), func() error { return raft.ErrNotLeader }); structs.CodeOf(err) != structs.CodeNoLeader {
		t.Error(err)
	}
}

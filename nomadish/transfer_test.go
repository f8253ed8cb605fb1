package nomadish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/structs"
)

// TestTransfersRest: leadership that could not be handed over is not offered again to the same server for a while, nor to whichever
// Raft chooses; another leader, or another term, may.
func TestTransfersRest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return now.Add(d) }
	var to transfers
	if err := to.allowed(7, "b", now); err != nil {
		t.Errorf("nothing has failed: %v", err)
	}
	to.failedTo(7, "b", now)
	for _, c := range []struct {
		term uint64
		id   raft.ServerID
		at   time.Duration
		may  bool
	}{
		{7, "b", time.Second, false}, {7, "", time.Second, false}, {7, "c", time.Second, true},
		{8, "b", time.Second, true}, {7, "b", transferRest, true},
	} {
		if err := to.allowed(c.term, c.id, after(c.at)); (err == nil) != c.may {
			t.Errorf("%+v: %v", c, err)
		}
	}
	to.failedTo(7, "", after(2*time.Second))
	if err := to.allowed(7, "c", after(3*time.Second)); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("c may be whom Raft chose: %v", err)
	}
	to.failedTo(8, "c", after(4*time.Second))
	if err := to.allowed(8, "b", after(5*time.Second)); err != nil {
		t.Errorf("what failed in an earlier term: %v", err)
	}
}

// TestHandToNobody: the leader says how it was, and the second time it does not even try.
func TestHandToNobody(t *testing.T) {
	t.Parallel()
	addr, transport := raft.NewInmemTransport("")
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = "alone", hclog.NewNullLogger()
	mem := raft.NewInmemStore()
	alone := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: addr}}}
	if err := raft.BootstrapCluster(conf, mem, mem, raft.NewInmemSnapshotStore(), transport, alone); err != nil {
		t.Fatal(err)
	}
	r, err := raft.NewRaft(conf, &raft.MockFSM{}, mem, mem, raft.NewInmemSnapshotStore(), transport)
	if err != nil {
		t.Fatal(err)
	}
	n := &raftNode{Raft: r, ended: make(chan struct{})}
	within(t, time.Minute, "leading", func(context.Context) error {
		if r.State() != raft.Leader {
			return errors.New("it does not lead")
		}
		return nil
	})
	if err := n.handTo(t.Context(), "", ""); err == nil || structs.CodeOf(err) == structs.CodeConflict {
		t.Errorf("the first time: %v", err)
	}
	if err := n.handTo(t.Context(), "", ""); structs.CodeOf(err) != structs.CodeConflict || structs.CodeOf(raftOrNil(err)) != structs.CodeConflict {
		t.Errorf("the second time: %v", err)
	}
	n.settle(time.Minute)
	if err := n.shutdown(); err != nil {
		t.Error(err)
	}
}

package raftnode

import (
	"testing"
	"time"

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
		{8, "b", time.Second, true}, {7, "b", transferBackoff, true},
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
	n := aloneWith(t, &raft.MockFSM{})
	if err := n.Transfer(t.Context(), "", ""); err == nil || structs.CodeOf(err) == structs.CodeConflict {
		t.Errorf("the first time: %v", err)
	}
	if err := n.Transfer(t.Context(), "", ""); structs.CodeOf(err) != structs.CodeConflict || structs.CodeOf(WrapCallError(err)) != structs.CodeConflict {
		t.Errorf("the second time: %v", err)
	}
	n.await(time.Minute)
	if err := n.Halt(); err != nil {
		t.Error(err)
	}
	select {
	case <-n.ended:
	default:
		t.Error("Raft has ended, and who waits for it is not told")
	}
}

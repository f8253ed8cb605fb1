package raftnode

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/structs"
)

// transferBackoff is for how long leadership is not handed to a server again by the same leader after that failed: longer than Raft
// rests between two tries to reach a follower.
const transferBackoff = time.Minute

// transfers are the attempts of this server to hand leadership over that failed in its present term.
//
// A second attempt, begun before Raft has looked at what the first left behind, may wait for ever if leadership is lost then. Raft
// takes it for going on, and this server, when it leads again, would refuse every entry (hashicorp/raft#696).
type transfers struct {
	mu     sync.Mutex
	term   uint64
	failed map[raft.ServerID]time.Time // "": to whichever Raft chose
}

// allowed returns why leadership may not be transferred to a server now; to an empty ID: to whichever Raft chooses.
func (t *transfers) allowed(term uint64, to raft.ServerID, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term != t.term {
		return nil
	}
	for id, at := range t.failed { // order does not matter: the error does not name it
		if wait := at.Add(transferBackoff).Sub(now); wait > 0 && (id == to || id == "" || to == "") {
			return structs.Errorf(structs.CodeConflict, "leadership could not be transferred %v ago", now.Sub(at).Round(time.Second)).
				WithHint("see why that server does not answer (operator raft list-peers, operator autopilot health); try again in %v", wait.Round(time.Second))
		}
	}
	return nil
}

// failedTo notes that leadership could not be handed to a server.
func (t *transfers) failedTo(term uint64, to raft.ServerID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term != t.term || t.failed == nil {
		t.term, t.failed = term, map[raft.ServerID]time.Time{}
	}
	t.failed[to] = now
}

// Transfer transfers leadership to a server; with an empty ID and address to whichever Raft chooses. It waits until the other leads or
// that has failed, or ctx ends.
func (n *Node) Transfer(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) error {
	term := n.CurrentTerm()
	if err := n.transfers.allowed(term, id, time.Now()); err != nil {
		return err
	}
	var f raft.Future
	if id == "" && addr == "" {
		f = n.LeadershipTransfer()
	} else {
		f = n.LeadershipTransferToServer(id, addr)
	}
	err := n.Await(ctx, f)
	if err != nil && n.State() == raft.Leader {
		n.transfers.failedTo(term, id, time.Now())
	}
	return err
}

package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/nomadish/nomadish/structs"
)

// mute is a server that answers unless it is silent.
type mute struct{ silent bool }

// BootstrapVote implements Caller.
func (m *mute) BootstrapVote(context.Context, string, *structs.BootstrapVoteRequest) (*structs.BootstrapVoteReply, error) {
	return nil, errors.New("no founder")
}

// RaftState implements Caller.
func (m *mute) RaftState(context.Context, string, *structs.RaftStateRequest) (*structs.RaftStateReply, error) {
	if m.silent {
		return nil, errors.New("no answer")
	}
	return &structs.RaftStateReply{LastTerm: 3, LastIndex: 7, LastContact: 5 * time.Millisecond}, nil
}

// TestSilentServer: a server that gossip takes for alive, and that does not answer, is not healthy for what it said last.
func TestSilentServer(t *testing.T) {
	call := &mute{silent: true}
	k := NewPeerReconciler(PeerReconcilerOptions{ID: "me"}, nil, newTown(1).homes[0], nil, call)
	d := &delegate{k}
	fetch := func() *autopilot.ServerStats {
		return d.FetchServerStats(t.Context(), map[raft.ServerID]*autopilot.Server{"it": {ID: "it", NodeStatus: autopilot.NodeAlive}})["it"]
	}
	if s := fetch(); s == nil || s.LastContact >= 0 {
		t.Errorf("before it ever answered: %+v", s)
	}
	call.silent = false
	if s := fetch(); s == nil || s.LastContact != 5*time.Millisecond {
		t.Errorf("it answers: %+v", s)
	}
	call.silent = true
	time.Sleep(20 * time.Millisecond)
	if s := fetch(); s == nil || s.LastContact < 25*time.Millisecond || s.LastTerm != 3 || s.LastIndex != 7 {
		t.Errorf("it does not answer any more: %+v", s)
	}
	if got := k.contacts.get("it", 5*time.Millisecond, time.Now().Add(time.Minute)); got < time.Minute {
		t.Errorf("a minute later: %s", got)
	}
}

package nomadish

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/raftnode"
)

// stuck is an FSM that does not get on with an entry until it is let.
type stuck struct {
	entered, release chan struct{}
	once             sync.Once
}

func (s *stuck) Apply(*raft.Log) any {
	s.once.Do(func() { close(s.entered) })
	<-s.release
	return nil
}

func (s *stuck) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("there is none") }
func (s *stuck) Restore(io.ReadCloser) error         { return nil }

// Who waits for Raft, as a new leader does until earlier entries are applied, can be called off while Raft does not answer.
func TestWaitForRaftIsCalledOff(t *testing.T) {
	machine := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	cfg := quickTestConfig()
	_, transport := raft.NewInmemTransport("")
	mem := raft.NewInmemStore()
	n, err := raftnode.OpenOn(cfg.raftOptions(), &raftnode.Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()},
		raftnode.Transport{Transport: transport, WithPreVote: transport, WithClose: transport}, machine, nil)
	if err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "leading", func(context.Context) error {
		if n.State() != raft.Leader {
			return errors.New("it does not lead")
		}
		return nil
	})
	applied := n.Raft.Apply([]byte("x"), 0)
	<-machine.entered
	last := n.LastIndex()
	l := &leaderParts{raft: n, logger: hclog.NewNullLogger()}
	stop := l.lead(t.Context())
	within(t, time.Minute, "waiting for the entry", func(context.Context) error {
		if n.LastIndex() == last { // the barrier is an entry
			return errors.New("it does not wait yet")
		}
		return nil
	})
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("it waits on, though it is called off")
	}
	close(machine.release)
	if err := applied.Error(); err != nil {
		t.Error(err)
	}
	<-stopped
	if left, err := n.Stop(time.Minute); err != nil || left > 0 {
		t.Errorf("%d entries are unanswered: %v", left, err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// TestLeadingOfAnotherTerm: leadership that was lost and gained anew is none before the parts run anew.
func TestLeadingOfAnotherTerm(t *testing.T) {
	s := startWith(t, "", func(*Config) {})
	within(t, time.Minute, "leading", func(context.Context) error {
		if !s.IsLeader() {
			return errors.New("it does not lead")
		}
		return nil
	})
	term := s.leader.established.Load()
	if term != s.raft.CurrentTerm() {
		t.Fatalf("the parts run in term %d, it is %d", term, s.raft.CurrentTerm())
	}
	s.leader.established.Store(term - 1) // as if Raft were quicker than the parts
	if s.IsLeader() {
		t.Error("it leads by parts of an earlier term")
	}
	s.leader.established.Store(term)
	if !s.IsLeader() {
		t.Error("it does not lead")
	}
}

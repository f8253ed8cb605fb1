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

	"github.com/nomadish/nomadish/structs"
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

// aloneWith is a Raft of one server, which leads.
func aloneWith(t *testing.T, machine raft.FSM) *raftNode {
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
	n := &raftNode{Raft: r, ended: make(chan struct{})}
	within(t, time.Minute, "leading", func(context.Context) error {
		if r.State() != raft.Leader {
			return errors.New("it does not lead")
		}
		return nil
	})
	return n
}

// Who waits for Raft, as a new leader does until earlier entries are applied, can be called off while Raft does not answer.
func TestWaitForRaftIsCalledOff(t *testing.T) {
	machine := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	n := aloneWith(t, machine)
	r := n.Raft
	applied := r.Apply([]byte("x"), 0)
	<-machine.entered
	l := &leaderParts{raft: n, logger: hclog.NewNullLogger()}
	stop := l.lead(t.Context())
	within(t, time.Minute, "waiting for the entry", func(context.Context) error {
		if n.inFlight.Load() == 0 {
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
	n.settle(time.Minute)
	if err := n.shutdown(); err != nil {
		t.Error(err)
	}
	select {
	case <-n.ended:
	default:
		t.Error("Raft has ended, and who waits for it is not told")
	}
}

// unanswered is a future of a Raft that has ended.
type unanswered struct{ never chan struct{} }

func (u *unanswered) Error() error { <-u.never; return nil }

// What Raft had in its hands when it was shut down has failed.
func TestRaftEndsUnanswered(t *testing.T) {
	n := &raftNode{ended: make(chan struct{})}
	f := &unanswered{make(chan struct{})}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.await(gone, f); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	close(n.ended)
	if err := n.await(t.Context(), f); !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("Raft has ended: %v", err)
	}
	close(f.never)
	n.settle(time.Minute)
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

// TestRestoreIsCalledOff: who waits for Raft to restore a state does not when Raft ends, or nobody wants it any more.
func TestRestoreIsCalledOff(t *testing.T) {
	s := &snapshots{raft: &raftNode{ended: make(chan struct{})}}
	never := make(chan struct{})
	restore := func() error { <-never; return nil }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.restored(gone, restore); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	close(s.raft.ended)
	if err := s.restored(t.Context(), restore); !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("Raft has ended: %v", err)
	}
	close(never)
	s.raft.settle(time.Minute)
	s.raft.ended = make(chan struct{})
	if err := s.restored(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := s.restored(t.Context(), func() error { return raft.ErrNotLeader }); structs.CodeOf(err) != structs.CodeNoLeader {
		t.Error(err)
	}
}

package membership

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/quorum"
)

// before is Raft before and after it has a configuration.
type before struct {
	bootstrapped bool
	err          error
}

// Bootstrapped implements quorum.Bootstrap.
func (b *before) Bootstrapped() (bool, error) { return b.bootstrapped, b.err }

// Found implements quorum.Bootstrap.
func (b *before) Bootstrap(raft.Configuration) error { return nil }

// TestRaftGate: Raft is open to a server that has voted itself, for as long as it has, and for good to one that belongs to a cluster.
func TestRaftGate(t *testing.T) {
	t.Parallel()
	r := &before{}
	vote := VoteOf(&Options{Dir: t.TempDir()})
	gate := RaftGate(r, vote)
	open := func(what string, want bool) {
		t.Helper()
		if gate() != want {
			t.Errorf("%s: open: %v", what, !want)
		}
	}
	voted := func(to quorum.Vote) {
		t.Helper()
		if err := vote.Store(to); err != nil {
			t.Fatal(err)
		}
	}
	open("a server of no cluster", false)
	voted(quorum.Vote{ID: "founder", Name: "f"})
	open("voted", true)
	voted(quorum.Vote{})
	open("taken back", false)
	r.bootstrapped, r.err = true, errors.New("the log cannot be read")
	open("it is not known", false)
	r.err = nil
	open("of a cluster", true)
	r.bootstrapped = false
	open("of a cluster once", true)
}

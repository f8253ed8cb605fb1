package membership

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/quorum"
)

// before is Raft before and after it has a configuration.
type before struct {
	founded bool
	err     error
}

// Founded implements quorum.Founding.
func (b *before) Founded() (bool, error) { return b.founded, b.err }

// Found implements quorum.Founding.
func (b *before) Found(raft.Configuration) error { return nil }

// TestRaftGate: Raft is open to a server that has promised itself, for as long as it has, and for good to one that belongs to a cluster.
func TestRaftGate(t *testing.T) {
	t.Parallel()
	r := &before{}
	promise := VoteOf(&Options{Dir: t.TempDir()})
	gate := RaftGate(r, promise)
	open := func(what string, want bool) {
		t.Helper()
		if gate() != want {
			t.Errorf("%s: open: %v", what, !want)
		}
	}
	promised := func(to quorum.Vote) {
		t.Helper()
		if err := promise.Store(to); err != nil {
			t.Fatal(err)
		}
	}
	open("a server of no cluster", false)
	promised(quorum.Vote{ID: "founder", Name: "f"})
	open("promised", true)
	promised(quorum.Vote{})
	open("taken back", false)
	r.founded, r.err = true, errors.New("the log cannot be read")
	open("it is not known", false)
	r.err = nil
	open("of a cluster", true)
	r.founded = false
	open("of a cluster once", true)
}

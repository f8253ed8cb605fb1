package fsm_test

import (
	"errors"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestFork: what is written to a fork is not seen in the state that it is of, nor the reverse.
func TestFork(t *testing.T) {
	log := testcluster.New(1, state.Options{})
	put := func(id string) *structs.NodeRegisterEntry {
		return &structs.NodeRegisterEntry{Node: testcluster.Node(id, 1000), Time: 1}
	}
	log.Put(t, put("both"))
	fork := fsm.NewFork(log.Store, 100)
	was := log.Store.Snapshot().Hash()
	if got := fork.Store.Snapshot().Hash(); got != was {
		t.Error("a fork begins with another state")
	}
	for _, id := range []string{"forked", "both"} {
		if _, err := fork.Apply(structs.LogNodeRegister, put(id)); err != nil {
			t.Fatal(err)
		}
	}
	if snap := log.Store.Snapshot(); snap.Hash() != was || snap.Node(nil, "forked") != nil || fork.Store.Snapshot().Node(nil, "forked") == nil {
		t.Error("what is written to a fork is seen in the state that it is of, or is not in the fork")
	}
	forked := fork.Store.Snapshot().Hash()
	log.Put(t, put("later"))
	if snap := fork.Store.Snapshot(); snap.Hash() != forked || snap.Node(nil, "later") != nil {
		t.Error("what is written to a state is seen in a fork of it")
	}
	if again := fsm.NewFork(fork.Store, 100).Store.Snapshot().Hash(); again != forked {
		t.Error("a fork of a fork begins with another state")
	}
}

// TestForkDrop: a feed reads on from changes that are kept no longer once it has read them, and no other does.
func TestForkDrop(t *testing.T) {
	fork := fsm.NewFork(fsm.Empty(), 100)
	slow, feed, read := fork.Store.Feed(0), fork.Store.Feed(0), 0
	for _, id := range []string{"a", "b", "c"} {
		index, err := fork.Apply(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: testcluster.Node(id, 1000), Time: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := feed.Each(func(*state.Changes) { read++ }); err != nil {
			t.Fatal(err)
		}
		fork.Drop(index)
	}
	if _, _, err := slow.Poll(); read != 3 || !errors.Is(err, state.ErrFellBehind) {
		t.Errorf("%d commits were read, and one who has read none: %v", read, err)
	}
}

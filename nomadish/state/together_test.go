package state

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func register(t *testing.T, w *Writer, index uint64, id string) {
	t.Helper()
	if err := w.NodeRegister(index, &structs.NodeRegisterEntry{Node: &structs.Node{ID: id, Status: structs.NodeStatusReady}}); err != nil {
		t.Fatal(err)
	}
}

// Nothing of what is applied together can be seen before all of it can, and nothing is left of it when it is undone, by an error
// or by a panic.
func TestTogether(t *testing.T) {
	s, w := New(Options{})
	register(t, w, 1, "a")
	feed := s.Feed(1)
	unmoved := func(when string) {
		t.Helper()
		snap := s.Snapshot()
		if _, found, err := feed.Poll(); snap.Index() != 1 || s.Fed() != 1 || found || err != nil || snap.Node(nil, "b") != nil || len(Differences(snap)) > 0 {
			t.Fatalf("%s: index %d, fed %d, a change %t, %v, node %v, %v", when, snap.Index(), s.Fed(), found, err, snap.Node(nil, "b"), Differences(snap))
		}
	}
	was := s.Snapshot().Hash()
	for _, end := range []string{"error", "panic"} {
		func() {
			defer func() { _ = recover() }()
			err := w.Together(func() error {
				register(t, w, 2, "b")
				w.Advance(3)
				unmoved("meanwhile")
				if end == "panic" {
					panic(end)
				}
				return errors.New(end)
			})
			if err == nil || err.Error() != end {
				t.Fatalf("%v", err)
			}
		}()
		unmoved(end)
		if now := s.Snapshot().Hash(); now != was {
			t.Fatalf("undone, the hash is %s, it was %s", now, was)
		}
	}
	ws := NewWatchSet()
	if s.Snapshot().Node(ws, "b") != nil {
		t.Fatal("it is there already")
	}
	if err := w.Together(func() error {
		register(t, w, 2, "b")
		w.Advance(3)
		register(t, w, 4, "c")
		w.Advance(5)
		unmoved("meanwhile")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !ws.Wait(t.Context()) {
		t.Fatal("who waited for it is not woken")
	}
	snap := s.Snapshot()
	if snap.Index() != 5 || s.Fed() != 4 || snap.Node(nil, "b").CreateIndex != 2 || snap.Node(nil, "c").CreateIndex != 4 || snap.TableIndex(TableNodes) != 4 {
		t.Fatalf("index %d, fed %d, %+v, %+v", snap.Index(), s.Fed(), snap.Node(nil, "b"), snap.Node(nil, "c"))
	}
}

// What is shown together is kept together for those who read changes, however little is kept; what was before it is not.
func TestFeedKeepsWhatCameTogether(t *testing.T) {
	s, w := New(Options{EventBuffer: 2})
	register(t, w, 1, "a")
	behind, feed := s.Feed(0), s.Feed(1)
	if err := w.Together(func() error {
		for i := range uint64(5) {
			register(t, w, i+2, fmt.Sprint("n", i))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for {
		next, found, err := feed.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		got = append(got, next.Index)
	}
	if want := []uint64{2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("the feed tells of %v, not of %v", got, want)
	}
	if _, _, err := behind.Poll(); !errors.Is(err, ErrFellBehind) {
		t.Errorf("who had not read what was before: %v", err)
	}
}

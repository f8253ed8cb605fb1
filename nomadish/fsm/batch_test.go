package fsm

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// told reads all that a feed has.
func told(t *rapid.T, f *state.Feed) (all []state.Changes) {
	for {
		next, found, err := f.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			return all
		}
		all = append(all, next)
	}
}

// However entries are put together, each is answered as it is by itself, the feed tells the same of each, and the
// state afterwards is the same.
func TestBatchesAreTheirEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := newReplica(), newReplica()
		fa, fb := a.store.Feed(0), b.store.Feed(0)
		s := &script{t: t}
		index := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			var batch []*raft.Log
			var want []any
			for range rapid.IntRange(1, 6).Draw(t, "entries") {
				index++
				log := &raft.Log{Index: index, Type: raft.LogNoop}
				if s.pick("noop", 8) > 0 {
					typ, payload := s.entry()
					data, err := Encode(typ, payload)
					if err != nil {
						t.Fatal(err)
					}
					log.Type, log.Data = raft.LogCommand, data
				}
				batch = append(batch, log)
				want = append(want, a.fsm.Apply(log))
			}
			got := b.fsm.ApplyBatch(batch)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("up to entry %d: answers %v, one by one %v", index, got, want)
			}
			if got := b.store.LatestIndex(); got != index {
				t.Fatalf("index %d after entry %d", got, index)
			}
			if d := state.Differences(b.store.Snapshot()); len(d) > 0 {
				t.Fatalf("up to entry %d: %v", index, d)
			}
			if ca, cb := told(t, fa), told(t, fb); !reflect.DeepEqual(ca, cb) {
				t.Fatalf("up to entry %d the feed tells\n%+v\none by one\n%+v", index, cb, ca)
			}
			if ha, hb := a.store.Snapshot().Hash(), b.store.Snapshot().Hash(); ha != hb {
				t.Fatalf("up to entry %d: hashes %s, and one by one %s", index, hb, ha)
			}
		}
	})
}

// entryOf is an entry of a log.
func entryOf(t *testing.T, index uint64, typ structs.LogType, payload any) *raft.Log {
	t.Helper()
	data, err := Encode(typ, payload)
	if err != nil {
		t.Fatal(err)
	}
	return &raft.Log{Index: index, Type: raft.LogCommand, Data: data}
}

// node is an entry that registers a node.
func node(t *testing.T, index uint64, id string) *raft.Log {
	return entryOf(t, index, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &structs.Node{ID: id, Status: structs.NodeStatusReady}})
}

// What can be applied is applied in one step, up to what cannot, which is applied by itself; then it goes on.
func TestStepsOfABatch(t *testing.T) {
	r := newReplica()
	refused := func(index uint64) *raft.Log {
		return entryOf(t, index, structs.LogJobDeregister, &structs.JobDeregisterEntry{Namespace: "default", JobID: "none"})
	}
	torn := &raft.Log{Index: 7, Type: raft.LogCommand, Data: []byte{byte(structs.LogNodeRegister), 0xc1}}
	batch := []*raft.Log{
		node(t, 1, "a"), node(t, 2, "b"), {Index: 3, Type: raft.LogNoop}, refused(4), refused(5), node(t, 6, "c"), torn, node(t, 8, "d"), node(t, 9, "e"),
	}
	for _, c := range []struct{ from, together int }{{0, 3}, {3, 0}, {4, 0}, {5, 1}, {6, 0}, {7, 2}} {
		if c.from > 0 && r.store.LatestIndex() != uint64(c.from) {
			t.Fatalf("at index %d before the entry after %d", r.store.LatestIndex(), c.from)
		}
		n := r.fsm.together(batch[c.from:])
		if n != c.together {
			t.Fatalf("from %d on, %d are applied together, not %d", c.from, n, c.together)
		}
		if n == 0 {
			before := r.store.Snapshot()
			if before.Index() != uint64(c.from) || len(state.Differences(before)) > 0 {
				t.Fatalf("undone, the state is at index %d: %v", before.Index(), state.Differences(before))
			}
			if answer := r.fsm.Apply(batch[c.from]); answer == nil {
				t.Fatalf("entry %d by itself: no error", c.from+1)
			}
		}
	}
	one := newReplica()
	answers := one.fsm.ApplyBatch(batch)
	for i, answer := range answers {
		if bad := i == 3 || i == 4 || i == 6; (answer != nil) != bad {
			t.Errorf("entry %d: %v", i+1, answer)
		}
	}
	if a, b := r.store.Snapshot().Hash(), one.store.Snapshot().Hash(); a != b || one.store.LatestIndex() != 9 {
		t.Errorf("hashes %s and %s at index %d", a, b, one.store.LatestIndex())
	}
}

// A step takes no more entries when it has changed enough.
func TestStepsAreBounded(t *testing.T) {
	r := newReplica()
	var batch []*raft.Log
	for i := range uint64(maxTogether + 50) {
		batch = append(batch, node(t, i+1, fmt.Sprint("n", i)))
	}
	first := r.fsm.together(batch)
	if first < maxTogether/4 || first > maxTogether {
		t.Errorf("the first step has %d entries", first)
	}
	for at := first; at < len(batch); {
		n := r.fsm.together(batch[at:])
		if n == 0 {
			r.fsm.Apply(batch[at])
			n = 1
		}
		at += n
	}
	if got := r.store.LatestIndex(); got != uint64(len(batch)) {
		t.Errorf("index %d", got)
	}
}

// Those who wait for what several entries change together are woken, and find all of it.
func TestBatchWakes(t *testing.T) {
	r := filled(t)
	snap := r.store.Snapshot()
	before, was := snap.TableIndex(state.TableNodes), r.store.LatestIndex()
	ws := state.NewWatchSet()
	if snap.Node(ws, "n") == nil {
		t.Fatal("there is no node")
	}
	var batch []*raft.Log
	for i, status := range []string{structs.NodeStatusDown, structs.NodeStatusReady, structs.NodeStatusDisconnected} {
		data, err := Encode(structs.LogNodeStatus, &structs.NodeStatusEntry{NodeIDs: []string{"n"}, Status: status, Time: int64(i) + 1})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, &raft.Log{Index: was + uint64(i) + 1, Type: raft.LogCommand, Data: data})
	}
	for _, answer := range r.fsm.ApplyBatch(batch) {
		if answer != nil {
			t.Fatal(answer)
		}
	}
	if !ws.Wait(t.Context()) {
		t.Fatal("it is not woken")
	}
	now, err := r.store.WaitIndex(t.Context(), was+3)
	if err != nil {
		t.Fatal(err)
	}
	if n := now.Node(nil, "n"); n.Status != structs.NodeStatusDisconnected {
		t.Fatalf("%+v", n)
	}
	if got := now.TableIndex(state.TableNodes); got != was+3 || before == got {
		t.Fatalf("the table's index is %d, it was %d", got, before)
	}
}

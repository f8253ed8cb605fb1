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

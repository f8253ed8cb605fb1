package testcluster

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// spy is a test that is told to end.
type spy struct{ reported string }

func (*spy) Helper()                          {}
func (s *spy) Fatalf(format string, a ...any) { s.reported = fmt.Sprintf(format, a...) }

// TestEntriesGoThroughTheLog: what is committed gets the next index and is applied as it is read from its bytes.
func TestEntriesGoThroughTheLog(t *testing.T) {
	l := New(10, state.Options{})
	var seen []Entry
	l.Committed = func(e Entry) {
		if l.Store.LatestIndex() >= e.Index {
			t.Errorf("entry %d is applied before it is committed", e.Index)
		}
		seen = append(seen, e)
	}
	n := Node("n", 1000)
	if index := l.Put(t, &structs.NodeRegisterEntry{Node: n, Time: 1}); index != 11 || l.Index() != 11 || l.Store.LatestIndex() != 11 {
		t.Errorf("index %d, the log is at %d, the state at %d", index, l.Index(), l.Store.LatestIndex())
	}
	n.Name = "changed later"
	if got := l.Store.Snapshot().Node(nil, "n"); got == nil || got.Name != "n" || !got.Ready() {
		t.Errorf("the state has %+v", got)
	}
	job := Job("web", structs.JobTypeService, 2)
	l.Put(t, &structs.JobRegisterEntry{Job: job, Eval: Eval("e", job, structs.EvalStatusPending)})
	l.Put(t, Place("e", 2, Batch("web", "n", "s", 2)))
	if got := l.Store.Snapshot().Alloc(nil, AllocID("s", 1)); got == nil || got.Name != "web.g[1]" || got.NodeName != "n" || got.EvalID != "e" {
		t.Errorf("the second instance: %+v", got)
	}
	if len(seen) != 3 || seen[1].Index != 12 || seen[1].Type != structs.LogJobRegister || len(seen[1].Data) == 0 ||
		seen[1].Payload.(*structs.JobRegisterEntry).Job.ID != "web" {
		t.Errorf("committed were %+v", seen)
	}
	if d := state.Differences(l.Store.Snapshot()); len(d) > 0 {
		t.Error(d)
	}
}

// TestAnswers: who refuses an entry, and what of it stays.
func TestAnswers(t *testing.T) {
	l := New(0, state.Options{})
	no := errors.New("no")
	entry := func(id string) *structs.NodeRegisterEntry { return &structs.NodeRegisterEntry{Node: Node(id, 1)} }
	f := func(what string, index uint64, want error, stays bool) {
		t.Helper()
		got, err := l.Apply(t.Context(), structs.LogNodeRegister, entry(what))
		if there := l.Store.Snapshot().Node(nil, what) != nil; got != index || !errors.Is(err, want) || there != stays {
			t.Errorf("%s: %d, %v; it stays: %v", what, got, err, there)
		}
	}
	f("nobody refuses", 1, nil, true)
	l.Before = func(structs.LogType, any) error { return no }
	f("before it is committed", 0, no, false)
	l.Before, l.Refuse = nil, no
	f("all are", 0, no, false)
	if l.Replicate(t, entry("of another leader")); l.Store.LatestIndex() != 2 {
		t.Errorf("the state is at %d after an entry of another leader", l.Store.LatestIndex())
	}
	l.Refuse, l.Applied = nil, func(Entry) error { return no }
	f("the answer is lost", 0, no, true)
	l.Applied = nil
	l.Skip(10)
	f("after others", 11, nil, true)
	var s spy
	l.Put(&s, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{Eval("e", Job("web", structs.JobTypeService, 1), "nonsense")}})
	if s.reported == "" || l.Index() != 12 {
		t.Errorf("what the state refuses: %q, the log is at %d", s.reported, l.Index())
	}
	if s.reported = ""; TypeOf(&s, "a string") != 0 || s.reported == "" {
		t.Error("a string is an entry")
	}
}

// TestSnapshotsGoOver: another server goes on from a snapshot, at the index after it.
func TestSnapshotsGoOver(t *testing.T) {
	a, b := New(5, state.Options{}), New(0, state.Options{})
	a.Put(t, &structs.NodeRegisterEntry{Node: Node("n", 1000)})
	b.Restore(t, bytes.NewReader(a.Snapshot(t)))
	if b.Index() != 6 || b.Store.Snapshot().Hash() != a.Store.Snapshot().Hash() {
		t.Errorf("the other one is at %d with another state", b.Index())
	}
	if index := b.Put(t, &structs.NodeDeregisterEntry{NodeIDs: []string{"n"}}); index != 7 {
		t.Errorf("its next entry has the index %d", index)
	}
}

func TestIDs(t *testing.T) {
	next := IDs("id-%d")
	if a, b := next(), next(); a != "id-1" || b != "id-2" {
		t.Errorf("%s, %s", a, b)
	}
}

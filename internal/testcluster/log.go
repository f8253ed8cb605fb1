// Package testcluster is the state of a server for tests of its parts: a log that commits alone and at once, the FSM that applies
// it, the state that comes of that, and the nodes, jobs, evaluations and placements that such tests begin with.
//
// What a test commits goes the way of a server's entries: it is encoded, gets the next index, is decoded and applied by the FSM. So
// a part is never tested with what could not come out of a log, and nobody but the FSM writes the state.
//
// Only tests import it. It knows structs, the state and the FSM alone, so that the tests within a package above those can use it:
// whatever one part alone needs (a broker, a router, a running leader) belongs into that part's tests. It takes the time from
// nobody, and IDs come from numbers and from the names that a test passes: tests in virtual time (testing/synctest) and those of
// pgregory.net/rapid come out the same each time.
package testcluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TB is what the package needs of a test: testing.TB and *rapid.T have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Entry is a committed log entry.
type Entry struct {
	Index   uint64
	Type    structs.LogType
	Payload any    // a copy of what is applied
	Data    []byte // as it is in the log
}

// Log is the log of a server that is alone, with the state that it leads to. It is safe for use by many goroutines; hooks are set
// before the first of them begins, or with the log locked.
type Log struct {
	// Mutex is held while an entry is committed and applied: who holds it sees the state and what hooks keep between two entries.
	sync.Mutex
	Store *state.Store
	// FSM applies the entries; snapshots of the state are made by it and go into it.
	FSM *fsm.FSM

	// Before, if set, is called with what is to be committed, without the lock and by several goroutines at once. It may wait; its
	// error is the answer, and nothing is committed.
	Before func(t structs.LogType, payload any) error
	// Refuse, if set, is the answer to everything, and nothing is committed.
	Refuse error
	// Committed, if set, is called with each entry before it is applied, with the lock held.
	Committed func(e Entry)
	// Applied, if set, is called with each entry after it was applied, or refused by the state, with the lock held. Its error is
	// the answer where the state has none, as if its answer had been lost: the entry stays.
	Applied func(e Entry) error

	index atomic.Uint64
}

// New returns a log whose first entry is to be the one after index, and its empty state.
func New(index uint64, opts state.Options) *Log {
	l := &Log{}
	l.FSM, l.Store = fsm.NewState(opts, hclog.NewNullLogger())
	l.index.Store(index)
	return l
}

// Index returns the index of the last entry.
func (l *Log) Index() uint64 { return l.index.Load() }

// Skip has the next entry come at the index after this one, as after entries that change no state or a restored snapshot.
func (l *Log) Skip(to uint64) { l.index.Store(to) }

// Apply commits an entry and applies it; this is what a server's parts write through. It returns the entry's index, and the state's
// error if that refused it.
func (l *Log) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	data, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	if l.Before != nil {
		if err := l.Before(t, payload); err != nil {
			return 0, err
		}
	}
	l.Lock()
	defer l.Unlock()
	if l.Refuse != nil {
		return 0, l.Refuse
	}
	return l.commit(t, data)
}

// commit applies what is in the log. It is called with the lock held.
func (l *Log) commit(t structs.LogType, data []byte) (uint64, error) {
	e := Entry{Index: l.index.Add(1), Type: t, Data: data}
	if l.Committed != nil || l.Applied != nil {
		var err error
		if _, e.Payload, err = fsm.Decode(data); err != nil {
			return 0, err
		}
	}
	if l.Committed != nil {
		l.Committed(e)
	}
	answer, _ := l.FSM.Apply(&raft.Log{Index: e.Index, Term: 1, Type: raft.LogCommand, Data: data}).(error)
	if l.Applied != nil {
		if err := l.Applied(e); err != nil && answer == nil {
			return 0, err
		}
	}
	return e.Index, answer
}

// Put commits an entry, whose type is that of its payload, and ends the test if it is refused. It returns the entry's index.
func (l *Log) Put(t TB, payload any) uint64 {
	t.Helper()
	index, err := l.Apply(context.Background(), TypeOf(t, payload), payload)
	if err != nil {
		t.Fatalf("log entry %d (%T): %v", index, payload, err)
	}
	return index
}

// Replicate commits an entry as Put does, but one of another leader: Before and Refuse do not hear of it.
func (l *Log) Replicate(t TB, payload any) {
	t.Helper()
	typ := TypeOf(t, payload)
	data, err := fsm.Encode(typ, payload)
	if err == nil {
		l.Lock()
		defer l.Unlock()
		_, err = l.commit(typ, data)
	}
	if err != nil {
		t.Fatalf("log entry of another leader (%T): %v", payload, err)
	}
}

// TypeOf returns the type of the entry that carries a payload. It ends the test if there is none.
func TypeOf(t TB, payload any) structs.LogType {
	t.Helper()
	for _, typ := range structs.LogTypes() {
		if p, err := structs.NewLogPayload(typ); err == nil && reflect.TypeOf(p) == reflect.TypeOf(payload) {
			return typ
		}
	}
	t.Fatalf("no log entry carries a %T", payload)
	return 0
}

// IDs returns a function that makes IDs from the numbers from 1 on, as format states. It may be called by several goroutines at once.
func IDs(format string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf(format, n.Add(1)) }
}

// sink is what Raft passes to an FSM to write a snapshot to.
type sink struct{ bytes.Buffer }

// ID implements raft.SnapshotSink.
func (*sink) ID() string { return "s" }

// Cancel implements raft.SnapshotSink.
func (*sink) Cancel() error { return nil }

// Close implements raft.SnapshotSink.
func (*sink) Close() error { return nil }

// Snapshot returns the state as the FSM saves it.
func (l *Log) Snapshot(t TB) []byte {
	t.Helper()
	var out sink
	snap, err := l.FSM.Snapshot()
	if err == nil {
		err = snap.Persist(&out)
	}
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return out.Bytes()
}

// Restore puts what the FSM saved in the place of the state. The next entry is the one after it.
func (l *Log) Restore(t TB, from io.Reader) {
	t.Helper()
	l.Lock()
	defer l.Unlock()
	if err := l.FSM.Restore(io.NopCloser(from)); err != nil {
		t.Fatalf("restore: %v", err)
	}
	l.index.Store(l.Store.LatestIndex())
}

// Package fsm turns Raft's committed log entries into changes of the state, and the
// state into snapshots and back. It is the only holder of the state's writer.
//
// It must never look at a clock, mint an ID, or let the order of a map reach the
// state: replicas that are fed the same log must come out the same.
package fsm

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// FSM implements raft.FSM and raft.BatchingFSM over a state's writer. Raft calls it from one goroutine.
type FSM struct {
	writer *state.Writer
	store  *state.Store
	logger hclog.Logger

	onHalt func(error)
	halted error // see OnHalt
	// measure is called when something begins, and what it returns when that is done; nil: nobody measures.
	measure func(*telemetry.Timer) (done func())
}

// Measure sets who looks at the clock for the timers of the FSM, which itself does not: begin is called when an entry is about
// to be applied or a snapshot to be written, and what it returns when that is done. It has no influence on the state.
func (f *FSM) Measure(begin func(*telemetry.Timer) (done func())) { f.measure = begin }

// write applies an entry that was read.
func (f *FSM) write(index uint64, t structs.LogType, payload any) error {
	if f.measure != nil {
		defer f.measure(timerOf(t))()
	}
	return f.writer.Apply(index, t, payload)
}

// OnHalt sets what is called, once, when an entry was met which this version does not know
// and must not pass over: it was written by a newer one. From then on the state does not
// move and cannot be saved, so that after an upgrade the same entries are applied. It is
// called from Raft's goroutine and must not wait for Raft.
func (f *FSM) OnHalt(report func(error)) { f.onHalt = report }

// unknown deals with the type of an entry that this version does not know: it may be passed
// over (true), or is the end.
func (f *FSM) unknown(index uint64, t structs.LogType) bool {
	if t.Ignorable() {
		f.logger.Debug("an entry of a newer version is passed over", "index", index, "type", t)
		return true
	}
	f.halted = structs.Errorf(structs.CodeUnsupported, "log entry %d is of type %d, which this version does not know: a newer one wrote it", index, t).
		WithHint("upgrade this server; what it has is not lost")
	f.logger.Error("the state stops here, as it would become another than that of newer servers", "error", f.halted)
	if f.onHalt != nil {
		f.onHalt(f.halted)
	}
	return false
}

// New makes the FSM of a state.
func New(writer *state.Writer, store *state.Store, logger hclog.Logger) *FSM {
	return &FSM{writer: writer, store: store, logger: logger}
}

// NewState makes an empty state with the FSM that changes it, for who rebuilds a state apart from a server.
func NewState(opts state.Options, logger hclog.Logger) (*FSM, *state.Store) {
	store, writer := state.New(opts)
	return New(writer, store, logger), store
}

// Encode makes a log entry: one byte of type, then the payload in msgpack.
func Encode(t structs.LogType, payload any) ([]byte, error) {
	entry, err := codec.Append([]byte{byte(t)}, payload)
	if err != nil {
		return nil, fmt.Errorf("log entry type %d: %w", t, err)
	}
	if codec.TooDeep(entry[1:]) { // no server could read it
		return nil, structs.Errorf(structs.CodeBadRequest, "log entry type %d: must have at most %d lists and objects within each other", t, codec.MaxWrittenDepth)
	}
	return entry, nil
}

// Decode reads a log entry. Whatever the bytes are, it answers with an error at the
// worst.
func Decode(entry []byte) (structs.LogType, any, error) {
	if len(entry) == 0 {
		return 0, nil, fmt.Errorf("log entry: empty")
	}
	t := structs.LogType(entry[0])
	payload, err := structs.NewLogPayload(t)
	if err != nil {
		return t, nil, err
	}
	if err := codec.Decode(entry[1:], payload); err != nil {
		return t, nil, fmt.Errorf("log entry type %d: %w", t, err)
	}
	return t, payload, nil
}

// Apply implements raft.FSM. It answers nil or an error; an error means that the
// entry changed nothing.
func (f *FSM) Apply(log *raft.Log) any {
	if f.halted != nil {
		return f.halted
	}
	if log.Type != raft.LogCommand {
		f.writer.Advance(log.Index)
		return nil
	}
	if err := f.apply(log.Index, log.Data); err != nil {
		return err
	}
	return nil
}

// ApplyBatch implements raft.BatchingFSM: what was committed together is shown together.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	out := make([]any, len(logs))
	for at := 0; at < len(logs); {
		if n := f.together(logs[at:]); n > 0 {
			at += n
			continue
		}
		out[at] = f.Apply(logs[at])
		at++
	}
	return out
}

// maxTogether is after how many changes no more entries are added to a step.
const maxTogether = 1000

// together applies entries as one step, up to one that cannot be applied, and returns how many it were; 0: the first is to be
// applied by itself.
func (f *FSM) together(logs []*raft.Log) int {
	if f.halted != nil || len(logs) < 2 {
		return 0
	}
	n, err := f.step(logs)
	if err != nil && n > 0 {
		n, err = f.step(logs[:n]) // without the one that undid it
	}
	if err != nil {
		return 0
	}
	return n
}

// step applies entries as one step, until there are enough changes. If one cannot be applied none is, and n is how many are
// before that one.
func (f *FSM) step(logs []*raft.Log) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r) // it will be reported when the entry is applied by itself
		}
	}()
	err = f.writer.Together(func() error {
		for ; n < len(logs) && f.writer.Changed() < maxTogether; n++ {
			log := logs[n]
			if log.Type != raft.LogCommand {
				f.writer.Advance(log.Index)
				continue
			}
			t, payload, err := Decode(log.Data)
			if err != nil {
				return err
			}
			if err := f.write(log.Index, t, payload); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// apply applies one entry. A fault in ours that panics is answered as an error: the
// entry changes nothing, on this server as on every other, where a crash would come
// back at each start, on all of them.
func (f *FSM) apply(index uint64, data []byte) (err error) {
	if len(data) > 0 && data[0] != 0 && !structs.LogType(data[0]).Known() { // 0 is no type of any version
		if !f.unknown(index, structs.LogType(data[0])) {
			return f.halted
		}
		f.writer.Advance(index)
		return nil
	}
	t, payload, err := Decode(data)
	if err != nil {
		f.logger.Error("a log entry cannot be read; it is passed over", "index", index, "error", err)
		f.writer.Advance(index)
		return structs.Errorf(structs.CodeInternal, "%w", err)
	}
	defer func() {
		if r := recover(); r != nil {
			f.logger.Error("a log entry cannot be applied; it is passed over", "index", index, "type", t,
				"panic", r, "stack", string(debug.Stack()))
			f.writer.Advance(index)
			err = structs.Errorf(structs.CodeInternal, "log entry %d of type %d: %v", index, t, r)
		}
	}()
	return f.write(index, t, payload)
}

// Snapshot implements raft.FSM: it takes the state as it is, in no time.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.halted != nil {
		return nil, f.halted // or Raft would take the entries since for applied, and drop them
	}
	return &snapshot{f.store.Snapshot(), f.measure}, nil
}

// Restore implements raft.FSM: it replaces the state by one that was written, or
// leaves it as it is and returns what is wrong.
func (f *FSM) Restore(from io.ReadCloser) error {
	defer from.Close() //nolint:errcheck // read only
	if err := restore(from, f.writer); err != nil {
		return err
	}
	f.halted = nil // all of what was missed is in it
	return nil
}

type snapshot struct {
	*state.Snapshot
	measure func(*telemetry.Timer) (done func()) // see FSM
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if s.measure != nil {
		defer s.measure(persistTimer)()
	}
	if err := write(sink, s.Snapshot); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (*snapshot) Release() {}

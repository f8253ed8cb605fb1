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

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

// FSM implements raft.FSM and raft.BatchingFSM over a state's writer. Raft calls it from one goroutine.
type FSM struct {
	writer *state.Writer
	store  *state.Store
	logger hclog.Logger
}

// New makes the FSM of a state.
func New(writer *state.Writer, store *state.Store, logger hclog.Logger) *FSM {
	return &FSM{writer: writer, store: store, logger: logger}
}

// Encode makes a log entry: one byte of type, then the payload in msgpack.
func Encode(t structs.LogType, payload any) ([]byte, error) {
	body, err := wire.Encode(payload)
	if err != nil {
		return nil, fmt.Errorf("log entry type %d: %w", t, err)
	}
	return append([]byte{byte(t)}, body...), nil
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
	if err := wire.Decode(entry[1:], payload); err != nil {
		return t, nil, fmt.Errorf("log entry type %d: %w", t, err)
	}
	return t, payload, nil
}

// Apply implements raft.FSM. It answers nil or an error; an error means that the
// entry changed nothing.
func (f *FSM) Apply(log *raft.Log) any {
	if log.Type != raft.LogCommand {
		f.writer.Advance(log.Index)
		return nil
	}
	if err := f.apply(log.Index, log.Data); err != nil {
		return err
	}
	return nil
}

// ApplyBatch implements raft.BatchingFSM, so that the index of entries without a
// command is known too.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	out := make([]any, len(logs))
	for i, log := range logs {
		out[i] = f.Apply(log)
	}
	return out
}

// apply applies one entry. A fault in ours that panics is answered as an error: the
// entry changes nothing, on this server as on every other, where a crash would come
// back at each start, on all of them.
func (f *FSM) apply(index uint64, data []byte) (err error) {
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
	return f.writer.Apply(index, t, payload)
}

// Snapshot implements raft.FSM: it takes the state as it is, in no time.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	return &snapshot{f.store.Snapshot()}, nil
}

// Restore implements raft.FSM: it replaces the state by one that was written, or
// leaves it as it is and says what is wrong.
func (f *FSM) Restore(from io.ReadCloser) error {
	defer from.Close() //nolint:errcheck // read only
	return restore(from, f.writer)
}

type snapshot struct{ *state.Snapshot }

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := write(sink, s.Snapshot); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (*snapshot) Release() {}

package raftdata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// applyBatch is how many entries are applied as one step.
const applyBatch = 64

// State is the state that the newest snapshot and the entries after it give, up to an index, with the index that it has come
// to. An upTo of 0 and less counts from the end of the log: 0 is all of it, -1 all but the last entry.
//
// What is kept of versions of jobs and of history is as by a server's default configuration.
func (d *Data) State(ctx context.Context, upTo int64) (*state.Snapshot, uint64, error) {
	_, last, err := d.Range()
	if err != nil {
		return nil, 0, err
	}
	if len(d.Snapshots) > 0 {
		last = max(last, d.Snapshots[0].Index)
	}
	if upTo <= 0 {
		if last == 0 || uint64(-upTo) >= last {
			return nil, 0, fmt.Errorf("the log ends at entry %d: there is no state %d entries before", last, -upTo)
		}
		last -= uint64(-upTo)
	} else {
		last = min(last, uint64(upTo))
	}
	machine, store := fsm.NewState(state.Options{EventBuffer: 1}, hclog.NewNullLogger())
	var halted error
	machine.OnHalt(func(err error) { halted = err })
	at, err := d.restore(machine, last)
	if err != nil {
		return nil, 0, err
	}
	if at, err = d.apply(ctx, machine, at, last); err != nil {
		return nil, 0, err
	}
	if halted != nil {
		return nil, 0, halted
	}
	return store.Snapshot(), at, nil
}

// restore brings the newest snapshot of an index up to last into a machine, and returns its index; 0: there is none.
func (d *Data) restore(machine raft.FSM, last uint64) (uint64, error) {
	var bad []error
	for _, s := range d.Snapshots {
		if s.Index > last {
			continue
		}
		file, err := os.Open(s.state)
		if err == nil {
			err = machine.Restore(file) // which closes it
		}
		if err == nil {
			return s.Index, nil
		}
		bad = append(bad, fmt.Errorf("snapshot %s: %w", s.ID, err)) // as Raft does, an older one is taken
	}
	return 0, errors.Join(bad...)
}

// apply applies the entries after one index up to another, and returns the index of the last one.
func (d *Data) apply(ctx context.Context, machine raft.BatchingFSM, at, last uint64) (uint64, error) {
	var batch []*raft.Log
	flush := func() {
		machine.ApplyBatch(batch)
		batch = nil
	}
	errEnd := errors.New("the end")
	err := d.Entries(at+1, func(entry *raft.Log) error {
		switch {
		case entry.Index > last:
			return errEnd
		case entry.Index != at+1:
			return fmt.Errorf("after entry %d comes entry %d: what is between is in no snapshot that can be used", at, entry.Index)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		at = entry.Index
		if batch = append(batch, entry); len(batch) == applyBatch {
			flush()
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnd) {
		return at, err
	}
	flush()
	if at < last {
		return at, fmt.Errorf("the state at entry %d is gone: no snapshot that is kept is that old, and the log does not reach back from there", last)
	}
	return at, nil
}

// TypeName names what kind of entry one of the log is.
func TypeName(entry *raft.Log) string {
	if entry.Type != raft.LogCommand {
		return strings.TrimPrefix(entry.Type.String(), "Log")
	}
	if len(entry.Data) == 0 {
		return "empty"
	}
	payload, err := structs.NewLogPayload(structs.LogType(entry.Data[0]))
	if err != nil {
		return fmt.Sprintf("unknown (%d)", entry.Data[0])
	}
	return strings.TrimSuffix(reflect.TypeOf(payload).Elem().Name(), "Entry")
}

// Payload is what an entry that changes the state holds, without secrets; nil for one of Raft's own.
func Payload(entry *raft.Log) (any, error) {
	if entry.Type != raft.LogCommand {
		return nil, nil
	}
	_, payload, err := fsm.Decode(entry.Data)
	if err != nil {
		return nil, err
	}
	return WithoutSecrets(payload), nil
}

// WithoutSecrets returns a row of the state or the payload of an entry without the secrets of nodes and without private keys.
func WithoutSecrets(v any) any {
	switch v := v.(type) {
	case *structs.Node:
		return v.Sanitize()
	case *structs.NodeRegisterEntry:
		entry := *v
		if entry.Node != nil {
			entry.Node = entry.Node.Sanitize()
		}
		return &entry
	case *structs.SigningKey:
		key := *v
		key.PrivateKey = nil
		return &key
	case *structs.SigningKeyEntry:
		entry := *v
		entry.Key.PrivateKey = nil
		return &entry
	}
	return v
}

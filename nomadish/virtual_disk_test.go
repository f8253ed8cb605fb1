package nomadish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// virtualDisk is what outlives a server's life: log, votes and snapshots.
type virtualDisk struct {
	*raft.InmemStore
	snapshots memorySnapshots
	dice      *dice
}

// forget loses the newest entries of the log, as a disk does that says of what it has not written that it has.
func (d *virtualDisk) forget(n uint64) error {
	last, err := d.LastIndex()
	if err != nil || last <= n {
		return err
	}
	return d.DeleteRange(last-n+1, last)
}

var errOff = errors.New("the machine is off")

// mounted is a disk as one life of a server uses it: writing takes its time, and what the end of the machine came before is
// not written.
type mounted struct {
	*virtualDisk
	off atomic.Bool
}

// StoreLog implements raft.LogStore.
func (m *mounted) StoreLog(l *raft.Log) error { return m.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (m *mounted) StoreLogs(logs []*raft.Log) error {
	long := 2 * time.Millisecond
	if m.dice.n(500) == 0 {
		long = time.Second // others write, too
	}
	time.Sleep(m.dice.between(100*time.Microsecond, long))
	if m.off.Load() {
		return errOff
	}
	return m.virtualDisk.StoreLogs(logs)
}

// DeleteRange implements raft.LogStore.
func (m *mounted) DeleteRange(first, last uint64) error {
	if m.off.Load() {
		return errOff
	}
	return m.virtualDisk.DeleteRange(first, last)
}

// memorySnapshots keeps the newest whole snapshot, as the store of files does: Raft's own in memory shows one that is
// being written.
type memorySnapshots struct {
	mu   sync.Mutex
	meta *raft.SnapshotMeta // nil: there is none
	data []byte
	made int
}

// Create implements raft.SnapshotStore.
func (s *memorySnapshots) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return &memorySink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, s.made), Index: index, Term: term, Configuration: conf, ConfigurationIndex: confIndex,
	}}, nil
}

// List implements raft.SnapshotStore.
func (s *memorySnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return nil, nil
	}
	meta := *s.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

// Open implements raft.SnapshotStore.
func (s *memorySnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil || s.meta.ID != id {
		return nil, nil, fmt.Errorf("snapshot %s: there is a newer one", id)
	}
	meta := *s.meta
	return &meta, io.NopCloser(bytes.NewReader(s.data)), nil
}

// memorySink is a snapshot that is being written.
type memorySink struct {
	bytes.Buffer
	store *memorySnapshots
	meta  raft.SnapshotMeta
}

// ID implements raft.SnapshotSink.
func (s *memorySink) ID() string { return s.meta.ID }

// Cancel implements raft.SnapshotSink.
func (*memorySink) Cancel() error { return nil }

// Close implements raft.SnapshotSink.
func (s *memorySink) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.meta == nil || s.meta.Index >= s.store.meta.Index {
		s.meta.Size = int64(s.Len())
		s.store.meta, s.store.data = &s.meta, s.Bytes()
	}
	return nil
}

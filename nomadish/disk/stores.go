package disk

import (
	"sync"

	"github.com/hashicorp/raft"
)

// keyTerm is what Raft keeps its current term under.
const keyTerm = "CurrentTerm"

// Stores are Raft's log and its other notes on one disk. Every write that goes wrong is reported to the Watch. That of a new
// term never goes wrong for Raft, which would panic: see the package's documentation.
type Stores struct {
	raft.LogStore // reads
	raft.StableStore
	watch *Watch

	mu   sync.Mutex
	term *uint64 // not on disk yet; nil: it is
}

// NewStores makes stores of those that write to a disk.
func NewStores(logs raft.LogStore, stable raft.StableStore, w *Watch) *Stores {
	return &Stores{LogStore: logs, StableStore: stable, watch: w}
}

// write does a write once the term is on disk.
func (s *Stores) write(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		if err := s.StableStore.SetUint64([]byte(keyTerm), *s.term); err != nil {
			s.watch.Failed(err)
			return err
		}
		s.term = nil
	}
	err := do()
	s.watch.Failed(err)
	return err
}

// StoreLog implements raft.LogStore.
func (s *Stores) StoreLog(l *raft.Log) error {
	return s.write(func() error { return s.LogStore.StoreLog(l) })
}

// StoreLogs implements raft.LogStore.
func (s *Stores) StoreLogs(l []*raft.Log) error {
	return s.write(func() error { return s.LogStore.StoreLogs(l) })
}

// DeleteRange implements raft.LogStore.
func (s *Stores) DeleteRange(first, last uint64) error {
	return s.write(func() error { return s.LogStore.DeleteRange(first, last) })
}

// Set implements raft.StableStore.
func (s *Stores) Set(key, value []byte) error {
	return s.write(func() error { return s.StableStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (s *Stores) SetUint64(key []byte, value uint64) error {
	if string(key) != keyTerm {
		return s.write(func() error { return s.StableStore.SetUint64(key, value) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = nil
	if err := s.StableStore.SetUint64(key, value); err != nil {
		s.term = &value
		s.watch.Failed(err)
	}
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *Stores) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(key) == keyTerm && s.term != nil {
		return *s.term, nil
	}
	return s.StableStore.GetUint64(key)
}

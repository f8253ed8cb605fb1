package raftnode

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Bounds of what a logCache keeps. Entries of ten thousand placements have a megabyte: as many of them as of small ones would
// be a large part of a server's memory.
const (
	cachedEntries = 512
	cachedBytes   = 16 << 20
)

// logCache keeps the newest entries of Raft's log in memory, for the FSM and for followers that are not far behind. It does
// what raft.LogCache does, but keeps fewer when they are large.
type logCache struct {
	raft.LogStore

	mu    sync.RWMutex
	logs  []*raft.Log // with neighbouring indexes, the oldest first
	bytes int         // of their data
}

// CacheLog returns a log that keeps the newest entries of another in memory.
func CacheLog(log raft.LogStore) raft.LogStore { return &logCache{LogStore: log} }

// IsMonotonic reports whether the store's log must have no gaps.
func (c *logCache) IsMonotonic() bool {
	store, ok := c.LogStore.(raft.MonotonicLogStore)
	return ok && store.IsMonotonic()
}

// GetLog implements raft.LogStore.
func (c *logCache) GetLog(index uint64, to *raft.Log) error {
	if l := c.cached(index); l != nil {
		*to = *l
		return nil
	}
	return c.LogStore.GetLog(index, to)
}

func (c *logCache) cached(index uint64) *raft.Log {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.logs) == 0 || index < c.logs[0].Index || index-c.logs[0].Index >= uint64(len(c.logs)) {
		return nil
	}
	return c.logs[index-c.logs[0].Index]
}

// StoreLog implements raft.LogStore.
func (c *logCache) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (c *logCache) StoreLogs(logs []*raft.Log) error {
	if err := c.LogStore.StoreLogs(logs); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range logs {
		if n := len(c.logs); n > 0 && c.logs[n-1].Index+1 != l.Index {
			c.forget(n) // a log that begins anew elsewhere
		}
		c.logs = append(c.logs, l)
		c.bytes += len(l.Data)
	}
	drop, bytes := 0, c.bytes
	for left := len(c.logs); left > cachedEntries || (bytes > cachedBytes && left > 0); left-- {
		bytes -= len(c.logs[drop].Data)
		drop++
	}
	c.forget(drop)
	return nil
}

// forget forgets the oldest n.
func (c *logCache) forget(n int) {
	for i, l := range c.logs[:n] {
		c.bytes -= len(l.Data)
		c.logs[i] = nil
	}
	c.logs = c.logs[n:]
}

// DeleteRange implements raft.LogStore.
func (c *logCache) DeleteRange(first, last uint64) error {
	c.mu.Lock()
	c.forget(len(c.logs))
	c.mu.Unlock()
	return c.LogStore.DeleteRange(first, last)
}

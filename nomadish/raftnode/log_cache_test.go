package raftnode

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// refusing is a log that may refuse what it is to store, and counts what is read of it.
type refusing struct {
	raft.LogStore
	refuse error
	reads  int
}

func (s *refusing) GetLog(index uint64, to *raft.Log) error {
	s.reads++
	return s.LogStore.GetLog(index, to)
}

func (s *refusing) StoreLogs(logs []*raft.Log) error {
	if s.refuse != nil {
		return s.refuse
	}
	return s.LogStore.StoreLogs(logs)
}

func TestLogCache(t *testing.T) {
	under := &refusing{LogStore: raft.NewInmemStore()}
	c := &logCache{LogStore: under}
	store := func(data []byte, indexes ...uint64) error {
		var logs []*raft.Log
		for _, i := range indexes {
			logs = append(logs, &raft.Log{Index: i, Data: data})
		}
		return c.StoreLogs(logs)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// read reads an entry and reports whether it was kept.
	read := func(index uint64, want []byte) (kept bool) {
		t.Helper()
		before := under.reads
		var got raft.Log
		must(c.GetLog(index, &got))
		if got.Index != index || !bytes.Equal(got.Data, want) {
			t.Fatalf("entry %d has index %d and %d bytes, not %d", index, got.Index, len(got.Data), len(want))
		}
		return under.reads == before
	}
	small := []byte("small")
	for i := range uint64(2 * cachedEntries) {
		must(store(small, i+1))
	}
	if !read(2*cachedEntries, small) || !read(cachedEntries+1, small) || read(cachedEntries, small) {
		t.Errorf("not the newest %d are kept", cachedEntries)
	}
	large := make([]byte, cachedBytes/4)
	next := uint64(2*cachedEntries + 1)
	must(store(large, next, next+1, next+2, next+3))
	must(store(large, next+4))
	if read(next, large) || !read(next+1, large) || !read(next+4, large) || c.bytes > cachedBytes {
		t.Errorf("%d entries of %d bytes are kept", len(c.logs), c.bytes)
	}
	huge := make([]byte, cachedBytes+1)
	must(store(huge, next+5))
	if read(next+5, huge) || len(c.logs) > 0 || c.bytes != 0 {
		t.Errorf("an entry larger than the cache: %d entries of %d bytes are kept", len(c.logs), c.bytes)
	}

	// What is replaced is not read any more, nor what was not stored.
	must(store(small, next+6, next+7))
	must(c.DeleteRange(next+7, next+7))
	other := []byte("other")
	must(store(other, next+7))
	read(next+7, other)
	must(store(small, next+20)) // after a snapshot
	if !read(next+20, small) || read(next+7, other) {
		t.Error("a log that begins anew keeps what was before")
	}
	under.refuse = errors.New("no room")
	if err := store(other, next+21); !errors.Is(err, under.refuse) {
		t.Errorf("a store without room: %v", err)
	}
	var got raft.Log
	if err := c.GetLog(next+21, &got); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("what was not stored is read: %v", err)
	}
}

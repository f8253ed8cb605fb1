package raftnode

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// A new log's file has the requested size, an old one is brought to it, and neither loses what it contains. A larger one
// stays as it is, and so does one that another has open: that one is refused, as ever.
func TestLogIsWrittenAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	size := func() int64 {
		is, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return is.Size()
	}
	entries := func(first, last uint64) (out []*raft.Log) {
		for i := first; i <= last; i++ {
			out = append(out, &raft.Log{Index: i, Data: bytes.Repeat([]byte{byte(i)}, 3000)})
		}
		return out
	}
	stored := uint64(0)
	for _, reserve := range []int64{0, 1 << 20, 3<<20 + 4096, 2 << 20} {
		log, err := openLog(path, reserve)
		if err != nil {
			t.Fatal(err)
		}
		if got := size(); got < reserve {
			t.Fatalf("with a reserve of %d bytes the file has %d", reserve, got)
		}
		for i := uint64(1); i <= stored; i++ {
			var l raft.Log
			if err := log.GetLog(i, &l); err != nil || !bytes.Equal(l.Data, entries(i, i)[0].Data) {
				t.Fatalf("entry %d: %v", i, err)
			}
		}
		if err := log.StoreLogs(entries(stored+1, stored+100)); err != nil {
			t.Fatal(err)
		}
		stored += 100
		if reserve == 0 { // once: it waits
			before := size()
			if other, err := openLog(path, 64<<20); err == nil {
				_ = other.Close()
				t.Fatal("it was opened twice")
			}
			if size() != before {
				t.Fatalf("a file that another has open went from %d to %d bytes", before, size())
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fresh := filepath.Join(t.TempDir(), "raft.db")
	log, err := openLog(fresh, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // nothing is in it
	if is, err := os.Stat(fresh); err != nil || is.Size() != 1<<20 {
		t.Fatalf("a new one: %v, %v", is, err)
	}
}

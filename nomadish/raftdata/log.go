package raftdata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long the lock of a log is waited for.
const lockWait = 2 * time.Second

// maxSnapshotMeta bounds the file that describes a snapshot, in bytes.
const maxSnapshotMeta = 4 << 20

// logBucket is where Raft's log is in the file.
var logBucket = []byte("logs")

// Data is the log and the snapshots of one server. Close it.
type Data struct {
	// Path is that of the file of the log.
	Path string
	// Snapshots are those that are whole, the newest first.
	Snapshots []*Snapshot

	db *bbolt.DB
}

// Snapshot is a state that the server has saved.
type Snapshot struct {
	raft.SnapshotMeta

	state string // the file
}

// Open opens the data in a data directory of an agent, in the directory server/raft of one, or beside a file raft.db. It is an
// error if there is none, or if the server runs.
func Open(path string) (*Data, error) {
	file, err := find(path)
	if err != nil {
		return nil, err
	}
	d := &Data{Path: file}
	err = guard(file, func() error {
		d.db, err = bbolt.Open(file, 0, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s is locked: a server is running with it; stop its agent first, or query it (`nomadish operator raft list-peers`, `nomadish operator snapshot save`)", file)
	case err != nil:
		return nil, fmt.Errorf("open Raft's log %s: %w", file, err)
	}
	if d.Snapshots, err = snapshots(filepath.Join(filepath.Dir(file), "snapshots")); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// find returns the file of the log that a path leads to.
func find(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	tried := []string{path}
	if info.IsDir() {
		tried = nil
		for _, below := range []string{"server/raft", "raft", "."} {
			tried = append(tried, filepath.Join(path, below, "raft.db"))
		}
	}
	for _, file := range tried {
		switch info, err := os.Stat(file); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case !info.Mode().IsRegular():
			return "", fmt.Errorf("%s: it is no regular file", file)
		case info.Size() == 0:
			return "", fmt.Errorf("%s is empty: it is no log of Raft's", file)
		default:
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: no log of Raft's is there; name the data_dir of a server (looked for %s)", path, strings.Join(tried, ", "))
}

// Close closes the log, so that a server may be started with it.
func (d *Data) Close() error { return d.db.Close() }

// guard turns what a damaged file makes the library do into an error.
func guard(file string, do func() error) (err error) {
	was := debug.SetPanicOnFault(true) // the file is mapped into memory, and may end too early
	defer debug.SetPanicOnFault(was)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is damaged: %v", file, r)
		}
	}()
	return do()
}

// Range are the indexes of the first and the last entry of the log; both are 0 if it has none.
func (d *Data) Range() (first, last uint64, err error) {
	err = d.read(func(c *bbolt.Cursor) error {
		if key, _ := c.First(); key != nil {
			if first, err = indexOf(key); err != nil {
				return err
			}
		}
		if key, _ := c.Last(); key != nil {
			last, err = indexOf(key)
			return err
		}
		return nil
	})
	return first, last, err
}

// Entries calls each with every entry of the log from an index on, in their order, until it fails. An entry belongs to
// whom it was given to.
func (d *Data) Entries(from uint64, each func(*raft.Log) error) error {
	return d.read(func(c *bbolt.Cursor) error {
		for key, value := c.Seek(binary.BigEndian.AppendUint64(nil, from)); key != nil; key, value = c.Next() {
			index, err := indexOf(key)
			if err != nil {
				return err
			}
			var entry raft.Log
			if err := codec.NewDecoder(bytes.NewReader(value), &codec.MsgpackHandle{}).Decode(&entry); err != nil {
				return fmt.Errorf("log entry %d: %w: the log is damaged", index, err)
			}
			if entry.Index != index {
				return fmt.Errorf("log entry %d has the index %d inside: the log is damaged", index, entry.Index)
			}
			if err := each(&entry); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *Data) read(do func(*bbolt.Cursor) error) error {
	return guard(d.Path, func() error {
		return d.db.View(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(logBucket)
			if bucket == nil {
				return fmt.Errorf("%s contains no Raft log", d.Path)
			}
			return do(bucket.Cursor())
		})
	})
}

func indexOf(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("a key of the log has %d bytes, not 8: the log is damaged", len(key))
	}
	return binary.BigEndian.Uint64(key), nil
}

// snapshots lists the snapshots in a directory, the newest first. There need be none.
func snapshots(dir string) ([]*Snapshot, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	var all []*Snapshot
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasSuffix(entry.Name(), ".tmp") { // it was being written
			continue
		}
		s := &Snapshot{state: filepath.Join(dir, entry.Name(), "state.bin")}
		if err := readMeta(filepath.Join(dir, entry.Name(), "meta.json"), &s.SnapshotMeta); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Snapshot) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index), cmp.Compare(b.ID, a.ID))
	})
	return all, nil
}

func readMeta(path string, to *raft.SnapshotMeta) error {
	file, err := os.Open(path) // the operator names the directory
	if err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	defer file.Close() //nolint:errcheck // read only
	if err := json.NewDecoder(io.LimitReader(file, maxSnapshotMeta)).Decode(to); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

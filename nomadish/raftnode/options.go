package raftnode

import (
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// Options are the options of a server's part in Raft.
type Options struct {
	// Dir is where a server keeps what must outlive it; the log and the snapshots are under raft/. Empty: all in memory.
	Dir string
	// Name is the server's, by which a log that was written before servers had IDs knows it.
	Name  string
	NewID func() string

	// LogReserve is how many bytes of a new log's file are written ahead, as far as there is room; 0: none.
	LogReserve int64
	// Disk reports when the disk of Dir counts as full: this server does not lead then if another can.
	// MeasureDisk measures it; nil: the system's word counts.
	Disk        structs.DiskLimit
	MeasureDisk func(dir string) (structs.DiskRoom, error)

	// Alone has the server bootstrap a cluster of itself at its first start.
	Alone bool

	// Raft's clocks. A follower that hears nothing for Heartbeat requests votes.
	Heartbeat         time.Duration
	Election          time.Duration
	Lease             time.Duration
	Commit            time.Duration
	SnapshotInterval  time.Duration
	SnapshotThreshold uint64 // log entries between snapshots
	TrailingLogs      uint64
	// ApplyTimeout bounds the wait for a log entry to be taken in by Raft.
	ApplyTimeout time.Duration

	// Member reports whether a server, by its ID, is of this cluster. It is not called before Open has returned, unless another
	// server calls.
	Member func(id string) bool
	// Readable returns an error if an entry of a type may not be written: a server would not know it. Nil: any may.
	Readable func(t structs.LogType) error

	Logger hclog.Logger
}

func (o *Options) raftDir() string { return filepath.Join(o.Dir, "raft") }

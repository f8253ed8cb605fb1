package structs

import "time"

// SnapshotMeta is what an archive of a cluster's state states about itself: its meta.json.
type SnapshotMeta struct {
	// Format is the archive's. It is raised when an older version would read it wrongly.
	Format int
	// Index and Term are those of the last log entry that the state holds.
	Index uint64
	Term  uint64
	// StateBytes is the size of the state, uncompressed.
	StateBytes int64
	// Servers were the cluster's when it was saved, by its configuration at
	// ConfigurationIndex. A restore leaves the cluster's servers as they are.
	Servers            []SnapshotServer
	ConfigurationIndex uint64
	RaftVersion        int // of Raft's own snapshot format

	Server  string // which saved it
	Region  string
	Version string // of that server
	Created time.Time
}

// SnapshotServer is a server of a cluster that was saved.
type SnapshotServer struct {
	ID      string
	Address string
	Voter   bool
}

// SnapshotTable counts what an archive has of one table.
type SnapshotTable struct {
	Name  string
	Rows  int
	Bytes int64 // uncompressed
}

// SnapshotInfo is what is found in an archive that is whole.
type SnapshotInfo struct {
	Meta   SnapshotMeta
	Tables []SnapshotTable // in the order in which they are written
	Bytes  int64           // the archive's size
	Digest string          // SHA-256 of the archive, in hexadecimal
	// StateIndex is the index of the last entry that changed the state; entries that
	// carry no command may follow up to Meta.Index.
	StateIndex uint64
}

type (
	// SnapshotSaveRequest requests an archive of a server's state.
	SnapshotSaveRequest struct{ QueryOptions }
	// SnapshotChunk is a piece of it. The first has no Data but states what comes.
	SnapshotChunk struct {
		Index  uint64 `codec:",omitempty"`
		Bytes  int64  `codec:",omitempty"`
		SHA256 []byte `codec:",omitempty"`
		Data   []byte `codec:",omitempty"`
		// Meta is how the server knew its leader; the first chunk has it. Its Index is not used.
		Meta *QueryMeta `codec:",omitempty"`
	}
	// SnapshotUploadRequest returns the leader a piece of an archive that is to be restored.
	SnapshotUploadRequest struct {
		ID     string // of the upload; empty: begin one
		Offset int64  // where Data belongs
		Data   []byte
		Drop   bool // forget it
		WriteRequest
	}
	// SnapshotUploadReply names the upload.
	SnapshotUploadReply struct {
		ID string
		WriteMeta
	}
	// SnapshotRestoreRequest has the leader restore what was uploaded.
	SnapshotRestoreRequest struct {
		ID string
		WriteRequest
	}
	// SnapshotRestoreReply describes what was restored.
	SnapshotRestoreReply struct {
		Info *SnapshotInfo
		WriteMeta
	}
)

// Package snapshot answers the RPC methods by which operators save the whole state and restore it. A state has the secrets of all nodes.
package snapshot

import (
	"context"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/structs"
)

// State takes and restores the whole state.
type State interface {
	// Take returns this server's state as it is; the caller closes the reader.
	Take() (*structs.SnapshotMeta, io.ReadCloser, error)
	// Restore puts the state of an archive, of info.Meta.StateBytes and found whole, in
	// place of the cluster's. It answers on the leader, when the followers have it too, and
	// returns the index at which it did.
	Restore(ctx context.Context, info *structs.SnapshotInfo, state io.Reader) (index uint64, err error)
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router  *rpc.Router
	State   State
	Spool   *snapshot.Spool
	NewID   func() string
	Now     func() time.Time
	Logger  hclog.Logger
	Version string // of this server
}

// Endpoint answers the methods of snapshots.
type Endpoint struct {
	Deps
	// saving and restoring are the slots of who saves and restores the state, fetching those of the few
	// who fetch what was saved: each has a file of that size.
	saving, restoring, fetching chan struct{}
}

// New returns a new endpoint.
func New(d Deps) *Endpoint {
	return &Endpoint{Deps: d, saving: make(chan struct{}, 1), restoring: make(chan struct{}, 1), fetching: make(chan struct{}, 4)}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodSnapshotSave, Handler: r.Routed(true, wire.Streaming(e.save))},
		{Name: wire.MethodSnapshotUpload, Handler: rpc.Write(r, e.upload)},
		{Name: wire.MethodSnapshotRestore, Handler: rpc.Write(r, e.restore)},
	}
}

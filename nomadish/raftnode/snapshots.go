package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// restoreHole is how many indexes are left out before a state that was restored: entries
// that are committed until Raft gets to it have lower ones, so that no index ever goes back.
const restoreHole = 10_000

// TakeSnapshot has Raft make a snapshot now.
func (n *Node) TakeSnapshot() (*structs.SnapshotMeta, io.ReadCloser, error) {
	f := n.Snapshot()
	if err := f.Error(); err != nil {
		return nil, nil, WrapError(err)
	}
	m, from, err := f.Open()
	if err != nil {
		return nil, nil, structs.Errorf(structs.CodeInternal, "open the snapshot: %w", err)
	}
	meta := &structs.SnapshotMeta{
		Index: m.Index, Term: m.Term, StateBytes: m.Size, ConfigurationIndex: m.ConfigurationIndex, RaftVersion: int(m.Version),
	}
	for _, server := range m.Configuration.Servers {
		meta.Servers = append(meta.Servers, structs.SnapshotServer{
			ID: string(server.ID), Address: string(server.Address), Voter: server.Suffrage == raft.Voter,
		})
	}
	return meta, from, nil
}

// RestoreSnapshot has Raft put another state in place of the one there is, here and, by a snapshot that it sends them, on the
// followers. It returns the index of that state.
func (n *Node) RestoreSnapshot(ctx context.Context, info *structs.SnapshotInfo, state io.Reader) (uint64, error) {
	before := max(n.LastIndex(), info.Meta.Index) + restoreHole
	at := before + 1
	moved, size, err := fsm.Move(state, info.Meta.StateBytes, at)
	if err != nil {
		return 0, err
	}
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: before, Size: size}
	return at, n.restored(ctx, func() error { return n.Restore(meta, moved, 0) })
}

// doing is what Raft does by itself, as a future.
type doing func() error

// Error implements raft.Future.
func (d doing) Error() error { return d() }

// restored waits for a restore until ctx or Raft ends. The state that it reads comes to an end with ctx, so that nothing is done
// if it was not whole yet.
func (n *Node) restored(ctx context.Context, restore func() error) error {
	err := n.Await(ctx, doing(restore))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	}
	return WrapError(fmt.Errorf("restore: %w", err))
}

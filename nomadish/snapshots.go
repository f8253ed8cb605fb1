package nomadish

import (
	"context"
	"io"
	"path/filepath"

	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/structs"
)

func newSpool(cfg *Config) (*snapshot.Spool, error) {
	o := cfg.Snapshots
	if dir := cfg.serverDir(); dir != "" {
		o.Dir = filepath.Join(dir, "snapshots")
	}
	return snapshot.NewSpool(o)
}

// snapshots takes and restores the state through Raft.
type snapshots struct {
	raft   *raftnode.Node
	leader *leaderParts
}

// Take has Raft make a snapshot now.
func (s *snapshots) Take() (*structs.SnapshotMeta, io.ReadCloser, error) {
	return s.raft.TakeSnapshot()
}

// Restore has Raft put another state in place of the one there is. What only a leader runs stops before and starts anew after it.
func (s *snapshots) Restore(ctx context.Context, info *structs.SnapshotInfo, state io.Reader) (at uint64, err error) {
	err = s.leader.during(ctx, func() error {
		at, err = s.raft.RestoreSnapshot(ctx, info, state)
		return err
	})
	if err != nil {
		return 0, err
	}
	return at, nil
}

package nomadish

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// nodePoolRetry is the time until the node pools that are missing are made, and between looks for more of them.
const nodePoolRetry = 30 * time.Second

// makeNodePools makes the pools that nodes and jobs name and that there are not: those of a region that is upgraded from a version
// that did not keep them, or of nodes that registered while a server could not be queried whether it knows the entry. It ends
// with ctx. It begins a while after leading does: a state that was just set back to an earlier one is seen as it was saved.
func (l *leaderParts) makeNodePools(ctx context.Context) {
	retry := time.NewTicker(nodePoolRetry)
	defer retry.Stop()
	for {
		select {
		case <-retry.C:
		case <-ctx.Done():
			return
		}
		known := l.raft.Readable(structs.LogNodePoolUpsert) == nil
		missing := l.store.Snapshot().NodePools().Missing()
		switch {
		case known && len(missing) > 0:
			entry := &structs.NodePoolUpsertEntry{IfAbsent: true, Time: time.Now().UnixNano()}
			for _, name := range missing {
				entry.Pools = append(entry.Pools, &structs.NodePool{Name: name})
			}
			if _, err := l.raft.Apply(ctx, structs.LogNodePoolUpsert, entry); err != nil && ctx.Err() == nil {
				l.logger.Warn("make the node pools that nodes and jobs name", "pools", len(missing), "error", err)
			}
		}
	}
}

package nomadish

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// nodePoolRetry is the time between tries to make the node pools that are missing, while some server of the region does not know
// their entries yet.
const nodePoolRetry = 30 * time.Second

// makeNodePools makes the pools that nodes and jobs name and that there are not: those of a region that is upgraded from a version
// that did not keep them. It ends with ctx, or when none is missing and all servers know the entry, as then each node that
// registers makes its own.
func (l *leaderParts) makeNodePools(ctx context.Context) {
	retry := time.NewTicker(nodePoolRetry)
	defer retry.Stop()
	for {
		known := l.raft.readable == nil || l.raft.readable(structs.LogNodePoolUpsert) == nil
		missing := l.store.Snapshot().MissingNodePools()
		switch {
		case known && len(missing) == 0:
			return
		case known:
			entry := &structs.NodePoolUpsertEntry{IfAbsent: true, Time: time.Now().UnixNano()}
			for _, name := range missing {
				entry.Pools = append(entry.Pools, &structs.NodePool{Name: name})
			}
			if _, err := l.raft.Apply(ctx, structs.LogNodePoolUpsert, entry); err != nil && ctx.Err() == nil {
				l.logger.Warn("make the node pools that nodes and jobs name", "pools", len(missing), "error", err)
			}
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return
		}
	}
}

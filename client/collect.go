package client

import (
	"context"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"golang.org/x/sync/errgroup"

	"github.com/nomadish/nomadish/client/gc"
	"github.com/nomadish/nomadish/structs"
)

// collectOld removes old ended allocations, now and then and on request,
// until ctx ends.
func (n *node) collectOld(ctx context.Context) {
	t := time.NewTicker(n.c.config.GC.Interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.collect:
			n.collectOver(ctx, false)
		case <-t.C:
			n.collectOver(ctx, true)
		}
	}
}

// collectOver removes what is over the limits.
func (n *node) collectOver(ctx context.Context, lookAtDisk bool) {
	limits := gc.Limits{MaxAllocs: n.keep, DiskPercent: n.c.config.GC.DiskUsageThreshold}
	for ctx.Err() == nil {
		used := 0.0
		if lookAtDisk {
			if u, err := disk.UsageWithContext(ctx, n.dir); err == nil {
				used = u.UsedPercent
			}
		}
		ended, running := n.collectable()
		ids := gc.Pick(ended, running, used, limits)
		if len(ids) == 0 {
			return
		}
		n.collectAll(ids)
	}
}

// collectable lists the ended allocations whose end the servers know.
func (n *node) collectable() (ended []gc.Ended, running int) {
	for _, r := range n.all() {
		if at, ok := r.EndedAt(); ok && n.isAcked(r.ID()) {
			ended = append(ended, gc.Ended{ID: r.ID(), At: at})
		} else {
			running++
		}
	}
	return ended, running
}

func (n *node) collectAll(ids []string) {
	var g errgroup.Group
	g.SetLimit(n.c.config.GC.ParallelDestroys)
	for _, id := range ids {
		g.Go(func() error { n.removeKnown(id); return nil })
	}
	_ = g.Wait() // none fails
}

// collectOne removes an ended allocation on request.
func (n *node) collectOne(id string) error {
	r := n.runner(id)
	if r == nil {
		return structs.Errorf(structs.CodeNotFound, "allocation %s: not on this node", structs.ShortID(id))
	}
	if _, ended := r.EndedAt(); !ended {
		return structs.Errorf(structs.CodeBadRequest, "allocation %s: it has not ended; stop it first", structs.ShortID(id))
	}
	if !n.isAcked(id) {
		return structs.Errorf(structs.CodeConflict, "allocation %s: its end is not reported to the servers yet; try again", structs.ShortID(id))
	}
	n.removeKnown(id)
	return nil
}

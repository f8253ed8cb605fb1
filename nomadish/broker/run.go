package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Run keeps the broker filled from the state until ctx ends; then it is empty and
// refuses to hand out anything.
func (b *Broker) Run(ctx context.Context, store *state.Store) {
	b.mu.Lock()
	b.chores = newChores(b.opts.NewID, b.opts.FollowUpDelay)
	chores := b.chores
	b.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		chores.run(ctx, b.applier, func(err error) { b.opts.Logger.Warn("commit changed evaluations; trying again", "error", err) })
	})
	wg.Go(func() { b.report(ctx) })
	defer b.reset(false)
	for ctx.Err() == nil {
		b.reset(true)
		snap := store.Snapshot()
		b.Pause(snap.SchedulerConfig(nil).PauseEvalBroker)
		for _, e := range snap.PendingEvals() {
			b.evalChanged(e, store)
		}
		err := b.follow(ctx, store, store.Feed(snap.Index()))
		if ctx.Err() == nil {
			b.opts.Logger.Warn("evaluation broker starts again from the state", "reason", err)
		}
	}
}

// follow keeps the broker by the feed; it returns when that has moved on without it.
func (b *Broker) follow(ctx context.Context, store *state.Store, feed *state.Feed) error {
	for {
		changes, err := feed.Next(ctx)
		if err != nil {
			if !errors.Is(err, state.ErrFellBehind) && ctx.Err() == nil {
				b.opts.Logger.Error("follow the state", "error", err)
			}
			return err
		}
		freed := map[string]bool{}
		for _, c := range changes.Items {
			switch now := c.New.(type) {
			case *structs.Evaluation:
				b.evalChanged(now, store)
			case *structs.Node:
				was, _ := c.Old.(*structs.Node)
				if now != nil && now.Ready() && (was == nil || !was.Ready() || was.ComputedClass != now.ComputedClass || moreRoom(was, now)) {
					freed[now.ComputedClass] = true
				}
			case *structs.Allocation:
				was, _ := c.Old.(*structs.Allocation)
				if now != nil && now.Terminal() && was != nil && !was.Terminal() {
					b.freedOn(store, now.NodeID, freed)
				}
			case *structs.SchedulerConfiguration:
				b.Pause(now.PauseEvalBroker)
			case nil:
				b.gone(c, store, freed)
			}
		}
		for class := range freed { // order does not matter: all are woken
			b.free(class, changes.Index)
		}
	}
}

// gone deals with what was deleted.
func (b *Broker) gone(c state.Change, store *state.Store, freed map[string]bool) {
	switch was := c.Old.(type) {
	case *structs.Evaluation:
		b.forget(was.ID)
		b.unblock(was.ID)
	case *structs.Allocation:
		if !was.Terminal() {
			b.freedOn(store, was.NodeID, freed)
		}
	}
}

func (b *Broker) freedOn(store *state.Store, nodeID string, freed map[string]bool) {
	if node := store.Snapshot().Node(nil, nodeID); node != nil && node.Ready() {
		freed[node.ComputedClass] = true
	}
}

// moreRoom tells whether a node that was ready came to have more.
func moreRoom(was, now *structs.Node) bool {
	if was.NodeResources == nil || now.NodeResources == nil {
		return was.NodeResources != now.NodeResources
	}
	a, z := was.NodeResources, now.NodeResources
	return z.Cpu.CpuShares > a.Cpu.CpuShares || z.Memory.MemoryMB > a.Memory.MemoryMB || z.Disk.DiskMB > a.Disk.DiskMB ||
		len(z.Cpu.ReservableCpuCores) > len(a.Cpu.ReservableCpuCores) || len(z.Devices) != len(a.Devices)
}

// evalChanged brings the broker in line with one evaluation.
func (b *Broker) evalChanged(e *structs.Evaluation, _ *state.Store) {
	if e == nil {
		return
	}
	switch e.Status {
	case structs.EvalStatusPending:
		b.unblock(e.ID)
		b.enqueue(e)
	case structs.EvalStatusBlocked:
		b.forget(e.ID)
		b.mu.Lock()
		missed := b.blocked.add(e)
		chores := b.chores
		b.mu.Unlock()
		if missed {
			chores.wakeUp([]*structs.Evaluation{e})
		}
	default:
		b.forget(e.ID)
		b.unblock(e.ID)
	}
}

func (b *Broker) unblock(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.blocked.evals, id)
}

// free wakes the evaluations that wait for room in a class.
func (b *Broker) free(class string, index uint64) {
	b.mu.Lock()
	woken := b.blocked.free(class, index)
	chores := b.chores
	b.mu.Unlock()
	if len(woken) > 0 {
		chores.wakeUp(woken)
	}
}

// report keeps the gauges, with Nomad's names.
func (b *Broker) report(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s := b.Stats()
		for name, n := range map[string]int{
			"total_ready": s.Ready, "total_unacked": s.Unacked, "total_waiting": s.Waiting, "total_pending": s.Pending,
		} {
			metrics.SetGauge([]string{"nomad", "broker", name}, float32(n))
		}
		for t, n := range s.ReadyBy {
			metrics.SetGauge([]string{"nomad", "broker", t, "ready"}, float32(n))
		}
		metrics.SetGauge([]string{"nomad", "blocked_evals", "total_blocked"}, float32(s.Blocked))
		metrics.SetGauge([]string{"nomad", "blocked_evals", "total_escaped"}, float32(s.Escaped))
	}
}

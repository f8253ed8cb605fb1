package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Run keeps the broker filled from the state until ctx ends; then it is empty and
// refuses to hand out anything. It is called once at a time.
func (b *Broker) Run(ctx context.Context, store *state.Store) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer b.disable()
	chores := b.enable(store)
	wg.Go(func() { chores.run(ctx, b.applier, b.opts.Logger) })
	wg.Go(func() { b.report(ctx) })
	for ctx.Err() == nil {
		snap := store.Snapshot()
		feed := store.Feed(snap.Index())
		b.resync(snap)
		err := b.follow(ctx, store, feed)
		if ctx.Err() == nil {
			b.opts.Logger.Info("evaluation broker starts again from the state", "reason", err)
		}
	}
}

func (b *Broker) enable(store *state.Store) *chores {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.stored = func(id string) *structs.Evaluation { return store.Snapshot().Eval(nil, id) }
	return b.chores
}

func (b *Broker) disable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enabled = false
	b.clear()
	b.awake()
}

// resync fills the broker from a snapshot. What workers hold stays held; deliveries
// that came to nothing stay counted.
func (b *Broker) resync(snap *state.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	failures := map[string]int{}
	held := map[string]*item{}
	for id, it := range b.known { // order does not matter: sorted into two maps
		if it.token != "" {
			held[id] = it
			continue
		}
		it.stop()
		failures[id] = it.failures
	}
	b.known = held
	b.ready = map[string]*queue{}
	b.serial = map[structs.NamespacedID]*lane{}
	// What came free before cannot be known: what was decided on an older state, stored
	// as blocked already or not yet, is tried again.
	b.blocked.stop()
	b.blocked = newBlocked()
	b.blocked.floor = snap.Index()
	for id, it := range held { // order does not matter: each is of another job
		b.serial[it.eval.Job()] = &lane{current: it}
		if now := snap.Eval(nil, id); now == nil || now.Status != structs.EvalStatusPending {
			b.forget(id)
		}
	}
	for _, e := range snap.PendingEvals() {
		switch e.Status {
		case structs.EvalStatusPending:
			b.enqueue(e, failures[e.ID])
		case structs.EvalStatusBlocked:
			b.block(e)
		}
	}
	b.pause(snap.SchedulerConfig(nil).PauseEvalBroker)
	b.enabled = true
	b.awake()
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
		r := releases{snap: store.Snapshot(), classes: map[string]bool{}}
		b.mu.Lock()
		for i := range changes.Items {
			b.changed(&changes.Items[i])
			r.note(&changes.Items[i])
		}
		for class := range r.classes { // order does not matter: all are woken
			b.chores.wakeUp(b.blocked.free(class, changes.Index)...)
		}
		b.mu.Unlock()
	}
}

// changed brings the broker in line with one change.
func (b *Broker) changed(c *state.Change) {
	switch c.Kind {
	case state.KindConfig:
		if now, ok := c.New.(*structs.SchedulerConfiguration); ok {
			b.pause(now.PauseEvalBroker)
		}
	case state.KindEval:
		e, _ := c.New.(*structs.Evaluation)
		switch {
		case e != nil && e.Status == structs.EvalStatusPending:
			b.blocked.remove(c.Key)
			b.enqueue(e, 0)
		case e != nil && e.Status == structs.EvalStatusBlocked:
			b.forget(c.Key)
			b.block(e)
		default:
			b.forget(c.Key)
			b.blocked.remove(c.Key)
		}
	case state.KindJob, state.KindAlloc, state.KindNode, state.KindReservation: // see releases
	}
}

// block lets an evaluation wait for room, or until the time comes when it is to be
// decided again all the same.
func (b *Broker) block(e *structs.Evaluation) {
	if b.blocked.add(e) {
		b.chores.wakeUp(e)
		return
	}
	if e.WaitUntil.IsZero() {
		return
	}
	waiting := b.blocked
	var timer *time.Timer
	timer = time.AfterFunc(max(0, time.Until(e.WaitUntil)), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if waiting.due[e.ID] == timer { // else it waits no longer, or for another time
			waiting.remove(e.ID)
			b.chores.wakeUp(e)
		}
	})
	waiting.due[e.ID] = timer
}

// releases gathers the classes of nodes in which a commit may have freed room.
type releases struct {
	snap    *state.Snapshot // not older than the commit
	classes map[string]bool // "" is every class
}

func (r *releases) note(c *state.Change) {
	switch c.Kind {
	case state.KindNode:
		was, _ := c.Old.(*structs.Node)
		now, _ := c.New.(*structs.Node)
		if now != nil && now.Ready() && (was == nil || !was.Ready() || was.ComputedClass != now.ComputedClass || moreRoom(was, now)) {
			r.classes[now.ComputedClass] = true
		}
	case state.KindAlloc:
		was, _ := c.Old.(*structs.Allocation)
		now, _ := c.New.(*structs.Allocation)
		if was == nil || was.Terminal() {
			return // it held nothing
		}
		frozen := now != nil && now.Suspended() && !was.Suspended()
		if now == nil || now.Terminal() || frozen || now.AllocatedResources != was.AllocatedResources {
			if node := r.snap.Node(nil, was.NodeID); node != nil && node.Ready() {
				r.classes[node.ComputedClass] = true
			}
		}
	case state.KindReservation:
		was, _ := c.Old.(*structs.Reservation)
		if node := r.snap.Node(nil, c.Key); was != nil && node != nil && node.Ready() {
			r.classes[node.ComputedClass] = true
		}
	case state.KindConfig: // preemption or oversubscription may make room anywhere
		if c.Old != nil {
			r.classes[""] = true
		}
	case state.KindJob, state.KindEval:
	}
}

// moreRoom tells whether a node that was ready came to have more, or other, than it had.
func moreRoom(was, now *structs.Node) bool {
	if was.NodeResources == nil || now.NodeResources == nil {
		return was.NodeResources != now.NodeResources
	}
	if was.ReservedResources != now.ReservedResources {
		return true // a copy of it, or other numbers: a wake too many does no harm
	}
	a, z := was.NodeResources, now.NodeResources
	return z.Cpu.CpuShares > a.Cpu.CpuShares || z.Memory.MemoryMB > a.Memory.MemoryMB || z.Disk.DiskMB > a.Disk.DiskMB ||
		len(z.Cpu.ReservableCpuCores) > len(a.Cpu.ReservableCpuCores) || healthy(z.Devices) > healthy(a.Devices) ||
		z.MinDynamicPort != a.MinDynamicPort || z.MaxDynamicPort != a.MaxDynamicPort
}

func healthy(groups []*structs.NodeDeviceResource) (n int) {
	for _, g := range groups {
		for _, d := range g.Instances {
			if d.Healthy {
				n++
			}
		}
	}
	return n
}

package queue

import (
	"context"
	"errors"
	"sync"

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
	b.snapshot, b.fed = store.Snapshot, store.Fed
	return b.chores
}

func (b *Broker) disable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enabled = false
	b.clear()
	b.gates.awake()
	b.wakeWatcher()
}

// resync fills the broker from a snapshot. What is leased stays leased; deliveries
// that came to nothing stay counted.
func (b *Broker) resync(snap *state.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	failures := map[string]int{}
	leased := map[string]*item{}
	for id, it := range b.known { // order does not matter: sorted into two maps
		if it.token != "" {
			leased[id] = it
			continue
		}
		it.stop()
		failures[id] = it.failures
	}
	b.known = leased
	b.config = snap.SchedulerConfig(nil)
	b.gates.clear()
	b.serial = map[structs.NamespacedID]*lane{}
	// What came free before cannot be known: what was decided on an older state, stored
	// as blocked already or not yet, is tried again.
	b.blocked.clear()
	b.blocked.freed.floor = snap.Index()
	b.blocked.owners.resync(snap)
	b.lessened = snap.Index()
	for r := range snap.Reservations(nil) {
		b.blocked.reserved[r.NodeID] = jobOf(r)
		b.blocked.reservations[jobOf(r)]++
	}
	open := snap.PendingEvals()
	b.blocked.keys, b.opts.Keys = b.opts.Keys, nil // they are of this state alone
	for _, e := range open {
		if e.Status == structs.EvalStatusBlocked {
			b.blocked.block(snap, e)
		}
	}
	b.blocked.keys = nil
	for id, it := range leased { // order does not matter: each is of another job
		b.serial[it.eval.Job()] = &lane{current: it}
		if it.entry != nil {
			it.entry.gone = true // there is a new one
		}
		it.position, it.inGate, it.inReady, it.inLeft = b.positionOfItem(snap, it), 0, 0, 0
		b.gates.enter(it)
		if now := snap.Eval(nil, id); it.entry == nil && (now == nil || now.Status != structs.EvalStatusPending) {
			b.forget(id)
		}
	}
	for _, e := range open {
		if e.Status == structs.EvalStatusPending {
			b.enqueue(snap, e, failures[e.ID])
		}
	}
	b.pause(b.config.PauseEvalBroker)
	b.enabled = true
	b.saw(snap.Index())
	b.gates.awake()
	b.gates.poke()
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
		b.committed(store.Snapshot(), &changes)
	}
}

// committed brings the broker in line with one commit; snap is not older than that.
func (b *Broker) committed(snap *state.Snapshot, changes *state.Changes) {
	r := releases{
		snap: snap, classes: map[string]bool{}, nodes: map[string]string{}, jobs: map[structs.NamespacedID]bool{}, unreserved: map[string]bool{},
		owners: map[string]bool{}, unbound: map[string]bool{}, edited: map[string]bool{}, projects: map[string]bool{}, slotNodes: map[string]bool{}, used: map[string]bool{},
		licenses: map[string]bool{},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var projects changedProjects
	if b.gates.users {
		r.users = map[string]bool{}
	}
	for i := range changes.Items {
		b.changed(r.snap, &changes.Items[i])
		r.note(&changes.Items[i])
		projects.note(&changes.Items[i])
	}
	b.projectsChanged(r.snap, &projects)
	if r.lessens {
		b.lessened = changes.Index
	}
	b.gates.reshare(&r)
	owners := ownerChanges{b, &r}
	owners.owned()
	b.blocked.free(&r, changes.Index)
	owners.moved()
	b.blocked.noteRaises(&r, changes.Index)
	b.saw(changes.Index)
}

// changed brings the broker in line with one change.
func (b *Broker) changed(snap *state.Snapshot, c *state.Change) {
	switch c.Kind {
	case state.KindConfig:
		if now, ok := c.New.(*structs.SchedulerConfiguration); ok {
			b.configured(snap, now)
		}
	case state.KindEval:
		e, _ := c.New.(*structs.Evaluation)
		switch {
		case e != nil && e.Status == structs.EvalStatusPending:
			b.blocked.unblock(c.Key)
			b.enqueue(snap, e, 0)
		case e != nil && e.Status == structs.EvalStatusBlocked:
			b.forget(c.Key)
			b.blocked.block(snap, e)
		default:
			b.forget(c.Key)
			b.blocked.unblock(c.Key)
		}
	case state.KindJob:
		for _, v := range []any{c.Old, c.New} {
			if job, ok := v.(*structs.Job); ok {
				b.reposition(snap, job.NamespacedID(), true)
				break
			}
		}
	case state.KindRequest:
		for _, v := range []any{c.Old, c.New} {
			if request, ok := v.(*structs.PendingRequest); ok {
				b.reposition(snap, request.Job(), false)
				break
			}
		}
	case state.KindReservation:
		b.reserved(snap, c)
	case state.KindAlloc:
		was, _ := c.Old.(*state.AllocRow)
		now, _ := c.New.(*state.AllocRow)
		if was != nil && now != nil && toGoOn(was) != toGoOn(now) {
			b.reposition(snap, now.JobID(), true)
		}
	case state.KindNode: // see releases, as for what allocations free
	case state.KindProject: // see projectsChanged
	case state.KindWorkflow:
		was, _ := c.Old.(*structs.WorkflowRun)
		now, _ := c.New.(*structs.WorkflowRun)
		b.blocked.lends(snap, was, now)
	case state.KindVirtualCluster, state.KindExchange, state.KindLicense: // see ownerChanges
	case state.KindNodePool: // which nodes are in it, they determine themselves
	}
}

// configured takes a new configuration, by which everything may have another position.
func (b *Broker) configured(snap *state.Snapshot, now *structs.SchedulerConfiguration) {
	b.config = *now
	b.pause(now.PauseEvalBroker)
	for job := range b.serial { // order does not matter: ranks decide
		b.reposition(snap, job, true)
	}
	for job := range b.blocked.ofJob { // nor here
		if b.serial[job] == nil {
			b.reposition(snap, job, true)
		}
	}
}

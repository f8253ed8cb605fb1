// Package drain empties nodes that an operator wants empty: it has their allocations
// moved and ends the drain when none is left.
//
// Services move first, of each group migrate.max_parallel at a time: as many of its
// instances as that may be missing, moving, or not healthy yet, wherever they are; an
// instance that is not healthy moves at once, as nothing is lost by it. Batch work
// may finish until the deadline. System jobs are stopped last, unless they are to be
// left. After the deadline, or without delay when it is negative, everything is
// stopped.
//
// It runs on the leader and keeps nothing: what it does follows from the state alone,
// so that a new leader goes on where the last one was. It must never stop an
// allocation itself: it requests transitions, and the scheduler stops and replaces.
package drain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var movesCount = telemetry.NewCount("nomad.drain.moves")

const (
	// entryLimit bounds the transitions of one log entry.
	entryLimit = 2048
	// retry is waited after a commit that failed.
	retry = time.Second
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Drainer drains nodes.
type Drainer struct {
	apply  Applier
	newID  func() string
	clock  clock.Clock
	logger hclog.Logger
}

// New makes a drainer; Run runs it. newID mints the IDs of evaluations.
func New(apply Applier, newID func() string, logger hclog.Logger) *Drainer {
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	return &Drainer{apply: apply, newID: newID, clock: clock.Or(nil), logger: logger}
}

// Run drains until ctx ends.
func (d *Drainer) Run(ctx context.Context, store *state.Store) {
	for ctx.Err() == nil {
		snap := store.Snapshot()
		d.follow(ctx, store, store.Feed(snap.Index()), watchOf(snap))
	}
}

// watchOf watches the nodes that are draining.
func watchOf(snap *state.Snapshot) *watch {
	w := &watch{draining: map[string]bool{}}
	for n := range snap.Nodes(nil, "", false) {
		if n.DrainStrategy != nil {
			w.draining[n.ID] = true
		}
	}
	return w
}

// follow looks at the draining nodes on every change that may matter to them, and in
// time. It returns when it has fallen behind the feed or ctx ends.
func (d *Drainer) follow(ctx context.Context, store *state.Store, feed *state.Feed, w *watch) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	changes := make(chan state.Changes)
	wg.Go(func() {
		defer close(changes)
		for {
			c, err := feed.Next(ctx)
			if err != nil {
				return
			}
			select {
			case changes <- c:
			case <-ctx.Done():
				return
			}
		}
	})
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return
			}
			if w.note(c) {
				due.Reset(0)
			}
		case <-due.C:
			if next := d.look(ctx, store.Snapshot(), w); next > 0 {
				due.Reset(next)
			}
		}
	}
}

// watch is what a drain may depend on.
type watch struct {
	draining map[string]bool               // nodes
	jobs     map[structs.NamespacedID]bool // of which something waits on such a node
}

// note takes a commit in and reports whether it calls for a look.
func (w *watch) note(c state.Changes) (look bool) {
	for i := range c.Items {
		switch ch := &c.Items[i]; ch.Kind {
		case state.KindNode:
			if n, _ := ch.New.(*structs.Node); n != nil && n.DrainStrategy != nil {
				w.draining[ch.Key], look = true, true
			} else {
				delete(w.draining, ch.Key)
			}
		case state.KindAlloc:
			for _, v := range []any{ch.Old, ch.New} {
				a, _ := v.(*state.AllocRow)
				look = look || (a != nil && (w.draining[a.NodeID()] || w.jobs[a.JobID()]))
			}
		case state.KindJob, state.KindEval, state.KindConfig, state.KindReservation, state.KindRequest, state.KindNodePool, state.KindVirtualCluster, state.KindExchange, state.KindProject,
			state.KindWorkflow, state.KindLicense:
		}
	}
	return look && len(w.draining) > 0
}

// look does what is called for now and returns when to look again (0: when something
// changes).
func (d *Drainer) look(ctx context.Context, snap *state.Snapshot, w *watch) time.Duration {
	if len(w.draining) == 0 {
		return 0
	}
	p := newPass(snap, d.clock.Now())
	var done []string
	for _, id := range slices.Sorted(maps.Keys(w.draining)) {
		node := snap.Node(nil, id)
		if node != nil && node.DrainStrategy != nil && p.node(node) {
			done = append(done, id)
		}
	}
	w.jobs = p.waiting
	if err := d.commit(ctx, p, done); err != nil && ctx.Err() == nil {
		d.logger.Error("drain nodes; trying again", "error", err)
		return retry
	}
	return p.again
}

func (d *Drainer) commit(ctx context.Context, p *pass, done []string) error {
	now := p.now.UnixNano()
	moves := slices.Sorted(maps.Keys(p.moves))
	for len(moves) > 0 {
		entry := &structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{}, Time: now}
		n := min(len(moves), entryLimit)
		for _, id := range moves[:n] {
			entry.Transitions[id] = &structs.DesiredTransition{Migrate: new(true)}
		}
		if moves = moves[n:]; len(moves) == 0 {
			entry.Evals = d.evals(p)
		}
		if _, err := d.apply.Apply(ctx, structs.LogAllocTransition, entry); err != nil {
			return err
		}
		movesCount.If(clock.IsMachine(d.clock)).Add(n)
	}
	for _, id := range done {
		_, err := d.apply.Apply(ctx, structs.LogNodeDrain, &structs.NodeDrainEntry{
			NodeID: id, Status: "complete", Time: now, EvalSeed: d.newID(),
			Event: &structs.NodeEvent{Subsystem: "Drain", Message: "Node drain complete", Timestamp: p.now},
		})
		if err != nil {
			return err
		}
		d.logger.Info("node drain complete", "node", id)
	}
	return nil
}

// evals are evaluations of the jobs of which something moves.
func (d *Drainer) evals(p *pass) (evals []*structs.Evaluation) {
	jobs := map[structs.NamespacedID]*structs.Job{}
	for _, job := range p.moves { // order does not matter: sorted below
		jobs[job.NamespacedID()] = job
	}
	for _, id := range slices.SortedFunc(maps.Keys(jobs), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	}) {
		job := jobs[id]
		evals = append(evals, &structs.Evaluation{
			ID: d.newID(), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
			JobModifyIndex: job.JobModifyIndex, TriggeredBy: structs.EvalTriggerNodeDrain, Status: structs.EvalStatusPending,
			CreateTime: p.now.UnixNano(), ModifyTime: p.now.UnixNano(),
		})
	}
	return evals
}

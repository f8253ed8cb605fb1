// Package drain empties nodes that an operator wants empty: it has their allocations
// moved, a job's migrate.max_parallel at a time, and ends the drain when none is left.
//
// It runs on the leader and only asks for transitions; the scheduler stops and
// replaces. Services move at once; batch work may finish until the deadline; system
// jobs are stopped last, unless they are to be left. After the deadline, or without
// delay when it is negative, everything is stopped.
package drain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Drainer drains nodes.
type Drainer struct {
	apply  Applier
	newID  func() string
	logger hclog.Logger
}

// New makes a drainer; Run runs it.
func New(apply Applier, newID func() string, logger hclog.Logger) *Drainer {
	return &Drainer{apply: apply, newID: newID, logger: logger}
}

// Run drains until ctx ends. What it does follows from the state alone, so that a new
// leader goes on where the last one was.
func (d *Drainer) Run(ctx context.Context, store *state.Store) {
	for ctx.Err() == nil {
		snap := store.Snapshot()
		draining := map[string]bool{}
		for n := range snap.Nodes(nil, "", false) {
			if n.DrainStrategy != nil {
				draining[n.ID] = true
			}
		}
		d.follow(ctx, store, store.Feed(snap.Index()), draining)
	}
}

// follow acts on every change that may matter to a drain, and at deadlines. It
// returns when it has fallen behind the feed or ctx ends.
func (d *Drainer) follow(ctx context.Context, store *state.Store, feed *state.Feed, draining map[string]bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan state.Changes)
	go func() { // ends with ctx, or with the feed
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
	}()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return
			}
			if note(c, draining) {
				due.Reset(0)
			}
		case <-due.C:
			if next := d.pass(ctx, store, draining); next > 0 {
				due.Reset(next)
			}
		case <-ctx.Done():
			return
		}
	}
}

// note keeps the set of draining nodes and tells whether a pass is called for.
func note(c state.Changes, draining map[string]bool) bool {
	for _, ch := range c.Items {
		if ch.Kind != state.KindNode {
			continue
		}
		if n, _ := ch.New.(*structs.Node); n != nil && n.DrainStrategy != nil {
			draining[ch.Key] = true
		} else {
			delete(draining, ch.Key)
		}
	}
	return len(draining) > 0
}

// pass looks at every draining node and gives when to look again (0: when something
// changes).
func (d *Drainer) pass(ctx context.Context, store *state.Store, draining map[string]bool) time.Duration {
	snap := store.Snapshot()
	now := time.Now()
	p := &pass{snap: snap, moves: map[string]*structs.DesiredTransition{}, jobs: map[structs.NamespacedID]*structs.Job{}}
	var next time.Duration
	var done []string
	for _, id := range slices.Sorted(maps.Keys(draining)) {
		node := snap.Node(nil, id)
		if node == nil || node.DrainStrategy == nil {
			continue
		}
		if p.node(node, now) {
			done = append(done, id)
			continue
		}
		if at := node.DrainStrategy.ForceDeadline; !at.IsZero() && at.After(now) && (next == 0 || at.Sub(now) < next) {
			next = at.Sub(now)
		}
	}
	if err := d.commit(ctx, p, done, now); err != nil && ctx.Err() == nil {
		d.logger.Error("drain nodes; trying again", "error", err)
		return time.Second
	}
	return next
}

func (d *Drainer) commit(ctx context.Context, p *pass, done []string, now time.Time) error {
	if len(p.moves) > 0 {
		entry := &structs.AllocTransitionEntry{Transitions: p.moves, Time: now.UnixNano()}
		for _, id := range slices.SortedFunc(maps.Keys(p.jobs), func(a, b structs.NamespacedID) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
		}) {
			job := p.jobs[id]
			entry.Evals = append(entry.Evals, &structs.Evaluation{
				ID: d.newID(), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type,
				JobModifyIndex: job.JobModifyIndex, TriggeredBy: structs.EvalTriggerNodeDrain, Status: structs.EvalStatusPending,
				CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
			})
		}
		if _, err := d.apply.Apply(ctx, structs.LogAllocTransition, entry); err != nil {
			return err
		}
	}
	for _, id := range done {
		_, err := d.apply.Apply(ctx, structs.LogNodeDrain, &structs.NodeDrainEntry{
			NodeID: id, Status: "complete", Time: now.UnixNano(), EvalSeed: d.newID(),
			Event: &structs.NodeEvent{Subsystem: "Drain", Message: "Node drain complete", Timestamp: now},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pass gathers what one look at the draining nodes calls for.
type pass struct {
	snap  *state.Snapshot
	moves map[string]*structs.DesiredTransition
	jobs  map[structs.NamespacedID]*structs.Job
	// slots: how many more of a group may move now.
	slots map[string]int
}

// node marks what is to move from a node; true: nothing is left on it.
func (p *pass) node(node *structs.Node, now time.Time) (done bool) {
	s := node.DrainStrategy
	force := s.Deadline < 0 || (!s.ForceDeadline.IsZero() && !now.Before(s.ForceDeadline))
	var system []*structs.Allocation
	others := 0
	for _, a := range p.snap.AllocsByNode(nil, node.ID) {
		if a.ClientTerminal() || a.Job == nil {
			continue
		}
		switch a.Job.Type {
		case structs.JobTypeSystem, structs.JobTypeSysBatch:
			if !s.IgnoreSystemJobs {
				system = append(system, a)
			}
		case structs.JobTypeBatch:
			others++
			if force {
				p.move(a)
			}
		default:
			others++
			if force || p.slot(a) {
				p.move(a)
			}
		}
	}
	if others > 0 && !force {
		return false
	}
	for _, a := range system {
		p.move(a)
	}
	return others == 0 && len(system) == 0
}

// move asks for an allocation to be moved, once.
func (p *pass) move(a *structs.Allocation) {
	if a.ServerTerminal() || a.DesiredTransition.ShouldMigrate() {
		return
	}
	yes := true
	p.moves[a.ID] = &structs.DesiredTransition{Migrate: &yes}
	job := p.snap.Job(nil, a.Namespace, a.JobID)
	if job == nil {
		job = a.Job
	}
	p.jobs[job.NamespacedID()] = job
}

// slot takes one of the places that a's group has for moving at once.
func (p *pass) slot(a *structs.Allocation) bool {
	if a.ServerTerminal() || a.DesiredTransition.ShouldMigrate() {
		return false
	}
	key := a.Namespace + "\x00" + a.JobID + "\x00" + a.TaskGroup
	if p.slots == nil {
		p.slots = map[string]int{}
	}
	if _, known := p.slots[key]; !known {
		p.slots[key] = p.freeSlots(a)
	}
	if p.slots[key] <= 0 {
		return false
	}
	p.slots[key]--
	return true
}

// freeSlots is migrate.max_parallel less what is under way: instances asked to move
// that have not ended, and instances that do not run yet.
func (p *pass) freeSlots(a *structs.Allocation) int {
	limit := 1
	group := a.Job.LookupTaskGroup(a.TaskGroup)
	if group != nil && group.Migrate != nil && group.Migrate.MaxParallel != nil {
		limit = *group.Migrate.MaxParallel
	}
	for _, other := range p.snap.AllocsByJob(nil, a.Namespace, a.JobID, false) {
		if other.TaskGroup != a.TaskGroup || other.ClientTerminal() {
			continue
		}
		moving := other.DesiredTransition.ShouldMigrate() && !other.ServerTerminal()
		starting := !other.ServerTerminal() && other.ClientStatus == structs.AllocClientPending
		if moving || starting {
			limit--
		}
	}
	return limit
}

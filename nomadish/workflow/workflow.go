// Package workflow drives the runs of workflows (docs/design/semantics.md, part 5): it commits the log entry that starts a stage when the one before is
// complete, registers a job that failed once more, and ends the run.
//
// It runs on the leader, and keeps nothing: each entry follows from the state alone, names the state that it follows from, and changes nothing
// if that is another one by then. A leader that is lost between two entries leaves a state from which the next one goes on, and of
// two leaders that decide at once the entry of one is refused. So no job is started twice.
package workflow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// retryAfter is how long the driver waits after an entry could not be committed.
const retryAfter = time.Second

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options are how a driver works.
type Options struct {
	NewID  func() string
	Clock  clock.Clock // (the machine's)
	Logger hclog.Logger
	// Readable returns an error if a server would not know an entry of a type; nil: all know all.
	Readable func(structs.LogType) error
	// Anew is in how long the runs that wait are looked at anew though nothing has changed: what is given to projects changes with the week (1 min).
	Anew time.Duration
}

// Driver moves runs on.
type Driver struct {
	opts    Options
	store   *state.Store
	apply   Applier
	planner Planner
}

// New returns a new driver. Without a planner nothing is reserved, and no run starts that needs a reservation.
func New(opts Options, store *state.Store, apply Applier, planner Planner) *Driver {
	opts.Clock = clock.Or(opts.Clock)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.Anew <= 0 {
		opts.Anew = reserveAnyway
	}
	return &Driver{opts: opts, store: store, apply: apply, planner: planner}
}

// Run moves runs on until ctx ends.
func (d *Driver) Run(ctx context.Context) {
	for ctx.Err() == nil {
		snap := d.store.Snapshot()
		d.follow(ctx, d.store.Feed(snap.Index()), d.look(ctx, alive(snap)))
	}
}

// follow moves on what changes concern, and tries again what failed, until it falls behind the feed or ctx ends.
func (d *Driver) follow(ctx context.Context, feed *state.Feed, failed map[structs.NamespacedID]bool) {
	v := newReserving(d)
	behind := false
	catchUp := func() bool { // moves on what has changed during a round
		behind = feed.Each(func(changes *state.Changes) {
			v.note(changes)
			failed = merged(failed, d.look(ctx, changed(changes)))
		}) != nil
		return !behind
	}
	for {
		if v.ready() {
			if v.reserve(ctx, catchUp); behind {
				return
			}
		}
		changes, err := d.wait(ctx, feed, v.pause(failed))
		switch {
		case err == nil:
			v.note(&changes)
			at := changed(&changes)
			for id := range failed { // order does not matter: a set made of a set
				at = with(at, id)
			}
			failed = d.look(ctx, at)
		case ctx.Err() != nil || !errors.Is(err, context.Canceled):
			return
		default:
			failed = d.look(ctx, failed)
		}
	}
}

// mayReserve reports whether more may be reserved after changes, or something reserved may be lost.
func mayReserve(c *state.Changes) bool {
	return slices.ContainsFunc(c.Items, func(c state.Change) bool {
		switch c.Kind {
		case state.KindWorkflow, state.KindNode, state.KindConfig, state.KindProject, state.KindVirtualCluster, state.KindLicense, state.KindNodePool,
			state.KindExchange:
			return true
		case state.KindReservation:
			return c.Old != nil // what was kept for a request that waits may be free
		case state.KindAlloc:
			return leaves(&c)
		case state.KindJob, state.KindEval, state.KindRequest:
		}
		return false
	})
}

// leaves reports whether something is free as an allocation is to run no more, or is suspended.
func leaves(c *state.Change) bool {
	was, _ := c.Old.(*state.AllocRow)
	now, _ := c.New.(*state.AllocRow)
	return was != nil && !was.Terminal() && (now == nil || now.Terminal() || now.DesiredStatus() != was.DesiredStatus())
}

// begins reports whether a run has begun: its reservation is looked at at once, so that jobs that come after it do not take what it could reserve.
func begins(c *state.Changes) bool {
	return slices.ContainsFunc(c.Items, func(c state.Change) bool {
		if c.Kind != state.KindWorkflow {
			return false
		}
		was, _ := c.Old.(*structs.WorkflowRun)
		now, _ := c.New.(*structs.WorkflowRun)
		return now != nil && now.State == structs.WorkflowPending && (was == nil || was.Run != now.Run)
	})
}

// wait returns the next changes, or, if something is to be tried again, an error after a while; 0: nothing is.
func (d *Driver) wait(ctx context.Context, feed *state.Feed, after time.Duration) (state.Changes, error) {
	if after > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		timer := d.opts.Clock.AfterFunc(after, cancel)
		defer timer.Stop()
	}
	return feed.Next(ctx)
}

// alive returns the workflows of which a run has not ended.
func alive(snap *state.Snapshot) map[structs.NamespacedID]bool {
	out := map[structs.NamespacedID]bool{}
	for r := range snap.Workflows(nil).Alive() {
		out[r.NamespacedID()] = true
	}
	return out
}

// changed returns the workflows that changes may move on: their own, and those of their jobs.
func changed(c *state.Changes) map[structs.NamespacedID]bool {
	var out map[structs.NamespacedID]bool
	for i := range c.Items {
		switch row := thing(&c.Items[i]).(type) {
		case *structs.WorkflowRun:
			out = with(out, row.NamespacedID())
		case *structs.Job:
			if row.Workflow != nil {
				out = with(out, structs.NamespacedID{Namespace: row.Namespace, ID: row.Workflow.ID})
			}
		}
	}
	return out
}

// with returns a set with one more element.
func with(set map[structs.NamespacedID]bool, id structs.NamespacedID) map[structs.NamespacedID]bool {
	if set == nil {
		set = map[structs.NamespacedID]bool{}
	}
	set[id] = true
	return set
}

// look moves workflows on until nothing is left to do for them now. It returns those for which no entry could be committed.
func (d *Driver) look(ctx context.Context, at map[structs.NamespacedID]bool) (failed map[structs.NamespacedID]bool) {
	for _, id := range slices.SortedFunc(maps.Keys(at), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	}) {
		for again := true; again && ctx.Err() == nil; {
			var err error
			again, err = d.Step(ctx, id)
			switch {
			case err == nil || ctx.Err() != nil:
			case errors.Is(err, errStopping): // the next change, such as their end, or a while later
				failed = with(failed, id)
			default:
				d.opts.Logger.Error("move a workflow on; it will be tried again", "namespace", id.Namespace, "workflow", id.ID, "error", err)
				failed = with(failed, id)
			}
		}
	}
	return failed
}

// Step moves a workflow on by one entry, for callers that drive it themselves instead of calling Run. It returns whether to look again at once.
func (d *Driver) Step(ctx context.Context, id structs.NamespacedID) (again bool, err error) {
	snap := d.store.Snapshot()
	r := snap.Workflows(nil).Get(id.Namespace, id.ID)
	if r == nil {
		return false, nil
	}
	entry, waits := stages.Next(r, jobsOf(snap, r))
	switch {
	case entry == nil && waits:
		return false, errStopping
	case entry == nil:
		return false, nil
	}
	entry.EvalSeed, entry.Time = d.opts.NewID(), d.opts.Clock.Now().UnixNano()
	if placed, err := d.start(ctx, snap, r, entry); placed || err != nil {
		return placed, err
	}
	if err := d.takeBack(ctx, snap, r, entry); err != nil {
		return false, err
	}
	_, err = d.apply.Apply(ctx, structs.LogWorkflowAdvance, entry)
	switch {
	case err == nil:
		d.opts.Logger.Debug("workflow moved on", "namespace", r.Namespace, "workflow", r.ID, "run", r.Run, "state", entry.State, "stage", entry.Stage)
	case structs.CodeOf(err) == structs.CodeConflict, structs.CodeOf(err) == structs.CodeNotFound: // it was paused, cancelled or deleted meanwhile
	default:
		return false, err
	}
	return true, nil
}

// thing returns what a change is about as it is now, or was last.
func thing(c *state.Change) any {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Package calendar moves the time of what is owned on: it commits a log entry when a window of a virtual cluster or a week of a project's
// calendar begins or ends, or an exchange is due.
//
// It runs on the leader. It must never decide what changes then: that follows from the state, when the entry is applied, so that a
// leader that is lost at that moment leaves nothing half done, and a new one goes on from the state alone.
package calendar

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// retryAfter is how long it waits after an entry could not be committed.
const retryAfter = time.Second

// longest is how long it waits at most: a machine's clock may be set meanwhile.
const longest = time.Minute

// Applier commits a log entry through Raft.
type Applier interface {
	Apply(ctx context.Context, t structs.LogType, payload any) (index uint64, err error)
}

// Options are how a calendar works.
type Options struct {
	NewID  func() string
	Clock  clock.Clock // (the machine's)
	Logger hclog.Logger
}

// Calendar moves time on.
type Calendar struct {
	opts  Options
	store *state.Store
	apply Applier
}

// New returns a new calendar.
func New(opts Options, store *state.Store, apply Applier) *Calendar {
	opts.Clock = clock.Or(opts.Clock)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Calendar{opts: opts, store: store, apply: apply}
}

// Run moves time on at every edge until ctx ends.
func (c *Calendar) Run(ctx context.Context) {
	for ctx.Err() == nil {
		ws := state.NewWatchSet()
		if wait := c.Step(ctx, ws); wait > 0 {
			c.pause(ctx, ws, wait)
		}
	}
}

// Step moves time on if an edge has come, for callers that drive the calendar themselves instead of calling Run. It returns
// how long to wait before the next step if nothing that ws then watches changes; ws may be nil.
func (c *Calendar) Step(ctx context.Context, ws *state.WatchSet) (wait time.Duration) {
	edge := c.store.Snapshot().ClaimsEdge(ws)
	now := c.opts.Clock.Now()
	wait = longest
	if edge > 0 {
		wait = min(wait, time.Unix(0, edge).Sub(now))
		if wait <= 0 {
			wait = c.advance(ctx, now)
		}
	}
	return wait
}

// advance commits the time. It returns how long to wait before the next look.
func (c *Calendar) advance(ctx context.Context, now time.Time) time.Duration {
	_, err := c.apply.Apply(ctx, structs.LogClaimsTime, &structs.ClaimsTimeEntry{Now: now.UnixNano(), EvalSeed: c.opts.NewID()})
	if err != nil {
		if ctx.Err() == nil {
			c.opts.Logger.Error("move the time of virtual clusters on; it will be tried again", "error", err)
		}
		return retryAfter
	}
	return 0
}

// pause waits until what is watched changes, or for so long.
func (c *Calendar) pause(ctx context.Context, ws *state.WatchSet, wait time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := c.opts.Clock.AfterFunc(wait, cancel)
	defer timer.Stop()
	ws.Wait(ctx)
}

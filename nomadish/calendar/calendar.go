// Package calendar moves the time of what is owned on: it commits a log entry when a window of a virtual cluster or a week of a project's
// calendar begins or ends, an exchange is due, or, where there are projects, a week of the cluster's calendar begins: the entry states which week
// that is, as servers that apply entries must not compute it.
//
// It runs on the leader. It must never decide what changes then: that follows from the state, when the entry is applied, so that a
// leader that is lost at that moment leaves nothing half done, and a new one goes on from the state alone.
package calendar

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// retryAfter is how long it waits after an entry could not be committed.
const retryAfter = time.Second

// longest is the default of Options.Longest.
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
	// Longest is how long it waits at most: a machine's clock may be set meanwhile (1 min).
	Longest time.Duration
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
	if opts.Longest <= 0 {
		opts.Longest = longest
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
	snap := c.store.Snapshot()
	edge := snap.ClaimsEdge(ws)
	now := c.opts.Clock.Now()
	span := c.week(ws, snap, now)
	if next := weekEdge(snap, span); next > 0 && (edge == 0 || next < edge) {
		edge = next
	}
	wait = c.opts.Longest
	if edge > 0 {
		wait = min(wait, time.Unix(0, edge).Sub(now))
		if wait <= 0 {
			wait = c.advance(ctx, now, span)
		}
	}
	return wait
}

// week returns the week that it is; nil if there are no projects, or if this machine does not know the time zone.
func (c *Calendar) week(ws *state.WatchSet, snap *state.Snapshot, now time.Time) *structs.WeekSpan {
	for range snap.Projects(ws).List("", false) {
		config := snap.SchedulerConfig(ws)
		set := config.WeekCalendar()
		weeks, err := week.New(set.TimeZone, set.WeekStarts)
		if err != nil {
			c.opts.Logger.Error("which week it is cannot be stated: the use of slots is not counted", "error", err)
			return nil
		}
		id := weeks.At(now)
		return &structs.WeekSpan{Week: id.String(), From: weeks.Begin(id).UnixNano(), To: weeks.End(id).UnixNano()}
	}
	return nil
}

// weekEdge returns when which week it is has to be stated, in Unix nanoseconds, if it is this one; 0: never.
func weekEdge(snap *state.Snapshot, is *structs.WeekSpan) int64 {
	if is == nil {
		return 0
	}
	if stated, after := snap.ProjectUsage(nil).Week(); stated == nil || *stated != *is {
		return after + 1 // an entry of an earlier time changes nothing
	}
	return is.To
}

// advance commits the time, and which week it is. It returns how long to wait before the next look.
func (c *Calendar) advance(ctx context.Context, now time.Time, span *structs.WeekSpan) time.Duration {
	_, err := c.apply.Apply(ctx, structs.LogClaimsTime, &structs.ClaimsTimeEntry{Now: now.UnixNano(), EvalSeed: c.opts.NewID(), Week: span})
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

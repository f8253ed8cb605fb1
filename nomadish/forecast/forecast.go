package forecast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// maxEntries is how many entries a forecast applies unless its options state otherwise.
const maxEntries = 200_000

// maxReserving is how many groups may wait for that they get reservations, unless its options state otherwise.
const maxReserving = 1000

// RanOutOfTime begins why a start is not known where there was no time to find out. The time at which the forecast ended follows, and after a semicolon what
// else is known of it.
const RanOutOfTime = "the forecast ran out of time at "

// Options are how a forecast is made.
type Options struct {
	Now time.Time // when it begins; needed
	// Horizon is how far it looks (structs.DefaultForecastHorizon).
	Horizon time.Duration
	// Entries bounds the log entries that each of its two runs applies to its fork, and so its work (200,000).
	Entries int
	// Reserving bounds the groups that wait and get reservations (1,000). If more wait, those that there are stay, and none gets a new one: each would
	// be decided every few minutes, and the forecast would take as long as all of these decisions.
	Reserving int

	// Stays, not nil, has where instances are when the forecast begins; the run by time limits notes there where they will be.
	Stays Stays
	// Groups bounds the groups that may wait: beyond that no forecast is made, and the error has CodeLimited. 0: it does not.
	Groups int
	// Only requests the forecast of one job alone, which ends when that has started; nil: of all that waits.
	Only *structs.NamespacedID
	// Workflow requests the forecast of one workflow alone, which waits for its reservation: it ends when its run has; nil: of all that waits.
	Workflow *structs.NamespacedID
	Queue    queue.Options // of the queue that the forecast is of: its times and limits
	// Pace, not nil, is called between the steps of the work. It may wait, so that others have the processor; both runs are then made one after the other.
	Pace func(ctx context.Context)

	waiting  int              // groups that wait in all
	typicals *worker.Typicals // of the jobs that there are
}

// Run makes a forecast of the state that the store has now: when what waits starts. ctx bounds its time: what is not known when that ends is
// unknown. It returns an error if the horizon is beyond the limit, or if the parts of the leader fail on the fork.
func Run(ctx context.Context, store *state.Store, o Options) (*structs.Forecast, error) {
	if o.Horizon == 0 {
		o.Horizon = structs.DefaultForecastHorizon
	}
	if o.Horizon < 0 || o.Horizon > structs.MaxForecastHorizon {
		return nil, structs.Errorf(structs.CodeBadRequest, "horizon %s: must be more than 0 and at most %s", o.Horizon, structs.MaxForecastHorizon)
	}
	if o.Entries <= 0 {
		o.Entries = maxEntries
	}
	if o.Reserving <= 0 {
		o.Reserving = maxReserving
	}
	base := fsm.NewFork(store, 1).Store // both runs begin with the same state, whatever is committed meanwhile
	snap := base.Snapshot()
	out := &structs.Forecast{Index: snap.Index(), Time: o.Now.UnixNano(), Until: o.Now.Add(o.Horizon).UnixNano()}
	groups, runs := waiting(snap, out.Time), runsWaiting(snap)
	if o.Groups > 0 && len(groups) > o.Groups {
		return nil, structs.Errorf(structs.CodeLimited, "%d groups of jobs wait: a forecast is made of at most %d", len(groups), o.Groups)
	}
	out.NoReservations = len(groups) > o.Reserving
	o.waiting = len(groups)
	switch {
	case o.Only != nil:
		groups, runs = slices.DeleteFunc(groups, func(g group) bool { return g.job != *o.Only }), nil
		var err error
		if groups, err = lacking(ctx, base, o, groups); err != nil {
			return nil, err
		}
	case o.Workflow != nil:
		groups, runs = nil, slices.DeleteFunc(runs, func(r *structs.WorkflowRun) bool { return r.NamespacedID() != *o.Workflow })
	}
	if len(groups)+len(runs) == 0 {
		return out, nil
	}
	o.Queue.Keys = queue.RequestKeysOf(snap, o.Pace == nil) // both runs begin with the same
	o.typicals = worker.LearnFrom(snap)
	past := historyOf(snap)
	at, then, err := both(ctx, base, o, past, awaits{groups, runs})
	if err != nil {
		return nil, err
	}
	at = latestOf(&at, &then)
	for i, g := range groups {
		out.Requests = append(out.Requests, &structs.RequestForecast{
			Namespace: g.job.Namespace, JobID: g.job.ID, Group: g.name, Entitled: g.entitled, Missing: g.missing, Latest: at.groups[i], Expected: then.groups[i],
		})
	}
	for i, r := range runs {
		out.Workflows = append(out.Workflows, &structs.WorkflowForecast{Namespace: r.Namespace, ID: r.ID, Run: r.Run, Latest: at.runs[i], Expected: then.runs[i]})
	}
	return out, nil
}

// reserveFrom returns from when on groups that wait get new reservations: after the horizon if too many wait.
func (o *Options) reserveFrom() time.Time {
	if o.waiting > o.Reserving {
		return o.Now.Add(2 * structs.MaxForecastHorizon)
	}
	return o.Now.Add(1)
}

// awaits is what a forecast is of.
type awaits struct {
	groups []group
	runs   []*structs.WorkflowRun // that wait for their reservation
}

// starts is when all of it starts, in the same order.
type starts struct {
	groups []structs.StartForecast
	runs   []structs.WorkflowStartForecast
	until  time.Time // how far the run went
}

// both runs the state on by time limits and, where there are finished runs, by these: beside each other, unless they are paced.
func both(ctx context.Context, base *state.Store, o Options, past *history, of awaits) (at, then starts, err error) {
	if past.empty() {
		at, err = future(ctx, base, o, "latest", latest, of)
		return at, at, err
	}
	if o.Pace != nil {
		if at, err = future(ctx, base, o, "latest", latest, of); err == nil {
			then, err = future(ctx, base, o, "expected", past.lasting, of)
		}
		return at, then, err
	}
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		then, failed = future(ctx, base, o, "expected", past.lasting, of)
	}()
	at, err = future(ctx, base, o, "latest", latest, of)
	<-done
	return at, then, errors.Join(err, failed)
}

// future runs a fork of the state on until all that waits has started, and returns when each does.
func future(ctx context.Context, base *state.Store, o Options, mode string, lasting func(*instance, time.Duration) time.Duration, of awaits) (at starts, err error) {
	defer func() {
		if r := recover(); r != nil { // the future must not take the present with it
			err = structs.Errorf(structs.CodeInternal, "the forecast panicked: %v", r)
		}
	}()
	f := newFork(base, o.Entries)
	f.Unread()
	l := newLeader(f.Store, f.apply, o.Now, ids(fmt.Sprintf("forecast/%d/%s", base.LatestIndex(), mode)), worker.PassOptions{
		ReserveFrom: o.reserveFrom(), Explain: never, ExplainEach: never, Unread: true, Typicals: o.typicals, Pace: o.Pace,
	}, o.Queue)
	l.drop = f.Drop
	defer l.stop()
	w := newWatch(l, of.groups)
	w.await(of.runs, o.Workflow != nil)
	var see observer = w
	if o.Stays != nil && mode == "latest" {
		see = recorder{w, l, o.Stays}
	}
	c := newClients(l, lasting, see)
	w.clients, c.moved, c.terse, c.rounds = c, w.moved, true, mode != "latest"
	look := c.follow
	if o.Pace != nil {
		look = func(ctx context.Context) error {
			o.Pace(ctx)
			return c.follow(ctx)
		}
	}
	end, why := o.Now.Add(o.Horizon), ""
	until := end
	for why == "" && w.open > 0 {
		switch err := l.settle(ctx, look); {
		case f.spent():
			until = l.now
			why = fmt.Sprintf("the forecast ends after %d log entries, at %s", o.Entries, l.now.UTC().Format(time.RFC3339))
		case ctx.Err() != nil:
			until = l.now
			why = RanOutOfTime + l.now.UTC().Format(time.RFC3339)
		case err != nil:
			return at, fmt.Errorf("forecast: %w", err)
		case w.open == 0:
		case !l.advance(end):
			why = fmt.Sprintf("not within %s", o.Horizon)
		}
	}
	return starts{w.results(why), w.runResults(why), until}, nil
}

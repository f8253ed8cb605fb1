package whatif

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Options are how a what-if is run.
type Options struct {
	Now time.Time // when it begins; needed
	// Entries bounds the log entries that each future applies to its fork, and so its work and its memory (200,000).
	Entries int
	// Reserving bounds the groups that wait and get reservations (1,000): where more wait at the beginning, none reserves room anew.
	Reserving int
	Rules     Rules
}

// Run runs the state that a store has now on in virtual time, without and with changes. ctx bounds the time that it takes: a future that is not
// through then has an end that is stated. It returns the error that refuses a change when it is applied in earnest, and an error if the request is beyond the limits.
func Run(ctx context.Context, store *state.Store, req *structs.WhatIfRequest, o Options) (*structs.WhatIf, error) {
	horizon := req.Horizon
	if horizon == 0 {
		horizon = structs.DefaultForecastHorizon
	}
	if err := check(req, horizon); err != nil {
		return nil, err
	}
	base := fsm.NewFork(store, 1).Store // both futures begin with the same state, whatever is committed meanwhile
	index, until := base.LatestIndex(), o.Now.Add(horizon)
	out := &structs.WhatIf{Index: index, Time: o.Now.UnixNano(), Latest: req.Latest, Seed: req.Seed}
	open := func() *run {
		return newRun(base, forecast.FutureOptions{
			Now: o.Now, Entries: o.Entries, Reserving: o.Reserving, Expected: !req.Latest, IDs: fmt.Sprintf("what-if/%d/%d", index, req.Seed),
		})
	}
	before, after := open(), open()
	defer before.Close()
	defer after.Close()
	out.NoReservations = before.NoReservations() // both begin with the same queue
	out.Changes = after.schedule(ctx, req.Changes, o.Rules)
	if after.refused != nil {
		return nil, after.refused
	}
	// Each is run until nothing waits in it any more and no drain is under way, and then both as far as the one that took longer.
	if err := both(before, after, func(r *run) error { return r.quiet(ctx, until) }); err != nil {
		return nil, err
	}
	end := before.Now()
	if after.Now().After(end) {
		end = after.Now()
	}
	if err := both(before, after, func(r *run) error { return r.until(ctx, end) }); err != nil {
		return nil, err
	}
	for _, r := range []*run{before, after} { // one that ended shows nothing of what comes later
		if r.Now().Before(end) {
			end = r.Now()
		}
	}
	out.Until = end.UnixNano()
	compare(out, before, after)
	return out, nil
}

// both does something with two runs, which share nothing that either changes, at once. It returns the error of the first that has one.
func both(a, b *run, do func(r *run) error) error {
	var errs [2]error
	var wg sync.WaitGroup
	for i, r := range []*run{a, b} {
		wg.Go(func() { errs[i] = do(r) })
	}
	wg.Wait()
	return cmp.Or(errs[0], errs[1])
}

// check returns an error if a request is beyond the limits.
func check(req *structs.WhatIfRequest, horizon time.Duration) error {
	if horizon < 0 || horizon > structs.MaxForecastHorizon {
		return structs.Errorf(structs.CodeBadRequest, "horizon %s: must be more than 0 and at most %s", horizon, structs.MaxForecastHorizon)
	}
	switch n := len(req.Changes); {
	case n == 0:
		return structs.Errorf(structs.CodeBadRequest, "a what-if needs at least one change").WithHint("`nomadish queue` and /v1/forecast state what becomes of the queue without changes")
	case n > structs.MaxWhatIfChanges:
		return structs.Errorf(structs.CodeBadRequest, "%d changes: at most %d are allowed", n, structs.MaxWhatIfChanges)
	}
	nodes := 0
	for i, ch := range req.Changes {
		if ch == nil {
			return structs.Errorf(structs.CodeBadRequest, "change %d is empty", i+1)
		}
		if ch.After < 0 || ch.After > horizon {
			return structs.Errorf(structs.CodeBadRequest, "change %d: it is made after %s: must be within the horizon of %s", i+1, ch.After, horizon)
		}
		if n := stated(ch); n != 1 {
			return structs.Errorf(structs.CodeBadRequest, "change %d: it states %d things that are to be changed, and not one", i+1, n).
				WithHint("state one of Job, VirtualCluster, Project, Week, Flow, Workflow, AddNodes, Drain, Lose and Scheduler; several changes are a list")
		}
		if ch.AddNodes != nil {
			nodes += max(0, ch.AddNodes.Count)
		}
	}
	if nodes > structs.MaxWhatIfNodes {
		return structs.Errorf(structs.CodeBadRequest, "%d nodes are added: at most %d are allowed", nodes, structs.MaxWhatIfNodes)
	}
	return nil
}

// stated returns how many things a change states that are to be changed.
func stated(ch *structs.WhatIfChange) (n int) {
	for _, is := range []bool{
		ch.Job != nil, ch.VirtualCluster != nil, ch.Project != nil, ch.Week != nil, ch.Flow != nil, ch.Workflow != nil, ch.AddNodes != nil, ch.Drain != nil,
		ch.Lose != "", ch.Scheduler != nil,
	} {
		if is {
			n++
		}
	}
	return n
}

// run is a future with what was seen of it.
type run struct {
	*forecast.Future
	*watch
	pending int      // changes that are still to be made
	drained []string // nodes that changes drain, by their IDs
	refused error
}

func newRun(base *state.Store, o forecast.FutureOptions) *run {
	f := forecast.NewFuture(base, o)
	return &run{Future: f, watch: newWatch(f.Store(), o.Now)}
}

// schedule makes the changes that are made at once, and has the others made when they are due.
func (r *run) schedule(ctx context.Context, changes []*structs.WhatIfChange, rules Rules) []structs.WhatIfApplied {
	c := NewChanger(r.Store(), r.Future, r.Now, r.NewID, rules)
	applied := make([]structs.WhatIfApplied, len(changes))
	apply := func(i int) {
		if r.refused != nil {
			return
		}
		ch := changes[i]
		warnings, err := c.Make(ctx, ch)
		if err != nil && (ctx.Err() != nil || r.Spent()) { // it was not found out whether it is refused: the future ends here
			applied[i] = structs.WhatIfApplied{Text: ch.Text, Time: r.Now().UnixNano(), NotMade: true}
			return
		}
		if err != nil && ch.After > 0 {
			err = structs.Errorf(structs.CodeOf(err), "at %s: %w", r.Now().UTC().Format(time.RFC3339), err)
		}
		if ch.Drain != nil && err == nil {
			if n, err := c.node(ch.Drain.Node); err == nil {
				r.drained = append(r.drained, n.ID)
			}
		}
		applied[i] = structs.WhatIfApplied{Text: textOf(ch), Time: r.Now().UnixNano(), Warnings: warnings}
		r.refused = err
	}
	for i, ch := range changes {
		if ch.After == 0 {
			apply(i)
			continue
		}
		applied[i] = structs.WhatIfApplied{Text: textOf(ch), Time: r.Now().Add(ch.After).UnixNano(), NotMade: true}
		r.pending++
		r.At(r.Now().Add(ch.After), func() {
			r.pending--
			apply(i)
			r.submitted(r.Now(), false)
		})
	}
	r.submitted(r.Now(), false)
	return applied
}

// textOf states a change, as a user does where the caller does not.
func textOf(ch *structs.WhatIfChange) string {
	switch {
	case ch.Text != "":
		return ch.Text
	case ch.Job != nil:
		return "job:" + ch.Job.ID
	case ch.VirtualCluster != nil:
		return "vc:" + ch.VirtualCluster.Name
	case ch.Project != nil:
		return "project:" + ch.Project.Name
	case ch.Week != nil:
		return "project:" + ch.Week.Project + " (week " + ch.Week.Week + ")"
	case ch.Flow != nil:
		return "project: (flow " + ch.Flow.Name + ")"
	case ch.Workflow != nil:
		return "workflow:" + ch.Workflow.ID
	case ch.AddNodes != nil && ch.AddNodes.Node != nil:
		return fmt.Sprintf("add-nodes:%d (%s)", ch.AddNodes.Count, ch.AddNodes.Node.Name)
	case ch.AddNodes != nil:
		return fmt.Sprintf("add-nodes:%d:like=%s", ch.AddNodes.Count, ch.AddNodes.Like)
	case ch.Drain != nil:
		return "drain:" + ch.Drain.Node
	case ch.Lose != "":
		return "lose:" + ch.Lose
	}
	return "config"
}

// quiet runs the future until nothing waits any more and all drains among the changes are through, or a time.
func (r *run) quiet(ctx context.Context, until time.Time) error {
	return r.follow(ctx, until, func() bool { return r.refused != nil || r.pending == 0 && r.idle() && !r.draining() })
}

// draining reports whether a node that a change drains may still have work that has to leave it.
func (r *run) draining() bool {
	snap := r.Store().Snapshot()
	r.drained = slices.DeleteFunc(r.drained, func(id string) bool {
		n := snap.Node(nil, id)
		return n == nil || n.DrainStrategy == nil
	})
	return len(r.drained) > 0
}

// until runs the future until a time.
func (r *run) until(ctx context.Context, until time.Time) error {
	if !until.After(r.Now()) {
		return nil
	}
	return r.follow(ctx, until, func() bool { return false })
}

func (r *run) follow(ctx context.Context, until time.Time, done func() bool) error {
	err := r.Run(ctx, until, func() error { return r.look(r.Now()) }, func() bool {
		r.settled(r.Now())
		return done()
	})
	if err == nil {
		err = r.refused
	}
	return err
}

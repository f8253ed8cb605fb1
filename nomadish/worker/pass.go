package worker

import (
	"context"
	"errors"
	"maps"
	"math"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

var (
	triedCount = telemetry.NewCount("nomad.queue.tried")
	passTime   = telemetry.NewTimer("nomad.queue.pass")
)

// Submitter has plans judged and committed, together where it can be.
type Submitter interface {
	SubmitAll(ctx context.Context, plans []*structs.Plan) ([]*structs.PlanResult, []error)
}

// PassOptions tunes a Pass. Zero values are replaced by the defaults named.
type PassOptions struct {
	Plans  int           // plans of one pass (512)
	Length time.Duration // a pass with plans goes on for no longer (50 ms)
	// Explain is how old an evaluation's explanation of why it waits may grow before it is counted again once it was tried (5 s). ExplainEach is the least
	// time between two such counts, the first ones among them, which are costly, of whatever evaluations (50 ms). They change nothing but what evaluations state.
	Explain     time.Duration
	ExplainEach time.Duration
	// ReserveFrom is until when no room is reserved for who has none already (not set: no time). A forecast begins with requests that the queue has
	// tried: that it tries them once more must not give them reservations earlier than they would get them.
	ReserveFrom time.Time
	// Unread: nobody reads in the state why an evaluation waits and until when, as it is a fork that is gone soon: a request of which nothing but that
	// changes is not written.
	Unread bool
	// Pace, not nil, is called before each request and may wait: the work of a fork is nobody's hurry.
	Pace     func(ctx context.Context)
	NewID    func() string // mints IDs; needed
	Typicals *Typicals     // of this server's workers; nil: its own
	Clock    clock.Clock   // (the machine's)
	Logger   hclog.Logger
}

// Pass decides what waits for room, on the leader: woken when room came free or a request's
// time has come, it walks the requests that must be tried in the order of their ranks on one
// World that moves on with what it decides, and submits what came of it together
// (semantics part 7). What does not fit is not written.
type Pass struct {
	opts   PassOptions
	queue  queue.Requests
	raises queue.Raises
	plans  Submitter
	store  *state.Store
	// learned is for Run's goroutine.
	learned  learner
	prepared *scheduler.Prepared
	// alike is what is prepared for requests that are like others, with Unread; nil: it is with the rest.
	alike *scheduler.Prepared
	// explained is when it was last counted why a request waits, explains the last time for which that is expected, and begins the last one for requests
	// of which it never was.
	explained, explains, begins time.Time
	// counted is why a request waits as that was counted last for its own sake.
	counted explanation
	// dues are when evaluations are to be looked at that were not written, with Unread.
	dues map[string]time.Time
	// nothing is of which state (its index) evaluations were tried last that could not reserve room, with Unread: on that state they cannot later, either.
	nothing map[string]uint64
}

// NewPass makes a pass; Run runs it.
func NewPass(opts PassOptions, requests queue.Requests, raises queue.Raises, plans Submitter, store *state.Store) *Pass {
	if opts.Plans <= 0 {
		opts.Plans = 512
	}
	if opts.Length <= 0 {
		opts.Length = 50 * time.Millisecond
	}
	if opts.Explain <= 0 {
		opts.Explain = 5 * time.Second
	}
	if opts.ExplainEach <= 0 {
		opts.ExplainEach = 50 * time.Millisecond
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.Typicals == nil {
		opts.Typicals = NewTypicals()
	}
	opts.Clock = clock.Or(opts.Clock)
	return &Pass{
		opts: opts, queue: requests, raises: raises, plans: plans, store: store, learned: learner{from: opts.Typicals, clock: opts.Clock},
		prepared: scheduler.NewPrepared(), dues: map[string]time.Time{}, nothing: map[string]uint64{},
	}
}

// Run makes one pass after the other until ctx ends.
func (p *Pass) Run(ctx context.Context) {
	for p.queue.Await(ctx) == nil {
		for ctx.Err() == nil && p.once(ctx) {
		}
	}
}

// sent is a request whose plan is submitted.
type sent struct {
	lease *queue.Lease
	plan  *structs.Plan
}

// once makes one pass. It reports whether another is needed at once.
func (p *Pass) once(ctx context.Context) (again bool) {
	out, again := p.walk(ctx)
	p.submit(ctx, out)
	return again || len(out) > 0
}

// walk decides the requests that must be tried. What it returns is to be submitted; again reports
// whether another pass is needed at once, whatever becomes of that.
func (p *Pass) walk(ctx context.Context) (out []sent, again bool) {
	start := p.opts.Clock.Now()
	snap := p.store.Snapshot()
	pass := scheduler.NewPassInPlace(snap.World())
	if p.opts.Unread {
		p.prepared = scheduler.NewPrepared() // hardly anything is decided twice, and much memory is what was known of all
		if p.alike == nil {
			p.alike = scheduler.NewPrepared()
		}
	}
	tried, hopeless := 0, p.hopeless(pass, snap)
	for ctx.Err() == nil {
		if len(out) >= p.opts.Plans || len(out) > 0 && p.opts.Clock.Now().Sub(start) > p.opts.Length {
			again = true
			break
		}
		if p.opts.Pace != nil {
			p.opts.Pace(ctx)
		}
		var lease *queue.Lease
		if lease, again = p.queue.Next(snap.Index(), hopeless); lease == nil {
			if !again {
				var raised []sent
				raised, again = p.raise(pass, snap)
				out = append(out, raised...)
			}
			break
		}
		tried++
		plan := p.try(pass, snap, lease)
		if plan == nil {
			continue
		}
		out = append(out, sent{lease, plan})
		if len(plan.Stop)+len(plan.Unreserve) > 0 {
			again = true // what it frees is for the first that can use it
			break
		}
	}
	if tried > 0 {
		real := clock.IsMachine(p.opts.Clock)
		passTime.If(real).Since(start)
		triedCount.If(real).Add(tried)
	}
	return out, again
}

// hopeless returns which requests need not be tried; nil: all must be. It is known only where nobody reads what trying them would state: a
// request that finds no room writes nothing else, unless it may reserve room. Who owns something may find room where none is free: others leave.
func (p *Pass) hopeless(pass *scheduler.Pass, snap *state.Snapshot) queue.Hopeless {
	if !p.opts.Unread {
		return nil
	}
	config := snap.SchedulerConfig(nil)
	after, ever := config.ReserveAfter()
	left := scheduler.NewRoom() // the pass ends when it has freed anything
	return func(r queue.Untried) (none bool, again time.Time) {
		now, reserves := p.opts.Clock.Now(), time.Unix(0, r.Eval.CreateTime).Add(after)
		may := p.mayReserve(config, r.Eval)
		switch {
		case r.Kind.Entitlement.Any(), r.Due && r.Kind.Project != "":
			return false, again
		case may && r.Due && p.nothing[r.Eval.ID] == snap.Index():
			again = now.Add(config.ReserveAgain()).UTC()
			p.dues[r.Eval.ID] = again
			return true, again
		case may && (!r.Due && !r.Alone || r.Reserved < missing(r.Eval) && (r.Early || left.Reservable(pass.World()))): // unless it has all that it misses, or none is left
			return false, again
		case may && r.Due:
			again = now.Add(config.ReserveAgain()).UTC()
		case r.Due && (!ever || !reserves.Before(p.opts.ReserveFrom) || !now.Before(p.opts.ReserveFrom)):
			return false, again // else it was due as it would have reserved room, if any were reserved
		}
		none = !left.Helped(pass.World(), r.Kind, r.Nodes)
		if none && may && r.Due {
			p.dues[r.Eval.ID] = again
		}
		return none, again
	}
}

// mayReserve reports whether an evaluation may reserve room now.
func (p *Pass) mayReserve(config structs.SchedulerConfiguration, e *structs.Evaluation) bool {
	after, ever := config.ReserveAfter()
	now := p.opts.Clock.Now()
	return ever && !now.Before(p.opts.ReserveFrom) && !now.Before(time.Unix(0, e.CreateTime).Add(after))
}

// missing is how many instances an evaluation waits for.
func missing(e *structs.Evaluation) (n int) {
	for _, queued := range e.QueuedAllocations { // order does not matter: a sum
		n += queued
	}
	return n
}

// try decides one request; nil: nothing comes of it.
func (p *Pass) try(pass *scheduler.Pass, snap *state.Snapshot, lease *queue.Lease) *structs.Plan {
	if lease.Explain {
		return p.explain(pass, snap, lease)
	}
	brief := lease.EntitledOnly || p.brief(lease.Eval)
	plan, err := p.decide(pass, snap, lease, brief)
	if err != nil {
		p.opts.Logger.Error("a request could not be decided; it will be tried again", "eval", lease.Eval.ID, "job", lease.Eval.JobID, "error", err)
		p.queue.Answered(lease, false, true)
		return nil
	}
	left := leftOf(plan)
	if left != nil {
		lease.ExplainAt = p.explainAt(lease, brief)
	}
	if left != nil && p.idle(plan, lease.Eval, left) {
		if p.opts.Unread && !lease.EntitledOnly && p.mayReserve(snap.SchedulerConfig(nil), left) {
			p.nothing[left.ID] = snap.Index()
		}
		p.queue.Tried(lease, snap.Index(), left)
		return nil
	}
	delete(p.dues, lease.Eval.ID) // the plan states it
	p.queue.Planned(lease, snap.Index(), left, pass.World())
	plan.EvalToken = lease.Token
	return plan
}

// decide calls the scheduler, and goes on with what its plan does as done; a panic becomes an error.
func (p *Pass) decide(pass *scheduler.Pass, snap *state.Snapshot, lease *queue.Lease, brief bool) (*structs.Plan, error) {
	return p.guarded(func() (*structs.Plan, error) {
		in := p.input(snap, lease, brief)
		after, ever := in.Config.ReserveAfter()
		if !ever || !in.Now.Before(p.opts.ReserveFrom) {
			return pass.Decide(lease.Eval, in)
		}
		in.Config.ReservationAfter = math.MaxInt64 // those that there are stay
		plan, err := pass.Decide(lease.Eval, in)
		if err == nil {
			p.expectReserve(lease.Eval, leftOf(plan), after)
		}
		return plan, err
	})
}

// expectReserve has a request that could not reserve room yet looked at when it may, or when it was due, unless no room is reserved then, either.
func (p *Pass) expectReserve(was, left *structs.Evaluation, after time.Duration) {
	if left == nil {
		return
	}
	due := time.Unix(0, left.CreateTime).Add(after).UTC()
	if !due.After(p.opts.Clock.Now()) {
		due = was.WaitUntil
	}
	if !due.Before(p.opts.ReserveFrom) && (left.WaitUntil.IsZero() || due.Before(left.WaitUntil)) {
		left.WaitUntil = due
	}
}

// guarded makes a panic of the scheduler an error.
func (p *Pass) guarded(decide func() (*structs.Plan, error)) (plan *structs.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = structs.Errorf(structs.CodeInternal, "the scheduler panicked: %v", r)
			p.prepared, p.alike = scheduler.NewPrepared(), nil // the old ones may have been left half done
		}
	}()
	return decide()
}

// input returns what the scheduler needs to know of a request.
func (p *Pass) input(snap *state.Snapshot, lease *queue.Lease, brief bool) scheduler.Input {
	prepared, alike := p.prepared, ""
	if p.alike != nil && lease.Alike != "" {
		prepared, alike = p.alike, lease.Alike
	}
	return snap.EvalInput(lease.Eval, &state.InputOptions{
		Now: p.opts.Clock.Now(), Seed: seedOf(lease.Eval, 0),
		NewID: p.opts.NewID, Typical: p.learned.typical, Prepared: prepared, Alike: alike, Brief: brief, EntitledOnly: lease.EntitledOnly, LendRound: lease.LendRound,
	})
}

// leftOf returns how a request waits on; nil: it has all that it wants.
func leftOf(p *structs.Plan) *structs.Evaluation {
	for _, e := range p.Evals {
		if e.ID == p.EvalID && e.Status == structs.EvalStatusBlocked {
			return e
		}
	}
	return nil
}

// idle reports whether a plan changes nothing that is stored, or that is to be stored.
func (p *Pass) idle(plan *structs.Plan, was, left *structs.Evaluation) bool {
	if len(plan.Place)+len(plan.Stop)+len(plan.Update)+len(plan.Reserve)+len(plan.Unreserve)+len(plan.Requests) > 0 || len(plan.Evals) > 1 {
		return false
	}
	if p.opts.Unread {
		due, known := p.dues[was.ID]
		if !known {
			due = was.WaitUntil
		}
		if stays(due, left) {
			left.WaitUntil = due
		}
		p.dues[was.ID] = left.WaitUntil
		return maps.Equal(left.QueuedAllocations, was.QueuedAllocations)
	}
	if !stays(was.WaitUntil, left) {
		return false
	}
	left.WaitUntil = was.WaitUntil // also if something else is to be stated: that must not move it
	return alike(was.FailedTGAllocs, left.FailedTGAllocs) && left.StatusDescription == was.StatusDescription &&
		maps.Equal(left.QueuedAllocations, was.QueuedAllocations)
}

// stays reports whether what waits on is to be looked at when it was due, unless that has passed, or it is to be looked at earlier.
func stays(due time.Time, left *structs.Evaluation) bool {
	if due.IsZero() || left.WaitUntil.IsZero() {
		return due.IsZero() && left.WaitUntil.IsZero()
	}
	return !left.WaitUntil.Before(due) && due.After(time.Unix(0, left.ModifyTime))
}

// submit has plans committed and returns what became of them.
func (p *Pass) submit(ctx context.Context, out []sent) {
	if len(out) == 0 {
		return
	}
	plans := make([]*structs.Plan, len(out))
	for i, s := range out {
		plans[i] = s.plan
	}
	results, errs := p.plans.SubmitAll(ctx, plans)
	for i, s := range out {
		p.learn(ctx, s, results[i], errs[i])
	}
}

// learn records the result of a plan.
func (p *Pass) learn(ctx context.Context, s sent, result *structs.PlanResult, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, structs.ErrNoLeader) && !errors.Is(err, structs.ErrStale) {
		p.opts.Logger.Error("commit the plan of a request; it will be tried again", "eval", s.lease.Eval.ID, "job", s.lease.Eval.JobID, "error", err)
	}
	p.queue.Answered(s.lease, err == nil && result.RefreshIndex > 0, err != nil)
}

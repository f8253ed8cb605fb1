package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
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
	planRefusedCount = telemetry.NewCount("nomad.worker.plan_refused")
	gaveUpCount      = telemetry.NewCount("nomad.worker.gave_up")
	dequeueEvalTime  = telemetry.NewTimer("nomad.worker.dequeue_eval")
	sendAckTime      = telemetry.NewTimer("nomad.worker.send_ack")
	submitPlanTime   = telemetry.NewTimer("nomad.worker.submit_plan")
	waitForIndexTime = telemetry.NewTimer("nomad.worker.wait_for_index")
	schedulerTimes   = map[string]*telemetry.Timer{
		structs.JobTypeService:  telemetry.NewTimer("nomad.worker.invoke_scheduler.service"),
		structs.JobTypeBatch:    telemetry.NewTimer("nomad.worker.invoke_scheduler.batch"),
		structs.JobTypeSystem:   telemetry.NewTimer("nomad.worker.invoke_scheduler.system"),
		structs.JobTypeSysBatch: telemetry.NewTimer("nomad.worker.invoke_scheduler.sysbatch"),
	}
)

// Options tunes a worker. Zero values are replaced by the defaults named.
type Options struct {
	Schedulers []string      // job types; needed
	Poll       time.Duration // how long one Dequeue waits (30 s)
	Backoff    time.Duration // after a failed Dequeue; doubles up to 16 times that (50 ms)
	Catchup    time.Duration // wait for this server's state to catch up (10 s)
	InFlight   int           // evaluations whose plans are being committed (16)
	// Attempts and BatchAttempts are how many plans of an evaluation may be refused, one
	// after the other, without anything of it being placed (5; batch jobs 2, as they
	// are in less of a hurry).
	Attempts      int
	BatchAttempts int
	Retry         time.Duration // before an evaluation that gave up is followed by another (5 s)
	NewID         func() string // mints IDs; needed
	Assumed       *Assumed      // of this server's workers; nil: its own
	Typicals      *Typicals     // of this server's workers; nil: its own
	Clock         clock.Clock   // (the machine's)
	Logger        hclog.Logger
}

// rounds bounds the plans of one evaluation, whatever they place.
const rounds = 64

// Worker decides evaluations.
type Worker struct {
	opts   Options
	leader queue.Leader
	store  *state.Store
	// deciding is locked while the scheduler runs: a worker takes one core at most.
	deciding sync.Mutex
	// With deciding locked:
	learned  learner
	prepared *scheduler.Prepared
}

// New makes a worker; Run runs it.
func New(opts Options, leader queue.Leader, store *state.Store) *Worker {
	setTime := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	setTime(&opts.Poll, 30*time.Second)
	setTime(&opts.Backoff, 50*time.Millisecond)
	setTime(&opts.Catchup, 10*time.Second)
	setTime(&opts.Retry, 5*time.Second)
	set(&opts.InFlight, 16)
	set(&opts.Attempts, 5)
	set(&opts.BatchAttempts, 2)
	if opts.Assumed == nil {
		opts.Assumed = NewAssumed()
	}
	if opts.Typicals == nil {
		opts.Typicals = NewTypicals()
	}
	opts.Clock = clock.Or(opts.Clock)
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Worker{opts: opts, leader: leader, store: store, learned: learner{from: opts.Typicals, clock: opts.Clock}, prepared: scheduler.NewPrepared()}
}

// Run works until ctx ends, and returns the evaluations that it has leased then.
func (w *Worker) Run(ctx context.Context) { w.RunUntil(ctx, ctx) }

// RunUntil works until taking ends, and returns when what it has leased then is decided and committed. It returns that when ctx
// ends, from which taking is derived.
func (w *Worker) RunUntil(ctx, taking context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, w.opts.InFlight)
	backoff := w.opts.Backoff
	for {
		select {
		case slots <- struct{}{}:
		case <-taking.Done():
			return
		}
		got, err := w.dequeue(taking)
		if err != nil {
			<-slots
			select {
			case <-time.After(backoff):
				backoff = min(2*backoff, 16*w.opts.Backoff)
			case <-taking.Done():
				return
			}
			continue
		}
		backoff = w.opts.Backoff
		if got.Eval == nil {
			<-slots
			continue
		}
		k := w.begin(got)
		plan, err := k.decide(ctx)
		wg.Go(func() {
			defer func() { <-slots }()
			k.end(ctx, k.carry(ctx, plan, err))
		})
	}
}

func (w *Worker) dequeue(ctx context.Context) (*structs.EvalDequeueReply, error) {
	defer dequeueEvalTime.Since(time.Now())
	return w.leader.Dequeue(ctx, w.opts.Schedulers, w.opts.Poll)
}

// answer reports to the broker how it went. That is tried even when ctx has ended, so that
// the evaluation need not wait for its nack timeout.
func (w *Worker) answer(ctx context.Context, got *structs.EvalDequeueReply, failed error) {
	defer sendAckTime.If(clock.IsMachine(w.opts.Clock)).Since(time.Now())
	id, send := got.Eval.ID, w.leader.Ack
	if failed != nil {
		send = w.leader.Nack
		if ctx.Err() == nil && !errors.Is(failed, structs.ErrNoLeader) && !errors.Is(failed, structs.ErrStale) {
			w.opts.Logger.Error("an evaluation failed; it will be tried again", "eval", id, "job", got.Eval.JobID, "error", failed)
		}
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := send(sending, id, got.Token); err != nil && ctx.Err() == nil {
		w.opts.Logger.Debug("answer an evaluation", "eval", id, "failed", failed != nil, "error", err)
	}
}

// errOvertook: the evaluation is the worker's no more. The leader leases it out again in
// its turn, after what goes before it.
var errOvertook = errors.New("the plan would have overtaken others")

// work is an evaluation that a worker has leased.
type work struct {
	*Worker
	got *structs.EvalDequeueReply
	// index is what the state must have reached that its next plan is decided on.
	index    uint64
	round    int // plans of it that were refused
	attempts int // that it has
	left     int // of them
}

func (w *Worker) begin(got *structs.EvalDequeueReply) *work {
	k := &work{Worker: w, got: got, index: got.WaitIndex, attempts: w.opts.Attempts}
	if got.Eval.Type == structs.JobTypeBatch || got.Eval.Type == structs.JobTypeSysBatch {
		k.attempts = w.opts.BatchAttempts
	}
	k.left = k.attempts
	return k
}

// decide makes its next plan; nil: there is nothing to do, it is over already.
func (k *work) decide(ctx context.Context) (*inFlightPlan, error) {
	return k.Worker.decide(ctx, k.got, k.index, k.round)
}

// carry submits a decided plan, and decides again what of it was refused, until all
// of it has been committed or the attempts are used up.
func (k *work) carry(ctx context.Context, plan *inFlightPlan, err error) error {
	for again := true; again; {
		if err != nil {
			return err
		}
		if plan == nil {
			return nil
		}
		result, failed := k.submit(ctx, plan)
		if again, err = k.learn(ctx, result, failed); again {
			plan, err = k.decide(ctx)
		}
	}
	return err
}

// learn takes in what became of a plan; again: another must be decided.
func (k *work) learn(ctx context.Context, result *structs.PlanResult, failed error) (again bool, err error) {
	switch {
	case failed != nil:
		return false, fmt.Errorf("submit the plan: %w", failed)
	case result.Overtook:
		return false, errOvertook
	case result.RefreshIndex == 0:
		return false, nil
	}
	planRefusedCount.If(clock.IsMachine(k.opts.Clock)).Add(1)
	k.opts.Logger.Debug("plan refused; deciding again", "eval", k.got.Eval.ID, "job", k.got.Eval.JobID, "placed", result.Placed, "refused", result.Refused,
		"reason", result.RefusedReason)
	if k.left--; result.Placed > 0 {
		k.left = k.attempts
	}
	if k.left == 0 || k.round == rounds {
		return false, k.giveUp(ctx, k.got, k.round+1)
	}
	k.index = max(k.got.WaitIndex, result.RefreshIndex)
	k.round++
	return true, nil
}

// end reports to the broker how it went, unless it knows.
func (k *work) end(ctx context.Context, err error) {
	if !errors.Is(err, errOvertook) {
		k.answer(ctx, k.got, err)
	}
}

// inFlightPlan is a decided plan. The other workers assume it until its commit has ended.
type inFlightPlan struct {
	*structs.Plan
	committed func(whole bool)
}

func (w *Worker) submit(ctx context.Context, plan *inFlightPlan) (*structs.PlanResult, error) {
	defer submitPlanTime.Since(time.Now())
	result, err := w.leader.Submit(ctx, plan.Plan)
	if err == nil && result == nil {
		err = structs.Errorf(structs.CodeInternal, "the leader answered without a result")
	}
	plan.committed(fullyCommitted(result, err))
	return result, err
}

// fullyCommitted reports whether all of a plan has been committed.
func fullyCommitted(result *structs.PlanResult, err error) bool {
	return err == nil && result.RefreshIndex == 0 && result.Refused == 0 && !result.Overtook
}

// decide schedules on a state at least as new as index; nil: there is nothing to do,
// the evaluation is over. The plan is in flight from here on: it must be submitted.
func (w *Worker) decide(ctx context.Context, got *structs.EvalDequeueReply, index uint64, round int) (*inFlightPlan, error) {
	snap, err := w.catchUp(ctx, index)
	if err != nil {
		return nil, err
	}
	eval := got.Eval
	if stored := snap.Eval(nil, eval.ID); stored != nil {
		if stored.Terminal() {
			return nil, nil
		}
		eval = stored
	}
	w.deciding.Lock()
	defer w.deciding.Unlock()
	world, assumed := w.opts.Assumed.world(snap)
	plan, err := w.schedule(world, snap, eval, round, got.EntitledOnly)
	if err == nil && assumed && len(unplaced(plan)) > 0 && !got.EntitledOnly {
		plan, err = w.schedule(snap.World(), snap, eval, round, false)
	}
	if err != nil {
		return nil, fmt.Errorf("schedule job %q: %w", eval.JobID, err)
	}
	plan.EvalToken = got.Token
	return &inFlightPlan{Plan: plan, committed: w.opts.Assumed.add(plan)}, nil
}

// unplaced is what the plan found no room for.
func unplaced(p *structs.Plan) map[string]*structs.AllocMetric {
	if len(p.FailedTGAllocs) > 0 {
		return p.FailedTGAllocs
	}
	for _, e := range p.Evals {
		if e.ID == p.EvalID {
			return e.FailedTGAllocs
		}
	}
	return nil
}

func (w *Worker) catchUp(ctx context.Context, index uint64) (*state.Snapshot, error) {
	defer waitForIndexTime.If(clock.IsMachine(w.opts.Clock)).Since(time.Now())
	ctx, cancel := context.WithTimeout(ctx, w.opts.Catchup)
	defer cancel()
	return w.store.WaitIndex(ctx, index)
}

// schedule calls the scheduler; its panic becomes an error, so that one bad job does
// not end the server.
func (w *Worker) schedule(
	world *scheduler.World, snap *state.Snapshot, eval *structs.Evaluation, round int, entitledOnly bool,
) (plan *structs.Plan, err error) {
	defer schedulerTimes[eval.Type].If(clock.IsMachine(w.opts.Clock)).Since(time.Now())
	defer func() {
		if r := recover(); r != nil {
			err = structs.Errorf(structs.CodeInternal, "the scheduler panicked: %v", r)
			w.prepared = scheduler.NewPrepared() // the old one may have been left half done
		}
	}()
	return scheduler.Schedule(world, eval, snap.EvalInput(eval, &state.InputOptions{
		Now: w.opts.Clock.Now(), Seed: seedOf(eval, round), NewID: w.opts.NewID, Typical: w.learned.typical, Prepared: w.prepared,
		EntitledOnly: entitledOnly, LendRound: 1, // the pass tries the later ones
	}))
}

// seedOf is the same for the evaluations of a job, on whatever server and at whatever index: a forecast decides as it will be decided.
func seedOf(e *structs.Evaluation, round int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.Namespace + "\x00" + e.JobID))            // never fails
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(round))) // never fails; a seed
	return h.Sum64()
}

// giveUp marks an evaluation failed whose plans were refused too often, and creates a
// follow-up evaluation.
func (w *Worker) giveUp(ctx context.Context, got *structs.EvalDequeueReply, tried int) error {
	now := w.opts.Clock.Now()
	done := got.Eval.Copy()
	done.Status = structs.EvalStatusFailed
	done.StatusDescription = fmt.Sprintf("maximum attempts reached (%d)", tried)
	next := &structs.Evaluation{
		ID: w.opts.NewID(), Namespace: done.Namespace, Priority: done.Priority, Type: done.Type, JobID: done.JobID,
		JobModifyIndex: done.JobModifyIndex, TriggeredBy: structs.EvalTriggerMaxPlans, Status: structs.EvalStatusPending,
		PreviousEval: done.ID, WaitUntil: now.Add(w.opts.Retry).UTC(), CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
	done.NextEval = next.ID
	gaveUpCount.If(clock.IsMachine(w.opts.Clock)).Add(1)
	if err := w.leader.Update(ctx, got.Eval.ID, got.Token, []*structs.Evaluation{done, next}); err != nil {
		return fmt.Errorf("end an evaluation after %d plans: %w", tried, err)
	}
	return nil
}

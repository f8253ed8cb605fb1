// Package worker runs the scheduler: it takes an evaluation, reads the state that it
// must have seen, calls scheduler.Schedule and submits the plan. Workers run on
// every server, several at once, and are optimistic: what another was quicker to
// take is refused by the plan applier, and the evaluation is decided once more on a
// fresh state.
//
// A worker must never write anything itself, and never decide anything: the one is
// the leader's, the other the scheduler's.
package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Leader is the leader as a worker calls it, near or far.
type Leader interface {
	Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error)
	Ack(ctx context.Context, evalID, token string) error
	Nack(ctx context.Context, evalID, token string) error
	Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error)
	// Update stores evaluations for the holder of a token.
	Update(ctx context.Context, evalID, token string, evals []*structs.Evaluation) error
}

// Options tunes a worker. Zero values are replaced by the defaults named.
type Options struct {
	Schedulers []string      // job types
	Poll       time.Duration // how long one Dequeue waits (30 s)
	Backoff    time.Duration // after a failed call (250 ms)
	Catchup    time.Duration // wait for this server's state to catch up (10 s)
	Attempts   int           // plans that may be refused in part, one after the other (8)
	Retry      time.Duration // before an evaluation that gave up is followed by another (5 s)
	NewID      func() string
	Logger     hclog.Logger
}

// Worker takes one evaluation at a time.
type Worker struct {
	opts   Options
	leader Leader
	store  *state.Store
}

// New makes a worker; Run runs it.
func New(opts Options, leader Leader, store *state.Store) *Worker {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&opts.Poll, 30*time.Second)
	set(&opts.Backoff, 250*time.Millisecond)
	set(&opts.Catchup, 10*time.Second)
	set(&opts.Retry, 5*time.Second)
	if opts.Attempts <= 0 {
		opts.Attempts = 8
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	return &Worker{opts: opts, leader: leader, store: store}
}

// Run works until ctx ends. An evaluation that it holds then is given out again by
// the broker.
func (w *Worker) Run(ctx context.Context) {
	for ctx.Err() == nil {
		got, err := w.leader.Dequeue(ctx, w.opts.Schedulers, w.opts.Poll)
		if err != nil {
			select {
			case <-time.After(w.opts.Backoff):
			case <-ctx.Done():
			}
			continue
		}
		if got.Eval != nil {
			w.deal(ctx, got)
		}
	}
}

// deal decides one evaluation and answers it.
func (w *Worker) deal(ctx context.Context, got *structs.EvalDequeueReply) {
	id := got.Eval.ID
	err := w.decide(ctx, got)
	if err == nil {
		if err := w.leader.Ack(ctx, id, got.Token); err != nil && ctx.Err() == nil {
			w.opts.Logger.Debug("answer an evaluation", "eval", id, "error", err)
		}
		return
	}
	if ctx.Err() != nil || errors.Is(err, structs.ErrNoLeader) {
		return // the next leader gives it out again
	}
	w.opts.Logger.Error("an evaluation failed; it will be tried again", "eval", id, "job", got.Eval.JobID, "error", err)
	if err := w.leader.Nack(ctx, id, got.Token); err != nil && ctx.Err() == nil {
		w.opts.Logger.Debug("give an evaluation back", "eval", id, "error", err)
	}
}

// decide schedules until all of the plan has been committed or it has been refused
// too often.
func (w *Worker) decide(ctx context.Context, got *structs.EvalDequeueReply) error {
	defer metrics.MeasureSince([]string{"nomad", "worker", "invoke_scheduler", got.Eval.Type}, time.Now())
	index := got.WaitIndex
	for attempt := 0; attempt < w.opts.Attempts; attempt++ {
		snap, err := w.catchUp(ctx, index)
		if err != nil {
			return err
		}
		plan, err := w.schedule(snap, got.Eval, attempt)
		if err != nil {
			return err
		}
		plan.EvalToken = got.Token
		result, err := w.leader.Submit(ctx, plan)
		if err != nil {
			return fmt.Errorf("submit the plan: %w", err)
		}
		if result.RefreshIndex == 0 {
			return nil
		}
		w.opts.Logger.Debug("a plan was refused in part; deciding again", "eval", got.Eval.ID, "refused", result.Refused,
			"reason", result.RefusedReason)
		index = max(index, result.RefreshIndex)
	}
	return w.giveUp(ctx, got)
}

func (w *Worker) catchUp(ctx context.Context, index uint64) (*state.Snapshot, error) {
	defer metrics.MeasureSince([]string{"nomad", "worker", "wait_for_index"}, time.Now())
	ctx, cancel := context.WithTimeout(ctx, w.opts.Catchup)
	defer cancel()
	return w.store.WaitIndex(ctx, index)
}

// schedule calls the scheduler; its panic becomes an error, so that one bad job does
// not end the server.
func (w *Worker) schedule(snap *state.Snapshot, eval *structs.Evaluation, attempt int) (plan *structs.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = structs.Errorf(structs.CodeInternal, "schedule job %q: the scheduler panicked: %v", eval.JobID, r)
		}
	}()
	if stored := snap.Eval(nil, eval.ID); stored != nil {
		eval = stored
	}
	plan, err = scheduler.Schedule(snap.World(), eval, scheduler.Input{
		Job: snap.Job(nil, eval.Namespace, eval.JobID), Allocs: snap.AllocsByJob(nil, eval.Namespace, eval.JobID, true),
		Config: snap.SchedulerConfig(nil), Now: time.Now(), Seed: seedOf(eval.ID, attempt), NewID: w.opts.NewID,
	})
	if err != nil {
		return nil, fmt.Errorf("schedule job %q: %w", eval.JobID, err)
	}
	plan.SnapshotIndex = snap.Index()
	for _, e := range plan.Evals {
		if e.Status == structs.EvalStatusBlocked && e.SnapshotIndex == 0 {
			e.SnapshotIndex = snap.Index()
		}
	}
	return plan, nil
}

// seedOf is the same for the same evaluation and attempt, on whatever server.
func seedOf(id string, attempt int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))                                          // never fails
	_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(attempt))) //nolint:gosec // a small count
	return h.Sum64()
}

// giveUp ends an evaluation whose plans others kept overtaking, and has its job
// looked at again a little later.
func (w *Worker) giveUp(ctx context.Context, got *structs.EvalDequeueReply) error {
	now := time.Now()
	done := got.Eval.Copy()
	done.Status = structs.EvalStatusFailed
	done.StatusDescription = fmt.Sprintf("maximum attempts reached (%d)", w.opts.Attempts)
	next := &structs.Evaluation{
		ID: w.opts.NewID(), Namespace: done.Namespace, Priority: done.Priority, Type: done.Type, JobID: done.JobID,
		JobModifyIndex: done.JobModifyIndex, TriggeredBy: structs.EvalTriggerMaxPlans, Status: structs.EvalStatusPending,
		PreviousEval: done.ID, WaitUntil: now.Add(w.opts.Retry).UTC(), CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
	done.NextEval = next.ID
	return w.leader.Update(ctx, got.Eval.ID, got.Token, []*structs.Evaluation{done, next})
}

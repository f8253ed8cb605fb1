package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/structs"
)

var failedCount = telemetry.NewCount("nomad.broker.failed")

// One log entry of chores has at most choreBatch evaluations and about choreBytes.
const (
	choreBatch = 512
	choreBytes = 256 << 10
)

// choreRetry is waited after a commit that failed.
const choreRetry = 250 * time.Millisecond

// chores are changes of evaluations that the broker wants committed: cancelled
// duplicates, failures with what follows them. They are gathered while
// a commit is in flight and go out together; the first goes at once. There is at most
// one wish for each evaluation, the latest; the evaluations of a wish are never parted.
type chores struct {
	newID func() string
	clock clock.Clock
	delay time.Duration

	mu   sync.Mutex
	todo map[string]wish // by the ID of its first
	more chan struct{}   // has one token while there is something to do
}

// wish is evaluations to be stored together: one, or a failed one and its follower.
type wish []*structs.Evaluation

func newChores(newID func() string, c clock.Clock, delay time.Duration) *chores {
	return &chores{newID: newID, clock: c, delay: delay, todo: map[string]wish{}, more: make(chan struct{}, 1)}
}

// put requests that a wish is committed. A retry does not replace a later wish.
func (c *chores) put(retry bool, w wish) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, later := c.todo[w[0].ID]; !retry || !later {
		c.todo[w[0].ID] = w
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// cancel ends an evaluation that nobody needs to look at.
func (c *chores) cancel(e *structs.Evaluation, why string) {
	done := e.Copy()
	done.Status, done.StatusDescription = structs.EvalStatusCancelled, why
	c.put(false, wish{done})
}

// fail ends an evaluation that workers failed on too often, and has its job looked
// at again later.
func (c *chores) fail(e *structs.Evaluation, limit int) {
	now := c.clock.Now()
	done := e.Copy()
	done.Status = structs.EvalStatusFailed
	done.StatusDescription = fmt.Sprintf("evaluation reached delivery limit (%d)", limit)
	next := &structs.Evaluation{
		ID: c.newID(), Namespace: e.Namespace, Priority: e.Priority, Type: e.Type, JobID: e.JobID, JobModifyIndex: e.JobModifyIndex,
		TriggeredBy: structs.EvalTriggerFailedFollowUp, Status: structs.EvalStatusPending, PreviousEval: e.ID,
		WaitUntil: now.Add(c.delay).UTC(), CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
	done.NextEval = next.ID
	c.put(false, wish{done, next})
	failedCount.If(clock.IsMachine(c.clock)).Add(1)
}

// run commits what is requested until ctx ends. What is left then, the next leader finds
// out for itself.
func (c *chores) run(ctx context.Context, apply Applier, logger hclog.Logger) {
	for {
		select {
		case <-c.more:
		case <-ctx.Done():
			return
		}
		for batch := c.take(); len(batch) > 0 && ctx.Err() == nil; batch = c.take() {
			err := c.commit(ctx, apply, logger, batch)
			if err == nil || ctx.Err() != nil {
				continue
			}
			logger.Warn("commit changed evaluations; trying again", "evals", len(batch), "error", err)
			for _, w := range batch {
				c.put(true, w)
			}
			select {
			case <-time.After(choreRetry):
			case <-ctx.Done():
			}
		}
	}
}

// commit stores a batch. When the state refuses it, the wishes go one by one, so
// that a bad one does not delay the others; it is named and dropped.
func (c *chores) commit(ctx context.Context, apply Applier, logger hclog.Logger, batch []wish) error {
	entry := &structs.EvalUpsertEntry{Time: c.clock.Now().UnixNano()}
	for _, w := range batch {
		entry.Evals = append(entry.Evals, w...)
	}
	_, err := apply.Apply(ctx, structs.LogEvalUpsert, entry)
	if err == nil || !errors.Is(err, structs.ErrBadRequest) {
		return err
	}
	if len(batch) == 1 {
		logger.Error("the state refuses a changed evaluation", "eval", batch[0][0].ID, "status", batch[0][0].Status, "error", err)
		return nil
	}
	for _, w := range batch {
		if err := c.commit(ctx, apply, logger, []wish{w}); err != nil {
			return err // all are tried again: storing one twice does no harm
		}
	}
	return nil
}

// take returns what goes into one log entry; none if there is nothing to do.
func (c *chores) take() []wish {
	c.mu.Lock()
	defer c.mu.Unlock()
	var batch []wish
	size := 0
	for _, id := range slices.Sorted(maps.Keys(c.todo)) {
		w := c.todo[id]
		if len(batch) == choreBatch || size > choreBytes {
			break
		}
		batch = append(batch, w)
		for _, e := range w {
			size += sizeOf(e)
		}
		delete(c.todo, id)
	}
	return batch
}

// sizeOf is about what an evaluation takes in a log entry, in bytes.
func sizeOf(e *structs.Evaluation) int {
	return 512 + 1024*len(e.FailedTGAllocs) + 32*len(e.ClassEligibility)
}

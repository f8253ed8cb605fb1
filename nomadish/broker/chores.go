package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// choreBatch bounds the evaluations of one log entry.
const choreBatch = 256

// chores are changes of evaluations that the broker wants committed: cancelled
// duplicates, failures with what follows them, woken ones. They are gathered while
// a commit is in flight and go out together.
type chores struct {
	newID func() string
	delay time.Duration

	mu   sync.Mutex
	todo map[string]*structs.Evaluation // by ID: the latest wish counts
	more chan struct{}
}

func newChores(newID func() string, delay time.Duration) *chores {
	return &chores{newID: newID, delay: delay, todo: map[string]*structs.Evaluation{}, more: make(chan struct{}, 1)}
}

func (c *chores) put(evals ...*structs.Evaluation) {
	if c == nil {
		return
	}
	c.mu.Lock()
	for _, e := range evals {
		c.todo[e.ID] = e
	}
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *chores) cancel(e *structs.Evaluation, why string) {
	done := e.Copy()
	done.Status, done.StatusDescription = structs.EvalStatusCancelled, why
	c.put(done)
}

// wakeUp makes blocked evaluations pending again.
func (c *chores) wakeUp(evals []*structs.Evaluation) {
	for _, e := range evals {
		again := e.Copy()
		again.Status, again.StatusDescription = structs.EvalStatusPending, ""
		c.put(again)
	}
}

// fail ends an evaluation that workers failed on too often, and has its job looked
// at again later.
func (c *chores) fail(e *structs.Evaluation, limit int) {
	if c == nil {
		return
	}
	done := e.Copy()
	done.Status = structs.EvalStatusFailed
	done.StatusDescription = fmt.Sprintf("evaluation reached delivery limit (%d)", limit)
	next := &structs.Evaluation{
		ID: c.newID(), Namespace: e.Namespace, Priority: e.Priority, Type: e.Type, JobID: e.JobID, JobModifyIndex: e.JobModifyIndex,
		TriggeredBy: structs.EvalTriggerFailedFollowUp, Status: structs.EvalStatusPending, PreviousEval: e.ID,
		WaitUntil: time.Now().Add(c.delay).UTC(), CreateTime: time.Now().UnixNano(),
	}
	done.NextEval = next.ID
	c.put(done, next)
}

// run commits what is asked until ctx ends.
func (c *chores) run(ctx context.Context, apply Applier, failed func(error)) {
	for {
		select {
		case <-c.more:
		case <-ctx.Done():
			return
		}
		for batch := c.take(); len(batch) > 0; batch = c.take() {
			_, err := apply.Apply(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: batch, Time: time.Now().UnixNano()})
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return
			}
			failed(err)
			c.put(batch...) // nobody else would ever ask for it again
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *chores) take() []*structs.Evaluation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var batch []*structs.Evaluation
	for id, e := range c.todo { // order does not matter: they are of different evaluations
		if len(batch) == choreBatch {
			break
		}
		batch = append(batch, e)
		delete(c.todo, id)
	}
	return batch
}

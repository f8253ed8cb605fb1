package plan

import (
	"container/heap"
	"context"
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// waiting is a plan in the queue.
type waiting struct {
	plan *structs.Plan
	seq  uint64
	ctx  context.Context
	done chan answer // takes one answer
}

type answer struct {
	result *structs.PlanResult
	err    error
}

// planQueue is the plans that wait: higher priority first, then first come.
type planQueue struct {
	mu      sync.Mutex
	enabled bool
	limit   int
	seq     uint64
	plans   plans
	more    chan struct{} // has one token while plans wait
}

func newPlanQueue(limit int) *planQueue {
	return &planQueue{limit: limit, more: make(chan struct{}, 1)}
}

// enable opens or closes the queue; closing answers all that wait.
func (q *planQueue) enable(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enabled = on
	for _, w := range q.plans {
		w.done <- answer{err: notLeader()}
	}
	q.plans = nil
}

// put takes plans in, all or none.
func (q *planQueue) put(ctx context.Context, ps ...*structs.Plan) (ws []*waiting, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.enabled {
		return nil, notLeader()
	}
	if len(q.plans)+len(ps) > q.limit {
		return nil, structs.Errorf(structs.CodeLimited, "plan queue: %d plans wait already", len(q.plans)).WithHint("try again")
	}
	for _, p := range ps {
		q.seq++
		w := &waiting{plan: p, seq: q.seq, ctx: ctx, done: make(chan answer, 1)}
		heap.Push(&q.plans, w)
		ws = append(ws, w)
	}
	select {
	case q.more <- struct{}{}:
	default:
	}
	return ws, nil
}

func (q *planQueue) empty() bool { return q.depth() == 0 }

// depth returns how many plans wait.
func (q *planQueue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.plans)
}

// take returns up to n plans, first the first; none if none wait.
func (q *planQueue) take(n int) []*waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*waiting
	for len(q.plans) > 0 && len(out) < n {
		w := heap.Pop(&q.plans).(*waiting) // the heap contains nothing else
		if w.ctx.Err() == nil {            // else nobody waits for it any more
			out = append(out, w)
		}
	}
	return out
}

func notLeader() error {
	return structs.Errorf(structs.CodeNoLeader, "plan queue is not running here").WithHint("only the leader commits plans")
}

// plans implements heap.Interface.
type plans []*waiting

func (h plans) Len() int { return len(h) }
func (h plans) Less(i, j int) bool {
	if h[i].plan.Priority != h[j].plan.Priority {
		return h[i].plan.Priority > h[j].plan.Priority
	}
	return h[i].seq < h[j].seq
}
func (h plans) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *plans) Push(x any) { *h = append(*h, x.(*waiting)) } // the heap contains nothing else

// Pop implements heap.Interface.
func (h *plans) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

package broker

import (
	"container/heap"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// verdict is what a worker said of an evaluation while it was pinned.
type verdict uint8

const (
	verdictNone verdict = iota
	verdictAck
	verdictNack
)

// item is one evaluation in the broker that is not blocked.
type item struct {
	eval     *structs.Evaluation
	seq      uint64 // order of arrival
	index    int    // in its heap
	since    time.Time
	timer    *time.Timer // of its delay, its rest or its worker's time
	failures int         // deliveries that came to nothing

	// What follows is of a held evaluation.

	token string // the worker's; empty: nobody holds it
	taken time.Time
	pins  int     // plans of it that are being committed
	said  verdict // by the worker while it was pinned
	// over: by the state, it is not pending any more; the worker will say so.
	over bool
	// again is its later version to be taken in once the worker has answered: it was
	// blocked and woken meanwhile.
	again *structs.Evaluation
}

// before is the order of delivery.
func (i *item) before(o *item) bool {
	if i.eval.Priority != o.eval.Priority {
		return i.eval.Priority > o.eval.Priority
	}
	if i.seq != o.seq {
		return i.seq < o.seq
	}
	return i.eval.ID < o.eval.ID
}

// stop ends whatever the item waits for.
func (i *item) stop() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// lane is a job's evaluations: one ready, held or resting, at most one behind it.
type lane struct {
	current *item
	next    *item
}

// queue is the ready evaluations of one type, in the order of delivery.
type queue struct{ items items }

func (q *queue) push(it *item) { heap.Push(&q.items, it) }
func (q *queue) first() *item  { return q.items[0] }
func (q *queue) len() int      { return len(q.items) }

// remove takes an item out, if it is in.
func (q *queue) remove(it *item) {
	if q != nil && it.index < len(q.items) && q.items[it.index] == it {
		heap.Remove(&q.items, it.index)
	}
}

// items implements heap.Interface.
type items []*item

func (h items) Len() int           { return len(h) }
func (h items) Less(i, j int) bool { return h[i].before(h[j]) }
func (h items) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *items) Push(x any) {
	it := x.(*item) //nolint:forcetypeassert // the heap holds nothing else
	it.index = len(*h)
	*h = append(*h, it)
}

// Pop implements heap.Interface.
func (h *items) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

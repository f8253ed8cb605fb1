package queue

import (
	"cmp"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// verdict is what a worker said of an evaluation while it was pinned.
type verdict uint8

const (
	verdictNone verdict = iota
	verdictAck
	verdictNack
)

// item is one evaluation in the broker that is not blocked, or a blocked one whose turn
// it is.
type item struct {
	eval *structs.Evaluation
	place
	seq      uint64 // order of arrival
	since    time.Time
	timer    clock.Timer // of its delay, its rest or its worker's time
	failures int         // deliveries that came to nothing

	inReady, inGate, inBack int // its places in those heaps
	// sentBack: what it places would have overtaken others. It is not given out again
	// before nothing goes before it.
	sentBack bool

	// What follows is of a held evaluation.

	token string // the worker's; empty: nobody holds it
	taken time.Time
	pins  int      // plans of it that are being committed
	seeds []string // of the plans that came under this token
	said  verdict  // by the worker while it was pinned
	// over: by the state, it is not pending any more; the worker will say so.
	over bool
	// again is its later version to be taken in once the worker has answered: it was
	// blocked and woken meanwhile.
	again *structs.Evaluation
	// ends is set once it has been answered: when the broker has followed the state so far,
	// which tells what has become of it. Until then it counts as it did. 0: not answered.
	ends uint64
	// turn is the blocked ask that a queue pass has taken; nil: a worker has it.
	turn *entry
}

// place is where an evaluation stands in the queue.
type place struct {
	rank structs.Rank
	pool string // "": it places nothing
}

// standingFirst is that of work that places nothing, but mostly gives back room.
const standingFirst = -1

// placeOf finds the place of an evaluation by its job's best ask.
func (b *Broker) placeOf(snap *state.Snapshot, e *structs.Evaluation) place {
	job := snap.Job(nil, e.Namespace, e.JobID)
	if job == nil || job.Stopped() {
		return place{rank: structs.Rank{
			Standing: standingFirst, Band: b.config.Band(e.Priority), Number: int64(e.Priority), Submitted: e.CreateIndex, Job: e.Job(),
		}}
	}
	since := e.CreateTime
	for _, w := range b.asks.ofJob[e.Job()] {
		since = min(since, w.eval.CreateTime)
	}
	best := b.config.Rank(job, nil, since)
	for _, ask := range snap.JobAsks(nil, e.Namespace, e.JobID) {
		if r := b.config.Rank(job, ask, since); r.Compare(&best) < 0 {
			best = r
		}
	}
	return place{best, cmp.Or(job.NodePool, structs.DefaultNodePool)}
}

// before is the order of delivery.
func (i *item) before(o *item) bool {
	return cmp.Or(i.rank.Compare(&o.rank), cmp.Compare(i.seq, o.seq), strings.Compare(i.eval.ID, o.eval.ID)) < 0
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

// readyKey names a queue of what workers may take: that of a job type and a node pool.
type readyKey struct{ kind, pool string }

func newReady() *heap[*item] {
	return &heap[*item]{before: (*item).before, place: func(i *item) *int { return &i.inReady }}
}

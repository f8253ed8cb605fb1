package queue

import (
	"cmp"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/structs"
)

// reply is what a worker reported about an evaluation while it was retained.
type reply uint8

const (
	replyNone reply = iota
	replyAck
	replyNack
)

// item is one evaluation in the broker that is not blocked, or a blocked one that the queue
// pass has leased.
type item struct {
	eval *structs.Evaluation
	position
	seq      uint64 // order of arrival
	since    time.Time
	timer    clock.Timer // of its delay or its lease
	failures int         // deliveries that came to nothing

	inReady, inGate, inBack, inLeft int // its indexes in those heaps
	// sentBack: what it places would have overtaken others. It is not given out again
	// before nothing goes before it.
	sentBack bool

	// What follows is of a leased evaluation.

	token    string // of its lease; empty: nobody has one
	taken    time.Time
	retained int      // plans of it that are being committed
	seeds    []string // of the plans that came under this token
	reply    reply    // by the worker while it was retained
	// over: by the state, it is not pending any more; the worker will report it.
	over bool
	// again is its later version to be taken in once the worker has answered: it was
	// blocked and woken meanwhile.
	again *structs.Evaluation
	// ends is set once it has been answered: when the broker has followed the state so far,
	// which reports what has become of it. Until then it counts as it did. 0: not answered.
	ends uint64
	// entry is the blocked request that a queue pass has leased; nil: a worker has leased the evaluation.
	entry *entry
	// share is that of its namespace, userShare that of its user, in percent, when the pass leased it.
	share, userShare int
}

// before is the order of delivery.
func (i *item) before(g *gates, o *item) bool {
	return cmp.Or(g.compare(i.rankKey(), o.rankKey()), cmp.Compare(i.seq, o.seq), strings.Compare(i.eval.ID, o.eval.ID)) < 0
}

// past reports whether an evaluation has ended whose worker has yet to report that, and is in no order of any kind: its rank matters to nobody, unless it comes to
// stand for another one.
func (i *item) past() bool {
	return i.over && i.inReady == 0 && i.inGate == 0 && i.inBack == 0 && i.inLeft == 0
}

// stand counts a leased evaluation in the gate of its pool, even if its own plan has been judged, as it stands for another one of its job.
func (i *item) stand(b *Broker) {
	if i.past() {
		b.repositionItem(b.snapshot(), i)
	}
	b.gates.enter(i)
}

// stop ends whatever the item waits for.
func (i *item) stop() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// lane is a job's evaluations: one ready, leased or backing off, at most one behind it.
type lane struct {
	current *item
	next    *item
}

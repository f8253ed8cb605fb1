package queue

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// The gate of a pool is the best rank of what must still be tried: what is pending, from
// when it is ready until its plan has been judged, and what is blocked, from when room
// came free that may help it. Not counted are: what backs off after a failure, what is
// delayed, what places nothing, what a worker or a pass has had for longer than
// Options.LeaseLimit, and what has been ready for so long without any worker requesting
// its type. What is behind another evaluation of its job counts as that one.

// gateOf is where an evaluation is counted.
func (p *pool) gateOf(it *item) *fairHeap[*item] {
	if it.entry != nil {
		return p.pass
	}
	return p.gate
}

// goesBefore reports whether an evaluation goes before another one, of another job.
func (g *gates) goesBefore(it *item, at rankKey, o *structs.Evaluation) bool {
	return g.compare(it.rankKey(), at) < 0 && it.eval.Job() != o.Job()
}

// firstOpen is the first that is blocked and must be tried; nil: there is none.
func firstOpen(p *pool) *entry {
	if p.opened == 0 {
		return nil
	}
	of, ok := p.all.firstOf()
	if !ok {
		return nil
	}
	w, _ := of.first()
	return w
}

// openAhead reports whether a blocked request that goes before an evaluation must be tried.
func (g *gates) openAhead(p *pool, it *item) bool {
	w := firstOpen(p)
	return w != nil && g.waitsAhead(w, it)
}

// groupAhead reports whether the first of some groups goes before an evaluation.
func (g *gates) groupAhead(groups *fairHeap[*entries], it *item) bool {
	first, ok := groups.first()
	if !ok {
		return false
	}
	w, _ := first.first()
	return g.waitsAhead(w, it)
}

func (g *gates) waitsAhead(w *entry, it *item) bool {
	return g.compare(w.rankKey(), it.rankKey()) < 0 && w.eval.Job() != it.eval.Job()
}

// CatchUp waits until the gates know what every snapshot shows that was taken before.
func (b *Broker) CatchUp(ctx context.Context) error {
	b.mu.Lock()
	fed := uint64(0)
	if b.fed != nil {
		fed = b.fed()
	}
	for b.enabled && b.seen < fed {
		if b.watched == nil {
			b.watched = make(chan struct{})
		}
		wait := b.watched
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.mu.Lock()
	}
	b.mu.Unlock()
	return nil
}

// saw notes up to where the broker has followed the state.
func (b *Broker) saw(index uint64) {
	b.seen = index
	for len(b.ending) > 0 && b.ending[0].ends <= index {
		it := b.ending[0]
		b.ending = b.ending[1:]
		if b.known[it.eval.ID] == it {
			b.finish(it)
		}
	}
	b.wakeWatcher()
}

func (b *Broker) wakeWatcher() {
	if b.watched != nil {
		close(b.watched)
		b.watched = nil
	}
}

// Admit reports whether the placements of a leased evaluation may be judged on the state of
// base; freed states that plans judged since have freed room on it. What goes before it and found
// no room may have been decided before that was free, or on a newer state: then it is to be judged on
// a newer one, which shows all of that as blocked. Those were judged at other times than it is, and
// shares have moved meanwhile: they are compared as they are now. O(1).
func (b *Broker) Admit(evalID string, base uint64, freed bool) Admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	if base != b.round {
		b.round = base
		b.gates.clearLeft()
	}
	it := b.known[evalID]
	if it == nil || it.pool == "" {
		return Admission{}
	}
	a := Admission{Rank: b.gates.rankAt(it.rankKey())}
	p := b.gates.pools[it.pool]
	if p == nil {
		return a
	}
	head := b.gates.ahead(p, it)
	switch open := b.gates.openAhead(p, it); {
	case (head != nil || open) && it.entry != nil:
		a.Verdict = GateShut
	case open || head != nil && head.token != "":
		a.Verdict = GateWait
	case head != nil:
		a.Verdict = GateBusy
	case (freed || base < b.lessened) && (b.gates.groupAhead(p.all, it) || b.gates.leftAhead(p, it)):
		a.Verdict = GateRefresh
	}
	return a
}

// Judged records whether the whole plan of an evaluation was accepted. If not, the evaluation stays in
// the gate; if the pass submitted the plan, all blocked requests of the pool are tried again. left
// is the blocked evaluation in which the rest waits; nil: there is none. It has not been
// tried if room came free after the state that it was decided on. shares are those with what was accepted; nil: they are as before.
func (b *Broker) Judged(evalID string, whole bool, left *structs.Evaluation, shares Shares) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.known[evalID]
	if it != nil && it.pool != "" && shares != nil {
		b.gates.setShares(it, shares)
	}
	if it != nil {
		b.gates.leaves(it, left != nil)
	}
	switch {
	case it == nil:
	case whole && (left == nil || !b.blocked.freed.missed(left)) && !b.more(it):
		b.gates.ungate(it)
	case whole:
		b.gates.enter(it) // until the feed has brought what is left, and the next of the job is ready
	default:
		b.gates.enter(it)
		if it.entry != nil {
			b.blocked.tryAll(it.pool)
		}
	}
}

// more reports whether another evaluation of the job is behind one: the job may want more
// by now.
func (b *Broker) more(it *item) bool {
	l := b.serial[it.eval.Job()]
	return l != nil && l.current == it && l.next != nil
}

// Gates has a value whenever a gate may have opened since it was last read.
func (b *Broker) Gates() <-chan struct{} { return b.gates.opened }

// SendBack takes an evaluation from its worker, whose plan would have overtaken others,
// and makes it available again when its rank allows.
func (b *Broker) SendBack(evalID, token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, err := b.leased(evalID, token)
	if err != nil || it.entry != nil || it.retained > 0 || it.reply != replyNone {
		return
	}
	it.stop()
	if it.over || it.again != nil {
		b.conclude(it)
		return
	}
	it.token, it.since, it.sentBack = "", b.now(), it.pool != ""
	b.repositionItem(b.snapshot(), it)
	if p := b.gates.pools[it.pool]; p != nil && b.gates.behind(p, it) {
		b.gates.enter(it)
		p.back.put(it)
		return
	}
	b.gates.offer(it)
}

package queue

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// What follows is the queue as a pass over it sees it: see worker.Pass. All of it is for
// one goroutine.

// Await waits until there may be a request to be tried. The error is ctx's.
func (b *Broker) Await(ctx context.Context) error {
	select {
	case <-b.gates.untried:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Next returns the first blocked request that must be tried, to be decided on the state of
// index; it is the pass's until Tried or Answered. nil: there is none, or not before
// something else has been tried (Await returns when that may be), or, with again set, not
// on so old a state. Those that are hopeless are taken to have been tried.
func (b *Broker) Next(index uint64, hopeless Hopeless) (lease *Lease, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.enabled && !b.paused {
		w, round := b.nextOpen(), 1
		if w == nil {
			w, _ = b.blocked.due.first()
		}
		if w == nil {
			w, round = b.nextLater()
		}
		if w == nil {
			w = b.blocked.firstAged(func(job structs.NamespacedID) bool { return b.serial[job] != nil })
			if w == nil || w.after > index || w.eval.ModifyIndex > index || b.gates.outranks(w) {
				return nil, w != nil
			}
			b.blocked.aged.remove(w)
			lease = b.leaseEntry(w, 1)
			lease.Explain = true
			return lease, false
		}
		l := b.serial[w.eval.Job()]
		switch {
		case l != nil: // who decides on the job now sees all that this would
			b.blocked.due.remove(w)
			b.blocked.setApart(w)
			if backingOff := l.current.token == "" && l.current.timer != nil; !backingOff {
				l.current.stand(b)
			}
			continue
		case b.gates.outranks(w):
			return nil, true
		case w.after > index || w.eval.ModifyIndex > index || w.inDue == 0 && w.group.freed > index:
			return nil, true
		case hopeless != nil && w.inDue == 0 && b.blocked.mayPass(w.group, hopeless, w, false):
			b.blocked.passOver(w.group, hopeless)
			continue
		case hopeless != nil && w.inDue > 0 && b.blocked.reservations[w.eval.Job()] == 0:
			if none, again := hopeless(Untried{Eval: w.eval, Kind: &w.group.requestKey, Due: true}); none {
				b.blocked.due.remove(w)
				b.blocked.expectDue(w, again)
				continue
			}
		}
		return b.leaseEntry(w, round), false
	}
	return nil, false
}

// mayPass reports whether a group need not be tried, of which it is the turn of an entry, or, early, will be.
func (b *blocked) mayPass(g *group, hopeless Hopeless, w *entry, early bool) bool {
	if g.helped == nil && !g.everywhere || g.requestKey.LendRounds > 1 {
		return false
	}
	none, _ := hopeless(Untried{
		Eval: w.eval, Kind: &g.requestKey, Nodes: g.helped, Early: early,
		Alone: len(g.others) == 0 && g.first.members == 1, Reserved: b.reservations[w.eval.Job()],
	})
	return none
}

// maxSwept bounds the groups among which others are looked for when one is hopeless.
const maxSwept = 1000

// passOver takes a group that is hopeless to have been tried, and at once all others of its pool that are so whoever of them would be tried.
func (b *blocked) passOver(g *group, hopeless Hopeless) {
	p := b.gates.pool(g.key.pool)
	b.shut(p, g)
	if len(b.groups) <= maxSwept {
		for _, o := range b.groups { // order does not matter: each has its own mark
			if o.open && !o.key.entitled && o.key.pool == g.key.pool && b.allPass(o, hopeless) {
				b.shut(p, o)
			}
		}
	}
	b.refreshed(p)
}

// allPass is mayPass for whoever of a group would be tried: who has waited for the longest time may do what others may not.
func (b *blocked) allPass(g *group, hopeless Hopeless) bool {
	if g.oldest == nil {
		g.oldest = g.findOldest()
	}
	return g.oldest != nil && b.mayPass(g, hopeless, g.oldest, true) && (b.due.len() == 0 || !g.firstDue())
}

// findOldest returns which of the first requests of all users has waited for the longest time; nil: there are none.
func (g *group) findOldest() (oldest *entry) {
	for of := range g.users {
		if w, some := of.first(); some && (oldest == nil || w.eval.CreateTime < oldest.eval.CreateTime) {
			oldest = w
		}
	}
	return oldest
}

// firstDue reports whether the time of the first request of any user has come.
func (g *group) firstDue() bool {
	for of := range g.users {
		if w, some := of.first(); some && w.inDue > 0 {
			return true
		}
	}
	return false
}

// shut marks a group that need not be tried; refreshed must be called after that.
func (b *blocked) shut(p *pool, g *group) {
	g.open, g.helped, g.everywhere = false, nil, false
	for of := range g.users {
		b.updateOpen(p, of)
	}
}

// nextOpen is the first that must be tried of all pools in which nothing pending goes
// before it. What the pass has already does not delay it: it decides one after the other.
func (b *Broker) nextOpen() (best *entry) {
	for _, p := range b.gates.pools { // order does not matter: ranks differ
		w := firstOpen(p)
		if w == nil {
			continue
		}
		if head := b.gates.head(p, p.gate); head != nil && b.gates.goesBefore(head, w.rankKey(), w.eval) {
			continue
		}
		if best == nil || w.before(b.gates, best) {
			best = w
		}
	}
	return best
}

// leaseEntry leases a request to the pass, to be tried in a round of lending: nothing else of its job is given out until it answers.
func (b *Broker) leaseEntry(w *entry, round int) *Lease {
	b.blocked.due.remove(w)
	w.stop()
	if w.group != nil {
		b.blocked.leased(w)
	}
	it := &item{
		eval: w.eval, position: w.position, seq: w.eval.CreateIndex, since: b.now(), taken: b.now(), token: b.opts.NewID(), entry: w,
		share: b.gates.share(w.pool, w.eval.Namespace), userShare: b.gates.userShare(w.pool, w.user),
	}
	b.known[w.eval.ID] = it
	b.serial[w.eval.Job()] = &lane{current: it}
	b.gates.enter(it)
	lease := &Lease{Eval: w.eval, Token: it.token, EntitledOnly: w.entitled, LendRound: round, ExplainAt: w.explainAt}
	if w.group != nil {
		lease.Alike = w.group.requestKey.Key
	}
	return lease
}

// itemOf finds what the pass has leased; nil: the lease has ended.
func (b *Broker) itemOf(t *Lease) *item {
	it, err := b.leased(t.Eval.ID, t.Token)
	if err != nil {
		return nil
	}
	return it
}

// Tried records that nothing comes of a request on the state of index: it waits on as it did,
// and so do those that are like it. left states what can help it, and when it is to be
// looked at again all the same. Of one that was leased to be explained nothing is recorded but when that is to be done next.
func (b *Broker) Tried(t *Lease, index uint64, left *structs.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.itemOf(t)
	if it == nil {
		return
	}
	w := it.entry
	w.failures, w.refusals = 0, 0
	defer b.blocked.explainNext(w.group)
	if !w.gone {
		due := w.due
		if !t.Explain {
			b.blocked.tried(w.group, index, left, t.LendRound)
			due = left.WaitUntil
		}
		w.stated = t.Explain && t.ExplainAt.IsZero()
		w.apart = false
		w.entries.put(w)
		b.blocked.refresh(w.entries)
		b.blocked.refreshAll(w.group)
		if !w.entitled {
			b.blocked.expectDue(w, due)
			b.blocked.expectExplain(w, t.ExplainAt)
		}
		if !t.Explain {
			b.blocked.dueBehind(w)
		}
	}
	b.finish(it)
}

// Planned records that a plan of a request is on its way: until it is answered for, the shares of its namespace and user are what the plan
// makes them. left is what finds no room on the state of index, as those that are like it find none; nil: all has room.
func (b *Broker) Planned(t *Lease, index uint64, left *structs.Evaluation, shares Shares) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.itemOf(t)
	if it == nil {
		return
	}
	b.gates.setShares(it, shares)
	defer b.blocked.explainNext(it.entry.group)
	if left == nil || it.entry.gone {
		return
	}
	if !t.Explain {
		b.blocked.tried(it.entry.group, index, left, t.LendRound)
		b.blocked.refreshAll(it.entry.group)
	}
	if !it.entry.entitled { // what waits on keeps the time
		b.blocked.expectExplain(it.entry, t.ExplainAt)
	}
}

// maxRefusals is how often in a row a request is decided anew at once, because its plan was
// refused; then it backs off for a moment.
const maxRefusals = 16

// Answered records what became of a request's plan: it has been committed whole, or, with
// again set, is to be decided anew (then so are the others that were tried beside it),
// or, with failed set, could not be made or committed: it is tried again later, later
// each time, until it has failed too often.
func (b *Broker) Answered(t *Lease, again, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.itemOf(t)
	if it == nil {
		return
	}
	w := it.entry
	if again || failed {
		b.blocked.tryAll(it.pool)
		b.gates.setShares(it, b.gates.world())
	}
	switch {
	case w.raises != "" && again:
		b.blocked.raiseAgain(w.raises, b.latest())
		b.gates.poke()
	case w.gone:
	case again && w.refusals < maxRefusals:
		w.refusals++
		b.blocked.back(w)
	case again: // the others are not to wait for it, nor the pass to spin
		w.failures, w.refusals = 1, 0
		b.after(&w.timer, b.opts.FirstDelay, func() { b.blocked.back(w) })
	case !failed: // the feed brings what has become of it; until then it is not tried
		w.failures = 1
		b.after(&w.timer, b.opts.FirstDelay, func() { b.blocked.back(w) })
	case w.failures+1 >= b.opts.DeliveryLimit:
		b.chores.fail(w.eval, b.opts.DeliveryLimit)
		b.blocked.unblock(w.eval.ID)
	default:
		w.failures++
		b.after(&w.timer, b.backOffTime(w.failures), func() { b.blocked.back(w) })
	}
	b.conclude(it)
}

package queue

import (
	"cmp"
	"maps"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Where workflows lend by shares, or in order, what waits is tried in rounds, in each of which more is lent to it (semantics part 5): first all that is
// open, within its share; then, when nothing is open any more, what found no room, with what the others have left of theirs. A group that comes to be
// open again begins with the first round.

// laterRound is the round of lending in which a group is to be tried, once all has been tried in an earlier one that had been registered by an index.
type laterRound struct {
	round int
	after uint64
}

// tryLater has a group that was tried in a round tried in the next one, if there is one for it.
func (b *blocked) tryLater(g *group, round int) {
	if g.key.entitled || round >= g.requestKey.LendRounds {
		delete(b.gates.later, g)
		return
	}
	b.gates.later[g] = laterRound{round + 1, b.latest()}
	b.gates.poke()
}

// roundOf returns the round of lending in which a blocked evaluation was tried last that is there anew. nil: it was not there, so a worker has tried it
// in the first.
func (b *blocked) roundOf(was *entry) int {
	if was == nil || was.group.open {
		return 1
	}
	if next, pending := b.gates.later[was.group]; pending {
		return next.round - 1
	}
	return max(1, was.group.requestKey.LendRounds)
}

// nextLater returns the first entry that is to be tried in the earliest of the later rounds, of all pools in which nothing is pending that must be tried
// before it; nil: there is none.
func (b *Broker) nextLater() (best *entry, round int) {
	for g, of := range b.gates.later { // order does not matter: ranks differ
		if b.blocked.groups[g.key] != g {
			delete(b.gates.later, g)
			continue
		}
		p := b.gates.pool(g.key.pool)
		head := b.gates.head(p, p.gate)
		if p.gate.some(func(it *item) bool { return it.eval.CreateIndex <= of.after }) {
			continue
		}
		for entries := range g.users {
			w, some := entries.first()
			if !some || head != nil && b.gates.goesBefore(head, w.rankKey(), w.eval) {
				continue
			}
			if best == nil || of.round < round || of.round == round && w.before(b.gates, best) {
				best, round = w, of.round
			}
		}
	}
	return best, round
}

// lends takes in a change of a workflow. If it begins to lend, or ends, what waits of those whom it names is like no other that waits.
func (b *blocked) lends(snap *state.Snapshot, was, now *structs.WorkflowRun) {
	before, after := lending(was), lending(now)
	if before != nil && after != nil || before == nil && after == nil { // whom it names stays as it is while it runs
		return
	}
	claim := cmp.Or(before, after)
	for id := range maps.Clone(b.ofJob) { // order does not matter: each has its own place
		if job := snap.Job(nil, id.Namespace, id.ID); job != nil && scheduler.LendsTo(snap.World(), claim, job) {
			b.reposition(snap, id, true)
		}
	}
}

// lending returns what a run lends from; nil: it lends nothing.
func lending(r *structs.WorkflowRun) *structs.WorkflowClaim {
	if r == nil {
		return nil
	}
	if c := r.Claim(); c != nil && c.Lends() {
		return c
	}
	return nil
}

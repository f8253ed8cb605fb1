package queue

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Running allocations are raised by the queue pass, when nothing is left to be tried (semantics part 2, "Raise"): the queue knows whose
// may be, since cells of their owner came free, or room beside what is reserved for workflows. A raise has a rank after all that is entitled, and before all else.

// noteRaises notes of whom something may be raised after a commit.
func (b *blocked) noteRaises(r *releases, index uint64) {
	o, w := &b.owners, r.snap.World()
	names := maps.Clone(r.owners)
	if r.allOwners || len(r.unbound) > 0 { // a cell that one unbinds another may bind
		names = maps.Clone(o.owning)
	}
	maps.Copy(names, b.borrowers(r))
	for name := range r.mayRaise() { // order does not matter: a set
		names[scheduler.ProjectOwner(name)] = true
	}
	for name := range names { // nor here: each has its own place
		if scheduler.MayRaise(w, name) {
			b.raiseAgain(name, index)
			b.gates.poke()
		}
	}
}

// borrowers returns the owners of whom what borrows from a workflow may now be able to stay by a claim: room came free on a node of theirs, or a reservation
// ended there, or licenses came free.
func (b *blocked) borrowers(r *releases) map[string]bool {
	w := r.snap.World()
	names, projects := map[string]bool{}, w.Slots().Projects()
	switch {
	case len(b.owners.owning)+len(projects) == 0: // nothing can be raised
		return names
	case len(r.licenses) > 0 || len(r.nodes) > maxPositions: // anybody may be among them
		maps.Copy(names, b.owners.owning)
		for _, name := range projects {
			names[scheduler.ProjectOwner(name)] = true
		}
		return names
	}
	for id := range r.nodes { // order does not matter: a set
		for _, name := range scheduler.BorrowersBeside(w, id) {
			names[name] = true
		}
	}
	return names
}

// raiseAgain has a pass look at what of an owner may be raised, on a state at least that new, once a gate has moved.
func (b *blocked) raiseAgain(owner string, index uint64) {
	b.owners.raises[owner] = max(b.owners.raises[owner], index)
	b.gates.raises = true
}

// DueRaises returns the owners of whom something may be raised, each once until cells come free again. again reports that there are
// others, of whom the state of index does not show it yet.
func (b *Broker) DueRaises(index uint64) (due []string, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled || b.paused {
		return nil, false
	}
	o := &b.blocked.owners
	for _, name := range slices.Sorted(maps.Keys(o.raises)) {
		if o.raises[name] > index {
			again = true
			continue
		}
		delete(o.raises, name)
		due = append(due, name)
	}
	b.gates.raises = len(o.raises) > 0
	return due, again
}

// LeaseRaise leases an evaluation to the pass that is not in the state, and that is to raise allocations of its job. nil: the job is
// being decided, or something entitled is to be tried first; its owner is due again then.
func (b *Broker) LeaseRaise(e *structs.Evaluation, owner string) *Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled || b.paused {
		return nil
	}
	w := &entry{eval: e, gone: true, raises: owner}
	if w.position = b.blocked.positionOfEntry(b.snapshot(), w); w.pool == "" {
		return nil
	}
	p := b.gates.pool(w.pool)
	ahead := firstOpen(p)
	head := b.gates.head(p, p.gate)
	if b.serial[e.Job()] != nil || ahead != nil && ahead.before(b.gates, w) || head != nil && b.gates.goesBefore(head, w.rankKey(), w.eval) {
		b.blocked.raiseAgain(owner, b.latest())
		b.gates.tidy(w.pool)
		return nil
	}
	return b.leaseEntry(w, 0)
}

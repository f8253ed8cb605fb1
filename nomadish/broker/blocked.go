package broker

import (
	"github.com/nomadish/nomadish/structs"
)

// blocked keeps the evaluations that wait for room, and when room last came free in
// each class of nodes: a waiter that was decided on an older state has missed it.
type blocked struct {
	evals map[string]*structs.Evaluation
	freed map[string]uint64 // class → index
}

func newBlocked() *blocked {
	return &blocked{evals: map[string]*structs.Evaluation{}, freed: map[string]uint64{}}
}

// helps tells whether room in a class may be what an evaluation waits for.
func helps(e *structs.Evaluation, class string) bool {
	if e.EscapedComputedClass {
		return true
	}
	fits, known := e.ClassEligibility[class]
	return fits || !known
}

// add takes a blocked evaluation in; true: what it waits for came free already,
// after the state that it was decided on.
func (b *blocked) add(e *structs.Evaluation) (missed bool) {
	for class, index := range b.freed { // order does not matter: any one of them decides
		if index > e.SnapshotIndex && helps(e, class) {
			return true
		}
	}
	b.evals[e.ID] = e
	return false
}

// free notes that room came free and gives the evaluations that it may help, which
// then wait no longer.
func (b *blocked) free(class string, index uint64) []*structs.Evaluation {
	b.freed[class] = max(b.freed[class], index)
	var woken []*structs.Evaluation
	for id, e := range b.evals { // order does not matter: the broker sorts by priority
		if helps(e, class) && index > e.SnapshotIndex {
			woken = append(woken, e)
			delete(b.evals, id)
		}
	}
	return woken
}

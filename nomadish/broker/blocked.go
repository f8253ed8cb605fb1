package broker

import (
	"container/list"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// blocked keeps the evaluations that wait for room, and when room last came free in
// each class of nodes: a waiter that was decided on an older state has missed it.
//
// Waiters are kept in groups that the same classes can help: thousands of waiters
// are a handful of groups, so that room which helps none of them costs next to
// nothing.
type blocked struct {
	groups map[signature]*group
	of     map[string]*group      // by evaluation ID
	due    map[string]*time.Timer // by evaluation ID, of those that are to be looked at again in time
	freed  *list.List             // of freedClass, latest first
	at     map[string]*list.Element
	floor  uint64 // releases up to this index are not all remembered: any class may have had one
}

// signature tells groups apart.
type signature [sha256.Size]byte

// group is the waiters that the same classes can help.
type group struct {
	sign  signature
	one   *structs.Evaluation // any of them: says what helps
	evals map[string]*structs.Evaluation
}

// freedClass says when room last came free in a class.
type freedClass struct {
	class string
	index uint64
}

// maxFreed bounds the classes whose last release is remembered one by one. The latest
// of those forgotten counts for every class.
const maxFreed = 4096

func newBlocked() *blocked {
	return &blocked{
		groups: map[signature]*group{}, of: map[string]*group{}, due: map[string]*time.Timer{},
		freed: list.New(), at: map[string]*list.Element{},
	}
}

func (b *blocked) len() int { return len(b.of) }

// helps tells whether room in a class may be what an evaluation waits for. A class
// that it has not met may always be ("" is any class).
func helps(e *structs.Evaluation, class string) bool {
	if e.EscapedComputedClass || class == "" {
		return true
	}
	fits, known := e.ClassEligibility[class]
	return fits || !known
}

func sign(e *structs.Evaluation) signature {
	h := sha256.New()
	if e.EscapedComputedClass {
		h.Write([]byte{1})
		return signature(h.Sum(nil))
	}
	for _, class := range slices.Sorted(maps.Keys(e.ClassEligibility)) {
		if !e.ClassEligibility[class] {
			h.Write([]byte(class))
			h.Write([]byte{0})
		}
	}
	return signature(h.Sum(nil))
}

// missed tells whether room that may help came free after the state that the
// evaluation was decided on.
func (b *blocked) missed(e *structs.Evaluation) bool {
	for at := b.freed.Front(); at != nil; at = at.Next() {
		f := at.Value.(freedClass) //nolint:forcetypeassert // the list holds nothing else
		if f.index <= e.SnapshotIndex {
			return false // and so are all after it
		}
		if helps(e, f.class) {
			return true
		}
	}
	return b.floor > e.SnapshotIndex
}

// add takes a blocked evaluation in; true: it need not wait, see missed.
func (b *blocked) add(e *structs.Evaluation) (missed bool) {
	b.remove(e.ID)
	if b.missed(e) {
		return true
	}
	s := sign(e)
	g := b.groups[s]
	if g == nil {
		g = &group{sign: s, one: e, evals: map[string]*structs.Evaluation{}}
		b.groups[s] = g
	}
	g.evals[e.ID] = e
	b.of[e.ID] = g
	return false
}

// remove drops an evaluation that waits no longer.
func (b *blocked) remove(id string) {
	g := b.of[id]
	if g == nil {
		return
	}
	delete(b.of, id)
	if t := b.due[id]; t != nil {
		t.Stop()
		delete(b.due, id)
	}
	delete(g.evals, id)
	if len(g.evals) == 0 {
		delete(b.groups, g.sign)
	}
}

// stop ends all timers.
func (b *blocked) stop() {
	for _, t := range b.due { // order does not matter: all are stopped
		t.Stop()
	}
	clear(b.due)
}

// free notes that room came free in a class ("": any) and gives the evaluations that
// it may help, which then wait no longer.
func (b *blocked) free(class string, index uint64) []*structs.Evaluation {
	b.note(class, index)
	var woken []*structs.Evaluation
	for _, g := range b.groups { // order does not matter: the broker sorts by priority
		if !helps(g.one, class) {
			continue
		}
		for id, e := range g.evals { // order does not matter, as above
			if index > e.SnapshotIndex {
				woken = append(woken, e)
				b.remove(id)
			}
		}
	}
	return woken
}

// note remembers a release. Releases come in the order of their indexes.
func (b *blocked) note(class string, index uint64) {
	if at, ok := b.at[class]; ok {
		b.freed.Remove(at)
	}
	b.at[class] = b.freed.PushFront(freedClass{class: class, index: index})
	if b.freed.Len() > maxFreed {
		oldest := b.freed.Remove(b.freed.Back()).(freedClass) //nolint:forcetypeassert // the list holds nothing else
		delete(b.at, oldest.class)
		b.floor = oldest.index
	}
}

// Package allocwatch wakes those who wait for changes of allocations: of one, of those of a node, a job or an evaluation, or of
// those whose IDs begin alike.
//
// The package stands apart because it needs nothing of the state but two tables of allocations to compare, and so that its
// lists are changed here alone. It knows no channels of other tables: nomadish/state waits for both together.
package allocwatch

import (
	"iter"
	"sync"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
)

// Hub wakes those who wait for changes of allocations. A waiter joins when it begins
// to wait and leaves when it ends, so there is nothing here for what nobody waits
// for. Its methods are called under its lock. The writer publishes under it: whoever joins has seen all before.
type Hub struct {
	sync.Mutex
	waiting map[Subject]*link
	lengths [MaxPrefix + 1]int // waiting for prefixes, by their length
}

// MaxPrefix bounds a watched prefix; what is longer is watched by so much of it.
const MaxPrefix = indexkey.UUIDLen

// Kind is what a waiter waits for.
type Kind uint8

// The kinds.
const (
	// The first are the alloctable.GroupKinds.
	Node   = Kind(alloctable.ByNode)
	Job    = Kind(alloctable.ByJob)
	Eval   = Kind(alloctable.ByEval)
	Alloc  = Kind(alloctable.GroupKinds)
	Prefix = Alloc + 1 // of allocation IDs
)

// Subject is what a waiter waits for: one allocation, those of a node, a job or an
// evaluation, or those whose ID begins alike.
type Subject struct {
	Kind Kind
	Key  string
}

// Interest is a subject as a reader saw it.
type Interest struct {
	Subject
	Seen *alloctable.Table
}

// Waiter is one WatchSet that is being waited on.
type Waiter struct {
	Woken chan struct{} // closed once, under the hub's lock
	done  bool
	links []*link
}

// link is one subject of a waiter, in the list of those that wait for it.
type link struct {
	Subject
	waiter     *Waiter
	prev, next *link
}

// Join begins to wait. Nil: something has changed already.
func (h *Hub) Join(now *alloctable.Table, interests []Interest) *Waiter {
	for _, in := range interests {
		if in.moved(now) {
			return nil
		}
	}
	w := &Waiter{Woken: make(chan struct{})}
	for _, in := range interests {
		l := &link{Subject: in.Subject, waiter: w, next: h.waiting[in.Subject]}
		if l.next != nil {
			l.next.prev = l
		}
		if h.waiting == nil {
			h.waiting = map[Subject]*link{}
		}
		h.waiting[in.Subject] = l
		if in.Kind == Prefix {
			h.lengths[len(in.Key)]++
		}
		w.links = append(w.links, l)
	}
	return w
}

// Leave ends waiting.
func (h *Hub) Leave(w *Waiter) {
	for _, l := range w.links {
		if l.next != nil {
			l.next.prev = l.prev
		}
		switch {
		case l.prev != nil:
			l.prev.next = l.next
		case l.next != nil:
			h.waiting[l.Subject] = l.next
		default:
			delete(h.waiting, l.Subject)
		}
		if l.Kind == Prefix {
			h.lengths[len(l.Key)]--
		}
	}
	w.links = nil
}

// Idle reports whether nobody waits.
func (h *Hub) Idle() bool { return len(h.waiting) == 0 && h.lengths == [MaxPrefix + 1]int{} }

// wake wakes those who wait for a subject.
func (h *Hub) wake(s Subject) {
	for l := h.waiting[s]; l != nil; l = l.next {
		if !l.waiter.done {
			l.waiter.done = true
			close(l.waiter.Woken)
		}
	}
}

// Notify wakes those whom a commit concerns: the groups that it touched, and the IDs of the allocations that it changed.
func (h *Hub) Notify(was, now *alloctable.Table, groups []alloctable.GroupRef, changed iter.Seq[string]) {
	if h.Idle() {
		return
	}
	for _, g := range groups {
		s := Subject{Kind(g.Kind), g.Name}
		in := Interest{s, was}
		if h.waiting[s] != nil && in.moved(now) { // it may have come and gone
			h.wake(s)
		}
	}
	for id := range changed {
		h.wakeAlloc(id)
	}
}

// wakeAlloc wakes those that wait for an allocation, or for all with a prefix of its ID.
func (h *Hub) wakeAlloc(id string) {
	h.wake(Subject{Alloc, id})
	for n := range min(len(id), MaxPrefix) + 1 {
		if h.lengths[n] > 0 {
			h.wake(Subject{Prefix, id[:n]})
		}
	}
}

// maxCompared bounds how many rows are compared to see whether a prefix has changed.
const maxCompared = 1000

// moved reports whether the subject is another in a later table.
func (in *Interest) moved(now *alloctable.Table) bool {
	if in.Seen == nil {
		return true // it was waited for before; whether it changed since is not known
	}
	if in.Seen == now {
		return false
	}
	switch in.Kind {
	case Alloc:
		return in.Seen.Get(in.Key) != now.Get(in.Key)
	case Prefix:
		return prefixMoved(in.Seen, now, in.Key)
	case Node, Job, Eval:
	}
	return !in.Seen.SameGroup(now, alloctable.GroupKind(in.Kind), in.Key)
}

// prefixMoved reports whether rows with a prefix differ; too many count as different.
func prefixMoved(was, now *alloctable.Table, prefix string) bool {
	if prefix == "" {
		return true
	}
	var before []*alloctable.Row
	was.Walk(prefix, false, func(r *alloctable.Row) bool {
		before = append(before, r)
		return len(before) <= maxCompared
	})
	if len(before) > maxCompared {
		return true
	}
	same := 0
	now.Walk(prefix, false, func(r *alloctable.Row) bool {
		if same == len(before) || before[same] != r {
			same = -1
			return false
		}
		same++
		return true
	})
	return same != len(before)
}

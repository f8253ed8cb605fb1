package state

import (
	"sync"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
)

// hub wakes those who wait for changes of allocations. A waiter joins when it begins
// to wait and leaves when it ends, so there is nothing here for what nobody waits
// for. The writer publishes under its lock: whoever joins has seen all before.
type hub struct {
	mu      sync.Mutex
	waiting map[subject]*link
	lengths [maxPrefix + 1]int // waiting for prefixes, by their length
}

// maxPrefix bounds a watched prefix; what is longer is watched by so much of it.
const maxPrefix = indexkey.UUIDLen

// subjectKind is what a waiter waits for.
type subjectKind uint8

const (
	// The first are the alloctable.GroupKinds.
	aNode   = subjectKind(alloctable.ByNode)
	aJob    = subjectKind(alloctable.ByJob)
	anEval  = subjectKind(alloctable.ByEval)
	anAlloc = subjectKind(alloctable.GroupKinds)
	aPrefix = anAlloc + 1 // of allocation IDs
)

// subject is what a waiter waits for: one allocation, those of a node, a job or an
// evaluation, or those whose ID begins alike.
type subject struct {
	kind subjectKind
	key  string
}

// interest is a subject as a reader saw it.
type interest struct {
	subject
	seen *alloctable.Table
}

// waiter is one WatchSet that is being waited on.
type waiter struct {
	woken chan struct{} // closed once, under the hub's lock
	done  bool
	links []*link
}

// link is one subject of a waiter, in the list of those that wait for it.
type link struct {
	subject
	waiter     *waiter
	prev, next *link
}

// join begins to wait. Nil: something has changed already.
func (h *hub) join(now *view, interests []interest) *waiter {
	for _, in := range interests {
		if in.moved(now.allocs) {
			return nil
		}
	}
	w := &waiter{woken: make(chan struct{})}
	for _, in := range interests {
		l := &link{subject: in.subject, waiter: w, next: h.waiting[in.subject]}
		if l.next != nil {
			l.next.prev = l
		}
		if h.waiting == nil {
			h.waiting = map[subject]*link{}
		}
		h.waiting[in.subject] = l
		if in.kind == aPrefix {
			h.lengths[len(in.key)]++
		}
		w.links = append(w.links, l)
	}
	return w
}

// leave ends waiting.
func (h *hub) leave(w *waiter) {
	for _, l := range w.links {
		if l.next != nil {
			l.next.prev = l.prev
		}
		switch {
		case l.prev != nil:
			l.prev.next = l.next
		case l.next != nil:
			h.waiting[l.subject] = l.next
		default:
			delete(h.waiting, l.subject)
		}
		if l.kind == aPrefix {
			h.lengths[len(l.key)]--
		}
	}
	w.links = nil
}

// wake wakes those who wait for a subject.
func (h *hub) wake(s subject) {
	for l := h.waiting[s]; l != nil; l = l.next {
		if !l.waiter.done {
			l.waiter.done = true
			close(l.waiter.woken)
		}
	}
}

// notify wakes those whom a commit concerns.
func (h *hub) notify(was, now *view, groups []alloctable.GroupRef, feed []Changes) {
	if len(h.waiting) == 0 {
		return
	}
	for _, g := range groups {
		s := subject{subjectKind(g.Kind), g.Name}
		in := interest{s, was.allocs}
		if h.waiting[s] != nil && in.moved(now.allocs) { // it may have come and gone
			h.wake(s)
		}
	}
	for _, c := range feed {
		for i := range c.Items {
			if c.Items[i].Kind == KindAlloc {
				h.wakeAlloc(c.Items[i].Key)
			}
		}
	}
}

// wakeAlloc wakes those that wait for an allocation, or for all with a prefix of its ID.
func (h *hub) wakeAlloc(id string) {
	h.wake(subject{anAlloc, id})
	for n := range min(len(id), maxPrefix) + 1 {
		if h.lengths[n] > 0 {
			h.wake(subject{aPrefix, id[:n]})
		}
	}
}

// maxCompared bounds how many rows are compared to see whether a prefix has changed.
const maxCompared = 1000

// moved reports whether the subject is another in a later table.
func (in *interest) moved(now *alloctable.Table) bool {
	if in.seen == nil {
		return true // it was waited for before; whether it changed since is not known
	}
	if in.seen == now {
		return false
	}
	switch in.kind {
	case anAlloc:
		return in.seen.Get(in.key) != now.Get(in.key)
	case aPrefix:
		return prefixMoved(in.seen, now, in.key)
	case aNode, aJob, anEval:
	}
	return !in.seen.SameGroup(now, alloctable.GroupKind(in.kind), in.key)
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

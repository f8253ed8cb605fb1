package queue

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// It is counted why a request waits when nothing is to be decided: anew where what its evaluation states of that has grown old, and for the first time
// where only what is entitled of it was looked at. It states nothing then, and will not be tried where another one speaks for its group.

// expectExplain has it counted at a time why a request waits, whatever was freed.
func (b *blocked) expectExplain(w *entry, at time.Time) {
	if at.Equal(w.explainAt) {
		return
	}
	w.explained()
	b.aged.remove(w)
	if w.explainAt = at; at.IsZero() {
		return
	}
	b.after(&w.explains, max(0, at.Sub(b.gates.opts.Clock.Now())), func() {
		b.aged.put(w)
		b.gates.poke()
	})
}

// explained has it be counted no more why it waits, until that is expected again.
func (e *entry) explained() {
	if e.explains != nil {
		e.explains.Stop()
		e.explains = nil
	}
	e.explainAt = time.Time{}
}

// explainDue returns when it is to be counted anew why a request waits, as it was decided without that; zero: never.
func (e *entry) explainDue() (at time.Time) {
	if e != nil {
		at = e.explainAt
	}
	return at
}

// unstated reports whether nothing is stated of why a request waits, as only what is entitled of it was looked at.
func (e *entry) unstated() bool { return e.eval.SnapshotIndex == 0 && !e.entitled && !e.stated }

// expectUnstated has a request that states nothing explained once its group was tried.
func (b *blocked) expectUnstated(w *entry) {
	if w.unstated() && w.group.unstated == nil && !b.gates.opts.Unread {
		w.group.unstated = &heap[*entry]{before: within, index: func(e *entry) *int { return &e.inUnstated }}
	}
}

// put takes an entry in that waits to be tried, or moves it to where it belongs now.
func (of *entries) put(w *entry) {
	of.heap.put(w)
	if of.group.unstated != nil && w.unstated() {
		of.group.unstated.put(w)
	}
}

// remove takes an entry out, if it is in.
func (of *entries) remove(w *entry) {
	of.heap.remove(w)
	if of.group.unstated != nil {
		of.group.unstated.remove(w)
	}
}

// explainAfter has a request explained that states nothing, and that could not be while its job was being decided.
func (b *blocked) explainAfter(w *entry) {
	if unstated := w.group.unstated; unstated != nil && !w.apart && w.unstated() {
		unstated.put(w)
		b.explainNext(w.group)
	}
}

// explainNext has it counted why the first of a group waits that states nothing of that, unless the group must be tried. The others follow one by one, once
// that is known: it holds for most of them, too.
func (b *blocked) explainNext(g *group) {
	if g == nil || g.open || g.unstated == nil {
		return
	}
	if w, some := g.unstated.first(); some && w.inAged == 0 && w.explainAt.IsZero() {
		b.aged.put(w)
		b.gates.poke()
	}
}

// firstAged returns the first request of which it is to be counted anew why it waits; nil: there is none. What is to be decided soon, or is being decided,
// is explained with that.
func (b *blocked) firstAged(decided func(job structs.NamespacedID) bool) *entry {
	for w, some := b.aged.first(); some; w, some = b.aged.first() {
		if !w.apart && !w.group.open && !decided(w.eval.Job()) {
			return w
		}
		b.aged.remove(w)
		w.explainAt = time.Time{}
		if unstated := w.group.unstated; unstated != nil && !w.group.open {
			unstated.remove(w) // until its job is decided; when room comes free, it still goes before others
		}
		b.explainNext(w.group)
	}
	return nil
}

package forecast

import (
	"container/heap"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
)

// timeline is virtual time, with what is to be done in it: in the order of its time, and of what is due at the same time in the order in which it
// was requested. It is the clock of the leader's parts.
type timeline struct {
	now  time.Time
	seq  uint64
	todo events
}

// event is something that is to be done.
type event struct {
	at  time.Time
	seq uint64
	do  func() // nil: it was stopped, or done
	// in is the list that it is in, place its place there. What is stopped leaves it at once: most is, long before its time.
	in    *events
	place int
}

// Stop implements clock.Timer.
func (e *event) Stop() bool {
	if e.do == nil {
		return false
	}
	e.do = nil
	heap.Remove(e.in, e.place)
	return true
}

// Now implements clock.Clock.
func (t *timeline) Now() time.Time { return t.now }

// AfterFunc implements clock.Clock.
func (t *timeline) AfterFunc(d time.Duration, f func()) clock.Timer { return t.at(t.now.Add(d), f) }

// at has something done at a time; at once if that has passed.
func (t *timeline) at(when time.Time, do func()) *event {
	if when.Before(t.now) {
		when = t.now
	}
	t.seq++
	e := &event{at: when, seq: t.seq, do: do, in: &t.todo}
	heap.Push(&t.todo, e)
	return e
}

// advance moves the time on to what is to be done next, and does all that is due then. It returns false if there is nothing, or not before the end.
func (t *timeline) advance(end time.Time) bool {
	if len(t.todo) == 0 || t.todo[0].at.After(end) {
		return false
	}
	t.now = t.todo[0].at
	for len(t.todo) > 0 && !t.todo[0].at.After(t.now) {
		e := heap.Pop(&t.todo).(*event) // the heap contains nothing else
		do := e.do
		e.do = nil
		do()
	}
	return true
}

// alarm is an event that is set again and again; only the last setting counts.
type alarm struct{ e *event }

// set has the time moved on to when at the latest: what is to be done then is done whenever it moves.
func (a *alarm) set(t *timeline, when time.Time) {
	if a.e != nil && a.e.do != nil {
		if a.e.at.Equal(when) {
			return
		}
		a.e.Stop()
	}
	a.e = t.at(when, func() {})
}

// events implements heap.Interface.
type events []*event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *events) Push(x any) {
	e := x.(*event) // the heap contains nothing else
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *events) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

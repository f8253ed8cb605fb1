package simulation

import (
	"container/heap"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
)

// epoch is when every simulation begins.
var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// timeline is virtual time: what is to be done, in the order of its time, and of what is due
// at the same time in the order in which it was requested.
type timeline struct {
	now  time.Duration // since epoch
	seq  uint64
	todo events
}

// event is something that is to be done.
type event struct {
	at   time.Duration
	seq  uint64
	what string // for the trace
	who  int    // likewise: a replica, a node; -1: nobody
	do   func() // nil: stopped
}

// Stop implements clock.Timer.
func (e *event) Stop() bool {
	was := e.do != nil
	e.do = nil
	return was
}

func (t *timeline) after(d time.Duration, what string, who int, do func()) *event {
	t.seq++
	e := &event{at: t.now + max(d, 0), seq: t.seq, what: what, who: who, do: do}
	heap.Push(&t.todo, e)
	return e
}

// next takes the next event out and moves the time on to it; nil: there is none.
func (t *timeline) next() *event {
	for len(t.todo) > 0 {
		e := heap.Pop(&t.todo).(*event) // the heap contains nothing else
		if e.do != nil {
			t.now = e.at
			return e
		}
	}
	return nil
}

// events implements heap.Interface.
type events []*event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *events) Push(x any) { *h = append(*h, x.(*event)) } // the heap contains nothing else

// Pop implements heap.Interface.
func (h *events) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// wall is the clock of a machine that goes wrong by a skew.
type wall struct {
	time *timeline
	skew *time.Duration
	// done is called after each timer; nil: nobody wants to know.
	done func()
}

// Now implements clock.Clock.
func (w *wall) Now() time.Time { return epoch.Add(w.time.now + *w.skew) }

// AfterFunc implements clock.Clock. It measures time as it goes by: a clock that is set does
// not move timers.
func (w *wall) AfterFunc(d time.Duration, f func()) clock.Timer {
	return w.time.after(d, "timer", -1, func() {
		f()
		if w.done != nil {
			w.done()
		}
	})
}

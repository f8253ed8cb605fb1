package telemetry

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Timer observes how long something takes, in milliseconds. It costs little more than to look at the clock: quantiles are found
// when somebody requests them. It is safe for use by many goroutines.
type Timer struct {
	family *Family

	mu        sync.Mutex
	seen      observed
	now, last Window
}

var timers []*Timer

// wanted reports whether anything reads the timers.
var wanted atomic.Bool

// forward takes each observation as well; nil: nobody does.
var forward atomic.Pointer[func(f *Family, ms float64)]

// Forward has each observation of each timer given to a function as well; nil ends that.
func Forward(to func(f *Family, ms float64)) {
	if to == nil {
		forward.Store(nil)
		return
	}
	forward.Store(&to)
}

// NewTimer returns a new timer of the family of that name. As [NewCount] it is for variables of packages.
func NewTimer(name string) *Timer {
	f := Named(name)
	if f.Kind != Summary {
		panic("telemetry: " + name + " is no summary")
	}
	t := &Timer{family: f}
	timers = append(timers, t)
	return t
}

// Since observes the time since start. It does nothing on nil, which is the timer of what is not timed, and before there is a
// hub.
func (t *Timer) Since(start time.Time) {
	if t == nil || !wanted.Load() {
		return
	}
	now := time.Now()
	ms := float64(now.Sub(start)) / float64(time.Millisecond)
	t.observe(now, ms)
	if to := forward.Load(); to != nil {
		(*to)(t.family, ms)
	}
}

// If returns the timer, or nil if nothing is to be timed.
func (t *Timer) If(wanted bool) *Timer {
	if !wanted {
		return nil
	}
	return t
}

func (t *Timer) observe(now time.Time, ms float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	t.now.add(ms)
	t.seen.add(now, ms)
}

// digest returns what is shown now; false: it was never used.
func (t *Timer) digest(now time.Time) (digest, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.digest(now), t.seen.count > 0
}

// windowLength is how long observations count in quantiles, and how long a window of /v1/metrics in JSON is.
const windowLength = 10 * time.Second

// Window is what was observed in a while.
type Window struct {
	number       int64 // of the while, since 1970
	Count        int
	Sum, Squares float64
	Min, Max     float64
}

func (w *Window) add(v float64) {
	if w.Count == 0 {
		w.Min, w.Max = v, v
	}
	w.Count++
	w.Sum += v
	w.Squares += v * v
	w.Min, w.Max = math.Min(w.Min, v), math.Max(w.Max, v)
}

// turn begins another window if it is time. The lock is held.
func (t *Timer) turn(now time.Time) {
	number := now.UnixNano() / int64(windowLength)
	if number == t.now.number {
		return
	}
	t.last = Window{number: number - 1}
	if t.now.number == number-1 {
		t.last = t.now
	}
	t.now = Window{number: number}
}

// window returns the last window that is over; the one that is not if nothing was observed in that.
func (t *Timer) window(now time.Time) Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	if t.last.Count > 0 {
		return t.last
	}
	return t.now
}

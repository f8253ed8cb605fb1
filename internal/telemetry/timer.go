package telemetry

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Timer observes how long something takes, in milliseconds. It costs little more than to look at the clock: quantiles are found
// when somebody asks for them. It is safe for use by many goroutines.
type Timer struct {
	family *Family
	desc   *prometheus.Desc

	mu        sync.Mutex
	count     uint64
	sum       float64
	latest    []observation // the latest, at most maxLatest
	next      int           // where the next goes once there are so many
	now, last Window
}

type observation struct {
	at int64 // Unix nanoseconds
	ms float64
}

// maxLatest is how many observations quantiles are of, at most.
const maxLatest = 512

var timers []*Timer

// wanted says that somebody looks at the timers.
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
	t := &Timer{family: f, desc: prometheus.NewDesc(f.Prometheus(), f.Help, nil, nil)}
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

func (t *Timer) observe(now time.Time, ms float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	t.now.add(ms)
	t.count++
	t.sum += ms
	o := observation{now.UnixNano(), ms}
	if len(t.latest) < maxLatest {
		t.latest = append(t.latest, o)
		return
	}
	t.latest[t.next] = o
	t.next = (t.next + 1) % maxLatest
}

// collect gives the timer as Prometheus' client takes it; false: it was never used.
func (t *Timer) collect(now time.Time) (prometheus.Metric, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return nil, false
	}
	since := now.Add(-windowLength).UnixNano()
	var recent []float64
	for _, o := range t.latest {
		if o.at >= since {
			recent = append(recent, o.ms)
		}
	}
	slices.Sort(recent)
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		quantiles[q] = math.NaN() // as Prometheus' client has it when nothing was observed
		if n := len(recent); n > 0 {
			quantiles[q] = recent[min(n-1, int(q*float64(n)))]
		}
	}
	return prometheus.MustNewConstSummary(t.desc, t.count, t.sum, quantiles), true
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

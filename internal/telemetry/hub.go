package telemetry

import (
	"sync"
	"time"
)

// Source adds the values of its series to a batch. It is called by one goroutine at a time, and takes no longer than the
// caller of /v1/metrics can wait.
type Source func(*Batch)

// Options configure a hub.
type Options struct {
	Host      string            // the label host; empty: there is none
	Allow     func(string) bool // reports whether a family is shown, by its name with Prefix; nil: all are
	MaxSeries int               // of each subject
	Every     time.Duration     // values that are younger than this are given once more
}

// Hub derives the values of its sources when they are requested. It is safe for use by many goroutines.
type Hub struct {
	opts   Options
	timers []*Timer
	pushed *Pushed

	mu      sync.Mutex
	sources []Source
	last    *Batch
	at      time.Time
	took    time.Duration
}

// What is derived is not derived again before a hundred times as long has passed as it took, so that it costs no more than a
// hundredth of a core. It is not older than maxAge for that reason.
const (
	restAfter = 100
	maxAge    = 10 * time.Second
)

// NewHub returns a new hub without sources.
func NewHub(o Options) *Hub {
	if o.Allow == nil {
		o.Allow = func(string) bool { return true }
	}
	wanted.Store(true)
	return &Hub{opts: o, timers: timers, pushed: newPushed()}
}

// Host returns the value of the label host; empty: there is none.
func (h *Hub) Host() string { return h.opts.Host }

// Pushed returns the sink for what is pushed to go-metrics.
func (h *Hub) Pushed() *Pushed { return h.pushed }

// Add adds a source.
func (h *Hub) Add(s Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources, h.last = append(h.sources, s), nil
}

// Collect returns the values of all sources, without those of families that are not shown. They are at most Options.Every old,
// or older by what keeps deriving them cheap. The batch must not be changed.
func (h *Hub) Collect() *Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := time.Now()
	if h.last != nil && begun.Sub(h.at) < max(h.opts.Every, min(restAfter*h.took, maxAge)) {
		return h.last
	}
	b := NewBatch(h.opts.MaxSeries)
	for _, s := range h.sources {
		s(b)
	}
	for _, c := range counts {
		b.Add(c.family, float64(c.n.Load()), nil)
	}
	b.account()
	shown := b.order[:0]
	for _, f := range b.order {
		if h.opts.Allow(Prefix + f.Name) {
			shown = append(shown, f)
		}
	}
	b.order = shown
	h.last, h.at = b, time.Now()
	h.took = h.at.Sub(begun)
	return b
}

// Windows calls yield with what each timer has observed of late, but for those that have observed nothing.
func (h *Hub) Windows(now time.Time, yield func(f *Family, w Window, length time.Duration)) {
	for _, t := range h.timers {
		if w := t.window(now); w.Count > 0 && h.opts.Allow(Prefix+t.family.Name) {
			yield(t.family, w, windowLength)
		}
	}
}

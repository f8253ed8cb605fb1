package telemetry

import (
	"bufio"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source adds the values of its series to a batch. It is called by one goroutine at a time, and takes no longer than the
// caller of /v1/metrics can wait.
type Source func(*Batch)

// Options are what a hub is told.
type Options struct {
	Host      string            // the label host; empty: there is none
	Allow     func(string) bool // reports whether a family is shown, by its name with Prefix; nil: all are
	MaxSeries int               // of each subject
	Every     time.Duration     // values that are younger than this are given once more
}

// Hub derives the values of its sources when they are asked for. It is safe for use by many goroutines.
type Hub struct {
	opts Options

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
	return &Hub{opts: o}
}

// Host returns the value of the label host; empty: there is none.
func (h *Hub) Host() string { return h.opts.Host }

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
	for _, t := range timers {
		if w := t.window(now); w.Count > 0 && h.opts.Allow(Prefix+t.family.Name) {
			yield(t.family, w, windowLength)
		}
	}
}

// Collector returns the timers as Prometheus' client takes them.
func (h *Hub) Collector() prometheus.Collector { return timersOf{h} }

type timersOf struct{ h *Hub }

func (timersOf) Describe(chan<- *prometheus.Desc) {}

func (c timersOf) Collect(out chan<- prometheus.Metric) {
	for _, t := range timers {
		if m, used := t.collect(time.Now()); used && c.h.opts.Allow(Prefix+t.family.Name) {
			out <- m
		}
	}
}

// WriteText writes the values of all sources in Prometheus' text format. The labels of each series were rendered when it came
// to be, so that 100,000 series take some 20 ms.
func (h *Hub) WriteText(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	host := ""
	if h.opts.Host != "" {
		host = Labels("host", h.opts.Host).text
	}
	var number []byte
	h.Collect().Each(func(f *Family, values []Value) {
		name := f.Prometheus()
		_, _ = w.WriteString("# HELP " + name + " " + helpEscaper.Replace(f.Help) + "\n# TYPE " + name + " " + string(f.Kind) + "\n")
		for _, v := range values {
			_, _ = w.WriteString(name)
			text := v.Labels.Text()
			if host != "" || text != "" {
				_ = w.WriteByte('{')
				_, _ = w.WriteString(host)
				if host != "" && text != "" {
					_ = w.WriteByte(',')
				}
				_, _ = w.WriteString(text)
				_ = w.WriteByte('}')
			}
			number = append(strconv.AppendFloat(append(number[:0], ' '), v.Value, 'g', -1, 64), '\n')
			_, _ = w.Write(number)
		}
	})
	return w.Flush() // says what went wrong before
}

package telemetry

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-metrics"
)

// Pushed is a sink of go-metrics. It keeps what is pushed to show it in Prometheus' text format: the last value of each gauge,
// the sum of each counter, and a summary of the samples of each name. A series to which nothing is pushed for a minute is
// forgotten. It is safe for use by many goroutines.
type Pushed struct {
	refused atomic.Uint64

	mu     sync.Mutex
	series map[string]*pushedSeries // by kind, name and labels
	swept  time.Time                // when what is old was last forgotten
}

// pushedSeries is a series of what is pushed.
type pushedSeries struct {
	name   string // as Prometheus has it
	kind   Kind
	labels string    // as in the text format, without braces
	at     time.Time // of the last value; under the lock of Pushed

	mu    sync.Mutex
	value float64
	seen  observed
}

const (
	// forgetAfter is how long a series is kept after its last value.
	forgetAfter = time.Minute
	// MaxPushed is how many series of what is pushed there are at most. A summary takes up to 8 KiB.
	MaxPushed = 5000
)

func newPushed() *Pushed { return &Pushed{series: map[string]*pushedSeries{}} }

// Refused returns how many values were left out: there were MaxPushed series, or the labels were none that Prometheus takes.
func (p *Pushed) Refused() uint64 { return p.refused.Load() }

// SetGauge sets a gauge.
func (p *Pushed) SetGauge(key []string, v float32) { p.SetGaugeWithLabels(key, v, nil) }

// SetGaugeWithLabels sets a gauge.
func (p *Pushed) SetGaugeWithLabels(key []string, v float32, labels []metrics.Label) {
	p.SetPrecisionGaugeWithLabels(key, float64(v), labels)
}

// SetPrecisionGauge sets a gauge.
func (p *Pushed) SetPrecisionGauge(key []string, v float64) {
	p.SetPrecisionGaugeWithLabels(key, v, nil)
}

// SetPrecisionGaugeWithLabels sets a gauge.
func (p *Pushed) SetPrecisionGaugeWithLabels(key []string, v float64, labels []metrics.Label) {
	p.push(Gauge, key, labels, func(s *pushedSeries, _ time.Time) { s.value = v })
}

// EmitKey does nothing: Prometheus has nothing of that kind.
func (p *Pushed) EmitKey([]string, float32) {}

// IncrCounter adds to a counter.
func (p *Pushed) IncrCounter(key []string, v float32) { p.IncrCounterWithLabels(key, v, nil) }

// IncrCounterWithLabels adds to a counter. What is negative or no number is left out.
func (p *Pushed) IncrCounterWithLabels(key []string, v float32, labels []metrics.Label) {
	if v >= 0 {
		p.push(Counter, key, labels, func(s *pushedSeries, _ time.Time) { s.value += float64(v) })
	}
}

// AddSample adds an observation to a summary.
func (p *Pushed) AddSample(key []string, v float32) { p.AddSampleWithLabels(key, v, nil) }

// AddSampleWithLabels adds an observation to a summary.
func (p *Pushed) AddSampleWithLabels(key []string, v float32, labels []metrics.Label) {
	p.push(Summary, key, labels, func(s *pushedSeries, now time.Time) { s.seen.add(now, float64(v)) })
}

func (p *Pushed) push(kind Kind, key []string, labels []metrics.Label, set func(*pushedSeries, time.Time)) {
	labels, ok := labelsInOrder(kind, labels)
	now := time.Now()
	var room [256]byte
	id, name := appendID(room[:0], kind, key, labels)
	if !ok || len(name) == 0 {
		p.refused.Add(1)
		return
	}
	s := p.find(id, now)
	if s == nil {
		fresh := &pushedSeries{name: string(name), kind: kind, labels: textOf(labels), at: now}
		set(fresh, now) // before anybody sees it: a gauge would be zero, and a summary of nothing
		switch s = p.create(fresh, string(id)); s {
		case nil:
			p.refused.Add(1)
			return
		case fresh:
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s, now)
}

// find returns the series of that identity, which is not forgotten for a while; nil: there is none.
func (p *Pushed) find(id []byte, now time.Time) *pushedSeries {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.series[string(id)]
	if s != nil {
		s.at = now
	}
	return s
}

// create keeps a new series unless somebody else was faster, and returns what is kept; nil: there is no room.
func (p *Pushed) create(s *pushedSeries, id string) *pushedSeries {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.series[id]; have != nil {
		return have
	}
	if len(p.series) >= MaxPushed && s.at.Sub(p.swept) >= time.Second { // not for every value there is no room for
		p.sweep(s.at)
	}
	if len(p.series) >= MaxPushed {
		return nil
	}
	p.series[id] = s
	return s
}

// sweep forgets what is old. The lock is held.
func (p *Pushed) sweep(now time.Time) {
	p.swept = now
	for id, s := range p.series { // order does not matter
		if now.Sub(s.at) > forgetAfter {
			delete(p.series, id)
		}
	}
}

// families returns what is shown now, by name, and by kind where a name has several.
func (p *Pushed) families(now time.Time) []textFamily {
	p.mu.Lock()
	p.sweep(now)
	all := make([]*pushedSeries, 0, len(p.series))
	for _, s := range p.series { // order does not matter: they are sorted
		all = append(all, s)
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b *pushedSeries) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind), cmp.Compare(a.labels, b.labels))
	})
	var out []textFamily
	for len(all) > 0 {
		first, n := all[0], 1
		for n < len(all) && all[n].name == first.name && all[n].kind == first.kind {
			n++
		}
		series := all[:n]
		out = append(out, textFamily{first.name, helpOf(first.name), first.kind, func(w *textWriter) {
			for _, s := range series {
				s.write(w, now)
			}
		}})
		all = all[n:]
	}
	return out
}

// write does not hold the lock while it writes: who reads slowly would hold up Raft and whoever else pushes.
func (s *pushedSeries) write(w *textWriter, now time.Time) {
	if s.kind == Summary {
		w.summary(s.name, s.labels, s.digest(now))
		return
	}
	s.mu.Lock()
	v := s.value
	s.mu.Unlock()
	w.value(s.name, "", s.labels, "", v)
}

func (s *pushedSeries) digest(now time.Time) digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.digest(now)
}

// helpOf is the help of a family of the table; of others their name, as they have none.
func helpOf(name string) string {
	if f := byPrometheusName()[name]; f != nil {
		return f.Help
	}
	return name
}

var byPrometheusName = sync.OnceValue(func() map[string]*Family {
	out := make(map[string]*Family, len(Families))
	for i := range Families {
		out[Families[i].Prometheus()] = &Families[i]
	}
	return out
})

// appendID appends what distinguishes a series from all others, and returns the part of that which is its name as well.
func appendID(b []byte, kind Kind, key []string, labels []metrics.Label) (id, name []byte) {
	b = append(append(b, kind...), 0xff)
	begin := len(b)
	for i, part := range key {
		if i > 0 {
			b = append(b, '_')
		}
		for _, r := range part {
			if !nameRune(r, len(b) == begin) && r != ':' {
				r = '_'
			}
			b = append(b, byte(r)) // ASCII
		}
	}
	end := len(b)
	for _, l := range labels {
		b = append(b, 0xff) // in no label that is valid
		b = append(b, l.Name...)
		b = append(b, 0xff)
		b = append(b, l.Value...)
	}
	return b, b[begin:end:end]
}

// nameRune reports whether Prometheus takes r in the names of metrics and labels: the first is no digit.
func nameRune(r rune, first bool) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' && !first
}

// labelsInOrder returns labels by their names, as Prometheus takes them: each once, the last one counts. False: it does not take
// them.
func labelsInOrder(kind Kind, labels []metrics.Label) ([]metrics.Label, bool) {
	ordered := true
	for i, l := range labels {
		ordered = ordered && isLabelName(l.Name) && utf8.ValidString(l.Value) && (i == 0 || labels[i-1].Name < l.Name)
	}
	if !ordered {
		labels = slices.Clone(labels)
		for i, l := range labels {
			labels[i] = metrics.Label{Name: labelName(l.Name), Value: strings.ToValidUTF8(l.Value, "\uFFFD")}
		}
		slices.Reverse(labels)
		slices.SortStableFunc(labels, func(a, b metrics.Label) int { return cmp.Compare(a.Name, b.Name) })
		labels = slices.CompactFunc(labels, func(a, b metrics.Label) bool { return a.Name == b.Name })
	}
	for _, l := range labels {
		if l.Name == "" || strings.HasPrefix(l.Name, "__") || kind == Summary && l.Name == "quantile" {
			return nil, false
		}
	}
	return labels, true
}

func isLabelName(name string) bool {
	for i, r := range name {
		if !nameRune(r, i == 0) {
			return false
		}
	}
	return true
}

// labelName is the name of a label as Prometheus has it.
func labelName(name string) string {
	b := make([]byte, 0, len(name))
	for i, r := range name {
		if !nameRune(r, i == 0) {
			r = '_'
		}
		b = append(b, byte(r)) // ASCII
	}
	return string(b)
}

func textOf(labels []metrics.Label) string {
	pairs := make([]string, 0, 2*len(labels))
	for _, l := range labels {
		pairs = append(pairs, l.Name, l.Value)
	}
	return Labels(pairs...).text
}

package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hashicorp/go-metrics"

	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
)

// writeJSON writes the last interval as /v1/metrics shows it, with what is derived. It is made while it is written, so that a
// hundred thousand series take no memory of their own. Numbers that JSON does not have are left out.
func (t *telemetry) writeJSON(to io.Writer, pretty bool) error {
	shown, err := t.memory.DisplayMetrics(nil, nil)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	pushed, ok := shown.(metrics.MetricsSummary)
	if !ok {
		return fmt.Errorf("metrics: go-metrics returned a %T", shown)
	}
	derived, labels := t.hub.Collect(), map[string]string{}
	l := newListing(to, pretty, pushed.Timestamp)
	l.list("Gauges")
	each(l, pushed.Gauges)
	t.eachDerived(derived, false, l, func(name string, v telemetryhub.Value) {
		l.add(metrics.GaugeValue{Name: name, Value: float32(v.Value), DisplayLabels: t.labelsOf(v.Labels, labels)})
	})
	l.list("PrecisionGauges")
	each(l, pushed.PrecisionGauges)
	l.list("Points")
	each(l, pushed.Points)
	l.list("Counters")
	each(l, settled(pushed.Counters))
	var sample metrics.AggregateSample
	t.eachDerived(derived, true, l, func(name string, v telemetryhub.Value) {
		sample = metrics.AggregateSample{Count: 1, Sum: v.Value, Min: v.Value, Max: v.Value}
		l.add(metrics.SampledValue{Name: name, DisplayLabels: t.labelsOf(v.Labels, labels), Mean: v.Value, AggregateSample: &sample})
	})
	l.list("Samples")
	each(l, settled(pushed.Samples))
	t.hub.Windows(time.Now(), func(f *telemetryhub.Family, w telemetryhub.Window, length time.Duration) {
		sample = metrics.AggregateSample{Count: w.Count, Sum: w.Sum, SumSq: w.Squares, Min: w.Min, Max: w.Max, Rate: w.Sum / length.Seconds()}
		each(l, settled([]metrics.SampledValue{{
			Name: telemetryhub.Prefix + f.Name, DisplayLabels: t.labelsOf(nil, labels), Mean: sample.Mean(), Stddev: sample.Stddev(), AggregateSample: &sample,
		}}))
	})
	return l.end()
}

// settled is values whose deviation is a number: rounding can make the root of a tiny negative one.
func settled(values []metrics.SampledValue) []metrics.SampledValue {
	for i := range values {
		if math.IsNaN(values[i].Stddev) {
			values[i].Stddev = 0
		}
	}
	return values
}

// eachDerived calls f with the name and the values of the counters, or of all others, until the caller of l is gone.
func (*telemetry) eachDerived(b *telemetryhub.Batch, counters bool, l *listing, f func(name string, v telemetryhub.Value)) {
	b.Each(func(family *telemetryhub.Family, values []telemetryhub.Value) {
		if (family.Kind == telemetryhub.Counter) != counters {
			return
		}
		name := telemetryhub.Prefix + family.Name
		for _, v := range values {
			if l.err != nil {
				return
			}
			f(name, v)
		}
	})
}

// labelsOf puts labels, and that of the host, into a map that is used again.
func (t *telemetry) labelsOf(labels *telemetryhub.LabelSet, into map[string]string) map[string]string {
	clear(into)
	labels.Each(func(name, value string) { into[name] = value })
	if host := t.hub.Host(); host != "" {
		into["host"] = host
	}
	return into
}

// listing writes lists of values as the fields of an object in JSON, a value at a time.
type listing struct {
	w      *bufio.Writer
	pretty bool
	one    bytes.Buffer
	enc    *json.Encoder // to one
	opened bool
	values int   // of this list
	err    error // of writing
}

// indent is what a level is indented by, as everywhere in the HTTP API.
const indent = "    "

func newListing(to io.Writer, pretty bool, timestamp string) *listing {
	l := &listing{w: bufio.NewWriterSize(to, 64<<10), pretty: pretty}
	l.enc = json.NewEncoder(&l.one)
	l.enc.SetEscapeHTML(false)
	if pretty {
		l.enc.SetIndent(indent+indent, indent)
	}
	l.write("{")
	l.field("Timestamp")
	_ = l.enc.Encode(timestamp) // a text
	l.writeOne()
	return l
}

// list ends the list before, if there is one, and begins the next.
func (l *listing) list(name string) {
	l.close()
	l.write(",")
	l.field(name)
	l.write("[")
	l.opened, l.values = true, 0
}

func (l *listing) close() {
	if l.opened && l.values > 0 {
		l.line(indent)
	}
	if l.opened {
		l.write("]")
	}
}

func (l *listing) field(name string) {
	l.line(indent)
	l.write(`"` + name + `":`)
	if l.pretty {
		l.write(" ")
	}
}

// add adds a value to the list.
func (l *listing) add(v any) {
	l.one.Reset()
	if l.enc.Encode(v) != nil { // it has a number that JSON does not have
		return
	}
	if l.values++; l.values > 1 {
		l.write(",")
	}
	l.line(indent + indent)
	l.writeOne()
}

func each[T any](l *listing, values []T) {
	for _, v := range values {
		l.add(v)
	}
}

// line begins a line.
func (l *listing) line(indented string) {
	if l.pretty {
		l.write("\n" + indented)
	}
}

func (l *listing) writeOne() {
	if l.err == nil {
		_, l.err = l.w.Write(bytes.TrimSuffix(l.one.Bytes(), []byte("\n")))
	}
}

func (l *listing) write(text string) {
	if l.err == nil {
		_, l.err = l.w.WriteString(text)
	}
}

func (l *listing) end() error {
	l.close()
	l.line("")
	l.write("}")
	if l.pretty {
		l.write("\n")
	}
	if l.err == nil {
		l.err = l.w.Flush()
	}
	if l.err != nil {
		return fmt.Errorf("write metrics: %w", l.err)
	}
	return nil
}

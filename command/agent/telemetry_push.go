package agent

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	armon "github.com/armon/go-metrics"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/command/agent/config"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
)

// awaySinks are those that metrics are sent to. They are not ended before the process: to end one while somebody still measures
// would be a panic.
func awaySinks(cfg *config.Config) (metrics.FanoutSink, error) {
	var out metrics.FanoutSink
	if addr := cfg.Telemetry.Statsd; addr != "" {
		sink, err := metrics.NewStatsdSink(addr)
		if err != nil {
			return nil, fmt.Errorf("telemetry.statsd_address: %w", err)
		}
		out = append(out, lineSink{sink})
	}
	if addr := cfg.Telemetry.Statsite; addr != "" {
		sink, err := metrics.NewStatsiteSink(addr)
		if err != nil {
			return nil, fmt.Errorf("telemetry.statsite_address: %w", err)
		}
		out = append(out, lineSink{sink})
	}
	return out, nil
}

// lineSink is a sink that sends lines. Names become a part of a line as they are, and whoever registers a job chooses its name:
// what would end a line, or a name in it, is replaced by underscores.
type lineSink struct{ metrics.MetricSink }

func (s lineSink) SetGauge(key []string, v float32)    { s.SetGaugeWithLabels(key, v, nil) }
func (s lineSink) EmitKey(key []string, v float32)     { s.MetricSink.EmitKey(lineKey(key), v) }
func (s lineSink) IncrCounter(key []string, v float32) { s.IncrCounterWithLabels(key, v, nil) }
func (s lineSink) AddSample(key []string, v float32)   { s.AddSampleWithLabels(key, v, nil) }

func (s lineSink) SetGaugeWithLabels(key []string, v float32, l []metrics.Label) {
	s.MetricSink.SetGaugeWithLabels(lineKey(key), v, lineLabels(l))
}

func (s lineSink) IncrCounterWithLabels(key []string, v float32, l []metrics.Label) {
	s.MetricSink.IncrCounterWithLabels(lineKey(key), v, lineLabels(l))
}

func (s lineSink) AddSampleWithLabels(key []string, v float32, l []metrics.Label) {
	s.MetricSink.AddSampleWithLabels(lineKey(key), v, lineLabels(l))
}

func lineKey(key []string) []string {
	out := make([]string, len(key))
	for i, part := range key {
		out[i] = strings.Map(lineRune, part)
	}
	return out
}

func lineLabels(labels []metrics.Label) []metrics.Label {
	out := make([]metrics.Label, len(labels))
	for i, l := range labels {
		out[i] = metrics.Label{Name: l.Name, Value: strings.Map(lineRune, l.Value)}
	}
	return out
}

func lineRune(r rune) rune {
	if strings.ContainsRune("|:@", r) || unicode.IsControl(r) || unicode.IsSpace(r) {
		return '_'
	}
	return r
}

// pusher sends what is derived to sinks that wait for it: what has changed, and everything from time to time.
type pusher struct {
	to   *metrics.Metrics // names and filters as all others
	sent map[seriesKey]float64
	all  time.Time // when everything was sent
	full bool      // series were left out of what was sent last
}

// seriesKey is a series. It has the text of the labels, as they may be made anew while they stay the same.
type seriesKey struct {
	family *telemetryhub.Family
	labels string
}

// Everything is sent again after pushAll. The sinks keep some thousand values until they are sent, and drop what is more:
// after every pushChunk there is a pushRest.
const (
	pushAll   = time.Minute
	pushChunk = 1000
	pushRest  = 20 * time.Millisecond
)

func newPusher(conf *metrics.Config, away metrics.FanoutSink) (*pusher, error) {
	to, err := metrics.New(conf, away)
	if err != nil {
		return nil, fmt.Errorf("send metrics: %w", err)
	}
	return &pusher{to: to, sent: map[seriesKey]float64{}}, nil
}

// sample sends an observation of a timer.
func (p *pusher) sample(f *telemetryhub.Family, ms float64) { p.to.AddSample(f.Key(), float32(ms)) }

// push sends what is derived now. It ends early with ctx. It does nothing on nil.
func (p *pusher) push(ctx context.Context, hub *telemetryhub.Hub) {
	if p == nil {
		return
	}
	everything := time.Since(p.all) >= pushAll
	if everything {
		p.all = time.Now()
	}
	next, n := make(map[seriesKey]float64, len(p.sent)), 0
	batch := hub.Collect()
	// While there are too many series, one that was not sent last may have been sent before that.
	full := batch.Dropped() > 0
	restless := full || p.full
	p.full = full
	batch.Each(func(f *telemetryhub.Family, values []telemetryhub.Value) {
		key := f.Key()
		for _, v := range values {
			k := seriesKey{f, v.Labels.Text()}
			was, known := p.sent[k]
			if !known && v.Labels != nil && (restless || !v.Labels.IsFromZero()) {
				was = v.Value // who knows when that was counted
			}
			next[k] = v.Value
			if ctx.Err() != nil || known && was == v.Value && (!everything || f.Kind == telemetryhub.Counter) {
				continue
			}
			var labels []metrics.Label
			v.Labels.Each(func(name, value string) { labels = append(labels, metrics.Label{Name: name, Value: value}) })
			if f.Kind == telemetryhub.Counter {
				p.to.IncrCounterWithLabels(key, float32(max(0, v.Value-was)), labels)
			} else {
				p.to.SetGaugeWithLabels(key, float32(v.Value), labels)
			}
			if n++; n%pushChunk == 0 {
				select {
				case <-time.After(pushRest):
				case <-ctx.Done():
				}
			}
		}
	})
	p.sent = next
}

// bridgeLibraries has the metrics of Raft, Serf and memberlist come to ours: they are built against an older go-metrics, which
// has its own global.
func bridgeLibraries() error {
	_, err := armon.NewGlobal(&armon.Config{TimerGranularity: time.Millisecond, FilterDefault: true}, bridge{})
	return err // it states what it is about
}

// bridge is a sink that passes everything to the global metrics.
type bridge struct{}

func (bridge) SetGauge(key []string, v float32)    { metrics.SetGauge(key, v) }
func (bridge) EmitKey(key []string, v float32)     { metrics.EmitKey(key, v) }
func (bridge) IncrCounter(key []string, v float32) { metrics.IncrCounter(key, v) }
func (bridge) AddSample(key []string, v float32)   { metrics.AddSample(key, v) }

func (bridge) SetGaugeWithLabels(key []string, v float32, l []armon.Label) {
	metrics.SetGaugeWithLabels(key, v, bridged(l))
}

func (bridge) IncrCounterWithLabels(key []string, v float32, l []armon.Label) {
	metrics.IncrCounterWithLabels(key, v, bridged(l))
}

func (bridge) AddSampleWithLabels(key []string, v float32, l []armon.Label) {
	metrics.AddSampleWithLabels(key, v, bridged(l))
}

func bridged(labels []armon.Label) []metrics.Label {
	out := make([]metrics.Label, 0, len(labels))
	for _, l := range labels {
		out = append(out, metrics.Label(l))
	}
	return out
}

package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/command/agent/config"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
)

// lastGauge is a sink that keeps the name of the last gauge.
type lastGauge struct {
	metrics.BlackholeSink
	name string
}

func (l *lastGauge) SetGaugeWithLabels(key []string, _ float32, _ []metrics.Label) {
	l.name = strings.Join(key, ".")
}

// TestFilterAsGoMetrics: what is derived is filtered as go-metrics filters what is pushed to it.
func TestFilterAsGoMetrics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config.Default()
		prefix := rapid.StringMatching(`[+-](nomad|n)?(\.(a|b|ab))?(\.a)?`).Filter(func(s string) bool { return len(s) > 1 })
		cfg.Telemetry.PrefixFilter = rapid.SliceOfN(prefix, 0, 6).Draw(t, "filter")
		shown := rapid.Bool().Draw(t, "default")
		cfg.Telemetry.FilterDefault = &shown
		conf, sink := metricsConfig(cfg), &lastGauge{}
		theirs, err := metrics.New(conf, sink)
		if err != nil {
			t.Fatal(err)
		}
		ours := allowedBy(conf)
		for _, name := range []string{"a", "ab", "b.a", "ab.a.c", "c"} {
			sink.name = ""
			theirs.SetGauge(strings.Split(name, "."), 1)
			if ours("nomad."+name) != (sink.name != "") {
				t.Fatalf("filter %q, default %v: nomad.%s is shown: %v; by go-metrics %q", cfg.Telemetry.PrefixFilter, shown, name, ours("nomad."+name), sink.name)
			}
		}
	})
}

// TestDerivedIsShown: what is derived is in both forms, with the host's label, compressed if asked for, and only of parts that
// there are.
func TestDerivedIsShown(t *testing.T) {
	cfg := config.Default()
	cfg.Name, cfg.Telemetry.UseNodeName, cfg.Server.Enabled = "one", true, true
	tel, err := startTelemetry(cfg, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer tel.stop()
	tel.hub.Add(func(b *telemetryhub.Batch) {
		b.Add(telemetryhub.Named("nomad.job_summary.running"), 2, telemetryhub.Labels("job", "web"))
		b.Add(telemetryhub.Named("client.allocations.running"), 2, nil)
		b.Add(telemetryhub.Named("nomad.rpc.refused_conn"), 7, telemetryhub.Labels("x", "y"))
	})
	var shown bytes.Buffer
	if err := tel.writeJSON(&shown, false); err != nil {
		t.Fatal(err)
	}
	raw := shown.Bytes()
	for _, want := range []string{
		`{"Name":"nomad.nomad.job_summary.running","Value":2,"Labels":{"host":"one","job":"web"}}`,
		`"Name":"nomad.nomad.rpc.refused_conn","Count":1,"Rate":0,"Sum":7,`,
	} {
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%s is missing in %s", want, raw)
		}
	}
	for _, encoding := range []string{"", "gzip"} {
		request, answer := httptest.NewRequest("GET", "/v1/metrics?format=prometheus", nil), httptest.NewRecorder()
		request.Header.Set("Accept-Encoding", encoding)
		request.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		tel.prometheus(hclog.NewNullLogger()).ServeHTTP(answer, request)
		body := io.Reader(answer.Body)
		if encoding != "" {
			if body, err = gzip.NewReader(answer.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		for part, there := range map[string]bool{
			`nomad_nomad_job_summary_running{host="one",job="web"} 2`: true, `nomad_runtime_num_goroutines{host="one"}`: true, "# TYPE nomad_client_": false,
		} {
			if strings.Contains(string(text), part) != there {
				t.Errorf("encoding %q: %s is there: %v\n%s", encoding, part, !there, text)
			}
		}
		if kind := answer.Header().Get("Content-Type"); kind != "text/plain; version=0.0.4; charset=utf-8; escaping=underscores" {
			t.Errorf("encoding %q: %s", encoding, kind)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil || families["nomad_runtime_sys_bytes"].GetMetric()[0].GetGauge().GetValue() == 0 || families["go_info"] == nil {
			t.Errorf("encoding %q: %v: %v", encoding, err, families)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	f := func(want bool, headers ...string) {
		t.Helper()
		if got := acceptsGzip(http.Header{"Accept-Encoding": headers}); got != want {
			t.Errorf("%q: %v", headers, got)
		}
	}
	f(false)
	f(false, "")
	f(true, "gzip")
	f(true, "deflate, GZIP;q=0.5")
	f(true, "deflate", "gzip ; Q=1")
	f(false, "gzip;q=0, identity")
	f(false, "gzip; q=0.000")
	f(false, "gzip;q=x")
	f(false, "notgzip, gzipped")
}

// TestJSONIsWhole: what is written in JSON can be read, has every series once, and is indented as the rest of the HTTP API.
func TestJSONIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		tel := &telemetry{memory: metrics.NewInmemSink(time.Hour, time.Hour), hub: telemetryhub.NewHub(telemetryhub.Options{
			MaxSeries: 100, Host: "<one>", Every: time.Hour, Allow: func(name string) bool { return n > 0 && !strings.Contains(name, "dropped") },
		})}
		for i := range n {
			tel.memory.SetGauge([]string{"pushed", fmt.Sprint(i)}, 1)
			tel.memory.IncrCounter([]string{"counted", fmt.Sprint(i)}, 2)
			tel.memory.AddSample([]string{"sampled", fmt.Sprint(i)}, 3)
		}
		tel.hub.Add(func(b *telemetryhub.Batch) {
			for i := range n {
				b.Add(telemetryhub.Named("nomad.job_summary.running"), float64(i), telemetryhub.Labels("job", fmt.Sprintf("a\n\"%d\xff", i)))
				b.Add(telemetryhub.Named("raft.apply"), float64(i), telemetryhub.Labels("of", fmt.Sprint(i)))
			}
			b.Add(telemetryhub.Named("nomad.job_summary.lost"), math.NaN(), nil)
			b.Add(telemetryhub.Named("nomad.job_summary.lost"), math.MaxFloat64, nil)
		})
		var compact, pretty, indented bytes.Buffer
		if err := errors.Join(tel.writeJSON(&compact, false), tel.writeJSON(&pretty, true)); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&indented, compact.Bytes(), "", "    "); err != nil {
			t.Fatalf("%v: %s", err, compact.Bytes())
		}
		if indented.String()+"\n" != pretty.String() {
			t.Errorf("of %d: indented\n%s\nwant\n%s", n, pretty.Bytes(), indented.Bytes())
		}
		var all metrics.MetricsSummary
		if err := json.Unmarshal(compact.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, g := range all.Gauges {
			seen["gauge "+g.Name+g.DisplayLabels["job"]+g.DisplayLabels["host"]]++
		}
		for _, c := range all.Counters {
			if c.AggregateSample == nil || c.Count != 1 {
				t.Errorf("counter %+v", c)
			}
			seen["counter "+c.Name+c.DisplayLabels["of"]+c.DisplayLabels["host"]]++
		}
		for _, s := range all.Samples {
			if strings.HasPrefix(s.Name, "sampled") {
				seen["sample "+s.Name]++
			}
		}
		want := map[string]int{}
		for i := range n {
			want[fmt.Sprintf("gauge pushed.%d", i)], want[fmt.Sprintf("counter counted.%d", i)], want[fmt.Sprintf("sample sampled.%d", i)] = 1, 1, 1
			want[fmt.Sprintf("gauge nomad.nomad.job_summary.runninga\n\"%d\uFFFD<one>", i)], want[fmt.Sprintf("counter nomad.raft.apply%d<one>", i)] = 1, 1
		}
		maps.DeleteFunc(seen, func(name string, _ int) bool {
			return strings.HasPrefix(name, "counter nomad.nomad.") || strings.HasPrefix(name, "counter nomad.client.")
		})
		if !maps.Equal(seen, want) {
			t.Errorf("of %d: %v, want %v", n, seen, want)
		}
	}
}

// pieces is a writer that looks at how what it is given comes, and can be one that is gone.
type pieces struct {
	whole, longest, writes int
	fail                   error
}

func (p *pieces) Write(b []byte) (int, error) {
	p.whole, p.longest, p.writes = p.whole+len(b), max(p.longest, len(b)), p.writes+1
	return len(b), p.fail
}

// TestJSONIsStreamed: a long answer in JSON is not held in memory, and is not made for a caller who is gone.
func TestJSONIsStreamed(t *testing.T) {
	const n = 50_000
	tel := &telemetry{memory: metrics.NewInmemSink(time.Hour, time.Hour), hub: telemetryhub.NewHub(telemetryhub.Options{MaxSeries: n, Every: time.Hour})}
	tel.hub.Add(func(b *telemetryhub.Batch) {
		for i := range n {
			b.Add(telemetryhub.Named("nomad.job_summary.running"), float64(i), telemetryhub.Labels("job", fmt.Sprint("job-", i), "namespace", "default"))
		}
	})
	tel.hub.Collect()
	var to pieces
	if err := tel.writeJSON(&to, false); err != nil || to.whole < n*80 || to.longest > 64<<10 {
		t.Errorf("%d bytes came in pieces of up to %d: %v", to.whole, to.longest, err)
	}
	gone := pieces{fail: io.ErrClosedPipe}
	if err := tel.writeJSON(&gone, true); !errors.Is(err, io.ErrClosedPipe) || gone.writes != 1 {
		t.Errorf("to a caller who is gone there were %d writes: %v", gone.writes, err)
	}
}

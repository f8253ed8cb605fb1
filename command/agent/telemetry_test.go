package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
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
	shown, err := tel.summary()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
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
			`nomad_nomad_job_summary_running{host="one",job="web"} 2`: true, `nomad_runtime_num_goroutines{host="one"}`: true, "nomad_client_": false,
		} {
			if strings.Contains(string(text), part) != there {
				t.Errorf("encoding %q: %s is there: %v\n%s", encoding, part, !there, text)
			}
		}
		if kind := answer.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("encoding %q: %s", encoding, kind)
		}
	}
}

package telemetry

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-metrics"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

// parsed is what a hub shows as Prometheus' own parser reads it, which refuses names and labels that Prometheus does not take.
func parsed(t rapid.TB, h *Hub) map[string]*dto.MetricFamily {
	t.Helper()
	var b strings.Builder
	if err := h.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(b.String()))
	if err != nil {
		t.Fatalf("%v:\n%s", err, b.String())
	}
	families := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "# TYPE ") {
			families++
		}
	}
	if families != len(all) {
		t.Fatalf("%d families by %d names:\n%s", families, len(all), b.String())
	}
	return all
}

// labelText is the labels of a series.
func labelText(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.GetLabel() {
		fmt.Fprintf(&b, "%s=%q ", l.GetName(), l.GetValue())
	}
	return b.String()
}

// TestPushed: a gauge is what was pushed last, a counter the sum, and samples are a summary; labels in any order are the same.
func TestPushed(t *testing.T) {
	h := NewHub(Options{MaxSeries: 1})
	p := h.Pushed()
	p.SetGauge([]string{"nomad", "a b.c=d-e/f"}, 3)
	p.SetGauge([]string{"nomad", "a b", "c=d-e/f"}, 2.5)
	p.SetPrecisionGauge([]string{"precise:"}, math.Inf(-1))
	p.IncrCounter([]string{"nomad", "raft", "apply"}, 2)
	p.IncrCounter([]string{"nomad", "raft", "apply"}, 3)
	p.IncrCounter([]string{"nomad", "raft", "apply"}, -1)
	p.IncrCounter([]string{"nomad", "raft", "apply"}, float32(math.NaN()))
	for i := range 100 {
		p.AddSampleWithLabels([]string{"nomad", "http", "request"}, float32(i), []metrics.Label{{Name: "path", Value: "a\\b\"c\nd\xff"}, {Name: "method", Value: "GET"}})
		p.AddSampleWithLabels([]string{"nomad", "http", "request"}, float32(i), []metrics.Label{{Name: "method", Value: "PUT"}, {Name: "method", Value: "GET"}, {Name: "path", Value: "a\\b\"c\nd\xfe"}})
	}
	p.EmitKey([]string{"emitted"}, 1)
	all := parsed(t, h)
	if g := all["nomad_a_b_c_d_e_f"]; g.GetType() != dto.MetricType_GAUGE || g.GetMetric()[0].GetGauge().GetValue() != 2.5 {
		t.Errorf("%v", g)
	}
	if g := all["precise:"]; !math.IsInf(g.GetMetric()[0].GetGauge().GetValue(), -1) {
		t.Errorf("%v", g)
	}
	if c := all["nomad_raft_apply"]; c.GetType() != dto.MetricType_COUNTER || c.GetMetric()[0].GetCounter().GetValue() != 5 || c.GetHelp() != Named("raft.apply").Help {
		t.Errorf("%v", c)
	}
	s := all["nomad_http_request"]
	if s.GetType() != dto.MetricType_SUMMARY || len(s.GetMetric()) != 1 || labelText(s.GetMetric()[0]) != "method=\"GET\" path=\"a\\\\b\\\"c\\nd\uFFFD\" " {
		t.Fatalf("%v", s)
	}
	sum := s.GetMetric()[0].GetSummary()
	if sum.GetSampleCount() != 200 || sum.GetSampleSum() != 9900 || sum.GetQuantile()[0].GetValue() != 50 || sum.GetQuantile()[2].GetQuantile() != 0.99 || sum.GetQuantile()[2].GetValue() != 99 {
		t.Errorf("%v", sum)
	}
	if all["emitted"] != nil || p.Refused() != 0 {
		t.Errorf("%v is there; %d were refused", all["emitted"], p.Refused())
	}
}

// TestNamesOnce: a name is that of one family, whatever was pushed, and so are the names of a summary's sum and count.
func TestNamesOnce(t *testing.T) {
	h := NewHub(Options{MaxSeries: 1})
	timer := &Timer{family: callTimer.family}
	timer.observe(time.Now(), 7)
	h.timers = []*Timer{timer}
	h.Add(func(b *Batch) { b.Add(running, 2, nil) })
	p := h.Pushed()
	for _, name := range []string{"nomad.leader.barrier", "nomad.leader.barrier_count", "nomad.job_summary.running"} {
		p.SetGauge([]string{"nomad", name}, 1)
	}
	p.SetGauge([]string{"go", "goroutines"}, -1)
	p.SetGauge([]string{"both_sum"}, 1)
	p.IncrCounter([]string{"both"}, 1)
	p.AddSample([]string{"both"}, 1)
	p.AddSample([]string{"go_memstats_alloc"}, 1)
	all := parsed(t, h)
	if all["nomad_nomad_leader_barrier"].GetType() != dto.MetricType_SUMMARY || all["nomad_nomad_leader_barrier_count"] != nil ||
		all["nomad_nomad_job_summary_running"].GetMetric()[0].GetGauge().GetValue() != 2 || all["go_goroutines"].GetMetric()[0].GetGauge().GetValue() < 1 ||
		all["both"].GetType() != dto.MetricType_COUNTER || all["both_sum"].GetType() != dto.MetricType_GAUGE {
		t.Errorf("%v", all)
	}
}

// TestPushedIsForgotten: a series is gone a minute after its last value, and its quantiles after 10 seconds.
func TestPushedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(Options{MaxSeries: 1})
		h.Pushed().AddSample([]string{"sampled"}, 7)
		h.Pushed().SetGauge([]string{"set"}, 7)
		time.Sleep(windowLength + 1)
		if q := parsed(t, h)["sampled"].GetMetric()[0].GetSummary(); q.GetSampleCount() != 1 || !math.IsNaN(q.GetQuantile()[0].GetValue()) {
			t.Errorf("%v", q)
		}
		h.Pushed().AddSample([]string{"sampled"}, 8)
		time.Sleep(forgetAfter - windowLength - 1)
		if parsed(t, h)["set"] == nil {
			t.Error("it is forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		if all := parsed(t, h); all["set"] != nil || all["sampled"].GetMetric()[0].GetSummary().GetSampleCount() != 2 {
			t.Errorf("%v %v", all["set"], all["sampled"])
		}
	})
}

// TestPushedIsBounded: there is room again once others are forgotten, also if nobody looks.
func TestPushedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPushed()
		fill := func(prefix string) {
			for i := range MaxPushed + 10 {
				p.SetGaugeWithLabels([]string{prefix}, 1, []metrics.Label{{Name: "i", Value: fmt.Sprint(i)}})
			}
			p.SetGaugeWithLabels([]string{prefix}, 2, []metrics.Label{{Name: "i", Value: "0"}})
		}
		fill("first")
		if len(p.series) != MaxPushed || p.Refused() != 10 {
			t.Errorf("%d series, %d refused", len(p.series), p.Refused())
		}
		time.Sleep(forgetAfter + 1)
		fill("second")
		if fams := p.families(time.Now()); len(p.series) != MaxPushed || p.Refused() != 20 || len(fams) != 1 || fams[0].name != "second" {
			t.Errorf("%d series of %d families, %d refused", len(p.series), len(fams), p.Refused())
		}
	})
}

// TestPushedIsTaken: whatever names and labels are pushed, Prometheus takes the answer, and has each series once.
func TestPushedIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHub(Options{MaxSeries: 1})
		part := rapid.OneOf(rapid.StringMatching(`[a-c9_.: é]{0,3}`), rapid.SampledFrom([]string{"quantile", "__x", "a_sum", "a_count", "\xff", ""}))
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\xff", "\xfe", "\n", `\`, `"`}))
		n := rapid.IntRange(0, 20).Draw(t, "n")
		for range n {
			key := rapid.SliceOfN(part, 0, 3).Draw(t, "key")
			var labels []metrics.Label
			for range rapid.IntRange(0, 3).Draw(t, "labels") {
				labels = append(labels, metrics.Label{Name: part.Draw(t, "label"), Value: value.Draw(t, "value")})
			}
			given := slices.Clone(labels)
			v := float32(rapid.Float64().Draw(t, "v"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				h.Pushed().SetGaugeWithLabels(key, v, labels)
			case 1:
				h.Pushed().IncrCounterWithLabels(key, v, labels)
			default:
				h.Pushed().AddSampleWithLabels(key, v, labels)
			}
			if !slices.Equal(given, labels) {
				t.Fatalf("the caller's labels %v are now %v", given, labels)
			}
		}
		for name, f := range parsed(t, h) {
			seen := map[string]bool{}
			for _, m := range f.GetMetric() {
				if text := labelText(m); seen[text] {
					t.Fatalf("%s{%s} comes twice", name, text)
				} else {
					seen[text] = true
				}
			}
		}
	})
}

// TestPushedIsNotDelayed: who reads slowly keeps nobody from pushing.
func TestPushedIsNotDelayed(t *testing.T) {
	h := NewHub(Options{MaxSeries: 1})
	for i := range 1000 {
		labels := []metrics.Label{{Name: "i", Value: strings.Repeat(fmt.Sprint(i), 100)}}
		h.Pushed().AddSampleWithLabels([]string{"sampled"}, 1, labels)
		h.Pushed().IncrCounterWithLabels([]string{"counted"}, 1, labels)
	}
	writes := 0
	err := h.WriteText(writerFunc(func(b []byte) (int, error) {
		writes++
		for _, s := range h.Pushed().series {
			if !s.mu.TryLock() {
				t.Fatalf("%s{%.20s…} cannot be pushed to while write %d lasts", s.name, s.labels, writes)
			}
			s.mu.Unlock()
		}
		return len(b), nil
	}))
	if err != nil || writes < 2 {
		t.Errorf("%d writes: %v", writes, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestPushedIsNotShownEmpty: a series is there once it has a value, and not before.
func TestPushedIsNotShownEmpty(t *testing.T) {
	p := newPushed()
	for i := range 2 {
		p.push(Gauge, []string{"set"}, nil, func(s *pushedSeries, now time.Time) {
			if n := len(p.families(now)); n != i {
				t.Errorf("%d families before value %d", n, i)
			}
			s.value = 1
		})
	}
}

// TestPushedAtOnce: what many push at once is counted.
func TestPushedAtOnce(t *testing.T) {
	h := NewHub(Options{MaxSeries: 1})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				h.Pushed().IncrCounter([]string{"counted"}, 1)
				h.Pushed().AddSample([]string{"sampled"}, 1)
			}
		})
	}
	parsed(t, h)
	wg.Wait()
	all := parsed(t, h)
	if n := all["counted"].GetMetric()[0].GetCounter().GetValue(); n != 4000 || all["sampled"].GetMetric()[0].GetSummary().GetSampleCount() != 4000 {
		t.Errorf("%v %v", n, all["sampled"])
	}
}

// TestGoFamilies: the values of Go's runtime are there, and are what the runtime says elsewhere.
func TestGoFamilies(t *testing.T) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all := parsed(t, NewHub(Options{MaxSeries: 1, Host: "one"}))
	runtime.ReadMemStats(&after)
	of := func(name string) float64 {
		t.Helper()
		f := all[name]
		if len(f.GetMetric()) != 1 || len(f.GetMetric()[0].GetLabel()) != 0 {
			t.Fatalf("%s: %v", name, f)
		}
		delete(all, name)
		return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
	}
	for name, field := range map[string]func(*runtime.MemStats) uint64{
		"alloc_bytes_total": func(m *runtime.MemStats) uint64 { return m.TotalAlloc }, "mallocs_total": func(m *runtime.MemStats) uint64 { return m.Mallocs },
		"frees_total": func(m *runtime.MemStats) uint64 { return m.Frees },
	} {
		if v := of("go_memstats_" + name); v < float64(field(&before)) || v > float64(field(&after)) {
			t.Errorf("%s: %v, not from %d to %d", name, v, field(&before), field(&after))
		}
	}
	for name, want := range map[string]uint64{
		"alloc_bytes": after.Alloc, "sys_bytes": after.Sys, "heap_alloc_bytes": after.HeapAlloc, "heap_sys_bytes": after.HeapSys,
		"heap_idle_bytes": after.HeapIdle, "heap_inuse_bytes": after.HeapInuse, "heap_released_bytes": after.HeapReleased, "heap_objects": after.HeapObjects,
		"stack_inuse_bytes": after.StackInuse, "stack_sys_bytes": after.StackSys, "mspan_inuse_bytes": after.MSpanInuse, "mspan_sys_bytes": after.MSpanSys,
		"mcache_inuse_bytes": after.MCacheInuse, "mcache_sys_bytes": after.MCacheSys, "buck_hash_sys_bytes": after.BuckHashSys, "gc_sys_bytes": after.GCSys,
		"other_sys_bytes": after.OtherSys, "next_gc_bytes": after.NextGC,
	} {
		slack := want / 2
		if strings.HasPrefix(name, "heap_") || name == "alloc_bytes" { // the text and its parsing need some
			slack = max(slack, 4<<20)
		}
		if v := of("go_memstats_" + name); v <= 0 || math.Abs(v-float64(want)) > float64(slack) {
			t.Errorf("%s: %v, want about %d", name, v, want)
		}
	}
	if v := of("go_memstats_last_gc_time_seconds"); math.Abs(v-float64(after.LastGC)/1e9) > 60 {
		t.Errorf("last collection: %v", v)
	}
	if of("go_goroutines") < 2 || of("go_threads") < 1 || of("go_gc_gogc_percent") <= 0 || of("go_gc_gomemlimit_bytes") <= 0 || of("go_sched_gomaxprocs_threads") != float64(runtime.GOMAXPROCS(0)) {
		t.Error("the runtime's numbers are wrong")
	}
	gc := all["go_gc_duration_seconds"].GetMetric()[0].GetSummary()
	if q := gc.GetQuantile(); gc.GetSampleCount() < 1 || gc.GetSampleSum() <= 0 || len(q) != 5 || q[4].GetQuantile() != 1 || q[4].GetValue() < q[0].GetValue() || q[4].GetValue() > gc.GetSampleSum() {
		t.Errorf("%v", gc)
	}
	if got := labelText(all["go_info"].GetMetric()[0]); got != fmt.Sprintf("version=%q ", runtime.Version()) {
		t.Error(got)
	}
	delete(all, "go_gc_duration_seconds")
	delete(all, "go_info")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "go_") {
			t.Errorf("%s is not looked at", name)
		}
	}
}

func BenchmarkPushed(b *testing.B) {
	p, key, labels := newPushed(), []string{"nomad", "http", "request"}, []metrics.Label{{Name: "host", Value: "one"}, {Name: "method", Value: "GET"}, {Name: "path", Value: "/v1/jobs"}}
	for b.Loop() {
		p.AddSampleWithLabels(key, 1, labels)
	}
}

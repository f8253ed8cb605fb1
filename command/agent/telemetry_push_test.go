package agent

import (
	"bufio"
	"maps"
	"net"
	"slices"
	"time"

	"strings"
	"testing"

	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/command/agent/config"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
)

// sums is a sink that adds up what counters are sent.
type sums struct {
	metrics.BlackholeSink
	of map[string]float64
}

func (s *sums) IncrCounterWithLabels(key []string, v float32, labels []metrics.Label) {
	name := strings.Join(key, ".")
	for _, l := range labels {
		name += " " + l.Value
	}
	s.of[name] += float64(v)
}

// TestCountersAreSentOnce: of a counter that began before the agent, what was counted before it was seen is not sent; of the
// others everything is, once, whatever becomes of their labels.
func TestCountersAreSentOnce(t *testing.T) {
	host, task := telemetryhub.Named("client.host.cpu.total_ticks_count"), telemetryhub.Named("client.allocs.running")
	calls := telemetryhub.Named("raft.apply")
	labels := telemetryhub.Labels
	type value = struct {
		f      *telemetryhub.Family
		labels *telemetryhub.LabelSet
		value  float64
	}
	for _, c := range []struct {
		name  string
		steps [][]value
		want  map[string]float64
	}{
		{"of the machine", [][]value{
			{{host, labels("node", "n"), 1000}}, {{host, labels("node", "n"), 1007}}, {{host, labels("node", "n"), 1010}},
		}, map[string]float64{"host n": 10}},
		{"with other labels", [][]value{
			{{host, labels("node", "n", "status", "init"), 1000}}, {{host, labels("node", "n", "status", "ready"), 1005}}, {{host, labels("node", "n", "status", "ready"), 1006}},
		}, map[string]float64{"host n init": 0, "host n ready": 1}},
		{"that comes back", [][]value{
			{{host, labels("node", "n"), 1000}}, {}, {{host, labels("node", "n"), 1100}}, {{host, labels("node", "n"), 1101}},
		}, map[string]float64{"host n": 1}},
		{"of the agent", [][]value{{{calls, nil, 3}}, {{calls, nil, 5}}}, map[string]float64{"calls": 5}},
		{"of a task of before", [][]value{{{task, labels("task", "t"), 3}}, {{task, labels("task", "t"), 4}}}, map[string]float64{"task t": 1}},
		{"of a new task", [][]value{
			{}, {{task, labels("task", "t").FromZero(), 1}}, {{task, labels("task", "t").FromZero(), 2}},
		}, map[string]float64{"task t": 2}},
	} {
		sink := &sums{of: map[string]float64{}}
		to, err := newPusher(&metrics.Config{FilterDefault: true}, metrics.FanoutSink{sink})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range c.steps {
			hub := telemetryhub.NewHub(telemetryhub.Options{MaxSeries: 100})
			hub.Add(func(b *telemetryhub.Batch) {
				for _, v := range step {
					b.Add(v.f, v.value, v.labels)
				}
			})
			to.push(t.Context(), hub)
		}
		short := strings.NewReplacer(host.Name, "host", task.Name, "task", calls.Name, "calls")
		got := map[string]float64{}
		for name, sum := range sink.of {
			if name = short.Replace(name); strings.HasPrefix(name, "host") || strings.HasPrefix(name, "task") || name == "calls" && c.name == "of the agent" {
				got[name] = sum
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("a counter %s: %v were sent, want %v", c.name, got, c.want)
		}
	}
}

// TestCountersOfWhatDoesNotFit: while series are left out because there are too many, tasks come and go among those that are
// shown, and a task that was there before is not taken for a new one.
func TestCountersOfWhatDoesNotFit(t *testing.T) {
	sink := &sums{of: map[string]float64{}}
	to, err := newPusher(&metrics.Config{FilterDefault: true}, metrics.FanoutSink{sink})
	if err != nil {
		t.Fatal(err)
	}
	task := telemetryhub.Named("client.allocs.running")
	for _, first := range []string{"a", "b", "a", "b", "a"} {
		hub := telemetryhub.NewHub(telemetryhub.Options{MaxSeries: 1})
		hub.Add(func(b *telemetryhub.Batch) {
			for _, name := range []string{first, "other"} {
				if b.Room(telemetryhub.OfAllocations, 1) {
					b.Add(task, 50, telemetryhub.Labels("task", name).FromZero())
				}
			}
		})
		to.push(t.Context(), hub)
	}
	if a, b := sink.of[task.Name+" a"], sink.of[task.Name+" b"]; a > 50 || b > 50 {
		t.Errorf("tasks that were started 50 times have sent %v and %v starts", a, b)
	}
	if n := len(to.sent); n > 50 {
		t.Errorf("%d series are remembered", n)
	}
}

// TestNamesAreOnePart: whatever a job is named, it is one part of one line of what statsd and statsite are sent.
func TestNamesAreOnePart(t *testing.T) {
	statsd, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	statsite, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer statsd.Close()   //nolint:errcheck // a test
	defer statsite.Close() //nolint:errcheck // a test
	cfg := config.Default()
	cfg.Telemetry.Statsd, cfg.Telemetry.Statsite = statsd.LocalAddr().String(), statsite.Addr().String()
	away, err := awaySinks(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, sink := range away {
			sink.(lineSink).MetricSink.(metrics.ShutdownSink).Shutdown()
		}
	}()
	to, err := newPusher(&metrics.Config{FilterDefault: true}, away)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		"a\nevil:1|c", "b\r\nevil:1|c", "c|g\tx", "d@0.1", "e:f g", "h\x00\x1b\x7f\u0085\u2028i", "j\xff", "web-1.x/y_z#é",
	}
	hub := telemetryhub.NewHub(telemetryhub.Options{MaxSeries: 100, Allow: func(name string) bool { return strings.HasSuffix(name, "job_summary.running") }})
	hub.Add(func(b *telemetryhub.Batch) {
		for i, name := range names {
			b.Add(telemetryhub.Named("nomad.job_summary.running"), float64(i), telemetryhub.Labels("job", name))
		}
	})
	to.push(t.Context(), hub)
	to.to.IncrCounterWithLabels([]string{"pushed|x"}, 1, []metrics.Label{{Name: "class", Value: "k\nevil:1|c"}})
	want := []string{
		"a_evil_1_c:0", "b__evil_1_c:1", "c_g_x:2", "d_0.1:3", "e_f_g:4", "h_____i:5", "j\uFFFD:6", "web-1.x/y_z#é:7",
	}
	for i := range want {
		want[i] = "nomad.job_summary.running." + want[i] + ".000000|g"
	}
	want = append(want, "pushed_x.k_evil_1_c:1.000000|c")

	deadline := time.Now().Add(time.Minute)
	if err := statsd.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	var got []string
	for packet := make([]byte, 64<<10); len(got) < len(want); {
		n, _, err := statsd.ReadFrom(packet)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got = append(got, strings.Split(strings.TrimSuffix(string(packet[:n]), "\n"), "\n")...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("statsd was sent %q, want %q", got, want)
	}
	conn, err := statsite.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	if err := conn.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	got = nil
	for lines := bufio.NewScanner(conn); len(got) < len(want) && lines.Scan(); {
		got = append(got, lines.Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("statsite was sent %q, want %q", got, want)
	}
}

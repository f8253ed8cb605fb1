package agent

import (
	"maps"

	"strings"
	"testing"

	"github.com/hashicorp/go-metrics"

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

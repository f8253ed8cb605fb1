package telemetry

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	running = Named("nomad.job_summary.running")
	queued  = Named("nomad.job_summary.queued")
)

func text(t *testing.T, h *Hub) string {
	t.Helper()
	var b strings.Builder
	if err := h.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lines are those of a text that hold a part.
func lines(text, part string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestText(t *testing.T) {
	h := NewHub(Options{Host: `h"1`, MaxSeries: 10, Allow: func(name string) bool { return name != "nomad.nomad.job_summary.queued" }})
	h.Add(func(b *Batch) {
		b.Add(running, 2.5, Labels("job", "a\\b\"c\nd", "task_group", "g\xff"))
		b.Add(queued, 1, nil)
		b.Add(Named("raft.appliedIndex"), 12345678, nil)
	})
	got := text(t, h)
	for _, want := range []string{
		"# HELP nomad_nomad_job_summary_running Allocations of a group that run\n# TYPE nomad_nomad_job_summary_running gauge\n",
		`nomad_nomad_job_summary_running{host="h\"1",job="a\\b\"c\nd",task_group="g` + "\uFFFD" + `"} 2.5` + "\n",
		`nomad_raft_appliedIndex{host="h\"1"} 1.2345678e+07` + "\n",
		`nomad_telemetry_series_dropped{host="h\"1",of="jobs"} 0` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "queued") {
		t.Errorf("a family is shown that is filtered out:\n%s", got)
	}
	plain := NewHub(Options{MaxSeries: 10})
	plain.Add(func(b *Batch) { b.Add(queued, 1, nil); b.Add(running, 1, Labels("job", "a")) })
	if got := text(t, plain); !strings.Contains(got, "\nnomad_nomad_job_summary_queued 1\n") || !strings.Contains(got, `_running{job="a"} 1`) {
		t.Errorf("without a host:\n%s", got)
	}
}

// TestDropped: what is over the limit of its subject is left out and counted; other subjects have their own.
func TestDropped(t *testing.T) {
	h := NewHub(Options{MaxSeries: 5})
	h.Add(func(b *Batch) {
		if fit := b.Fit(OfJobs, 4, 2); fit != 2 {
			t.Errorf("%d of four fit, want 2", fit)
		}
		for range 2 {
			if !b.Room(OfNodes, 2) {
				t.Error("no room for a node")
			}
		}
		if b.Room(OfNodes, 2) || !b.Room(OfAllocations, 5) {
			t.Error("there is room for a third node, or none for an allocation")
		}
	})
	got := text(t, h)
	for of, n := range map[string]string{"jobs": "4", "nodes": "2", "allocations": "0"} {
		if want := `nomad_telemetry_series_dropped{of="` + of + `"} ` + n; len(lines(got, want)) != 1 {
			t.Errorf("%s is missing in %q", want, lines(got, "dropped"))
		}
	}
}

// TestDerivedSeldom: what takes long to derive is given again for a hundred times as long; what does not, for Every.
func TestDerivedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, n := time.Duration(0), 0
		h := NewHub(Options{MaxSeries: 1, Every: time.Second})
		h.Add(func(*Batch) { n++; time.Sleep(takes) })
		derived := func(what string, want int) {
			t.Helper()
			h.Collect()
			if n != want {
				t.Errorf("%s: derived %d times, want %d", what, n, want)
			}
		}
		derived("first", 1)
		time.Sleep(999 * time.Millisecond)
		derived("within Every", 1)
		time.Sleep(time.Millisecond)
		takes = 50 * time.Millisecond
		derived("after Every", 2)
		time.Sleep(5*time.Second - time.Millisecond)
		derived("within a hundred times as long", 2)
		time.Sleep(time.Millisecond)
		takes = time.Minute
		derived("after that", 3)
		time.Sleep(maxAge - time.Millisecond)
		derived("before it is too old", 3)
		time.Sleep(time.Millisecond)
		derived("when it is", 4)
	})
}

// TestTimer: a timer shows nothing before it was used, then its observations in both forms.
func TestTimer(t *testing.T) {
	timer := &Timer{family: callTimer.family}
	h := NewHub(Options{MaxSeries: 1, Host: "one"})
	h.timers = []*Timer{timer} // others may have been used before
	if all := parsed(t, h); all["nomad_nomad_leader_barrier"] != nil {
		t.Fatal(all)
	}
	(*Timer)(nil).Since(time.Now())
	forwarded := 0.0
	Forward(func(_ *Family, ms float64) { forwarded += ms })
	defer Forward(nil)
	for range 3 {
		timer.Since(time.Now().Add(-time.Second))
	}
	shown := parsed(t, h)["nomad_nomad_leader_barrier"]
	if s := shown.GetMetric()[0].GetSummary(); s.GetSampleCount() != 3 || s.GetSampleSum() < 3000 || len(s.GetQuantile()) != 3 || s.GetQuantile()[0].GetValue() < 1000 || len(shown.GetMetric()) != 1 {
		t.Errorf("%v", shown)
	}
	if l := shown.GetMetric()[0].GetLabel(); len(l) != 1 || l[0].GetName() != "host" || l[0].GetValue() != "one" {
		t.Errorf("labels: %v", l)
	}
	found := 0
	h.Windows(time.Now(), func(f *Family, w Window, _ time.Duration) {
		found++
		if f.Name != "nomad.leader.barrier" || w.Count != 3 || w.Min < 1000 || w.Max > 60_000 || w.Sum < 3*w.Min || w.Sum > 3*w.Max {
			t.Errorf("%s %+v", f.Name, w)
		}
	})
	if found != 1 || forwarded < 3000 {
		t.Errorf("%d windows, %v ms were forwarded", found, forwarded)
	}
}

var callTimer = NewTimer("nomad.leader.barrier")

// TestWindows: the last window that is over is shown while the next is filled, and no older one.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(windowLength).Add(windowLength)))
		timer := &Timer{family: callTimer.family}
		count := func(want int) {
			t.Helper()
			if w := timer.window(time.Now()); w.Count != want {
				t.Errorf("%d were observed, want %d", w.Count, want)
			}
		}
		wanted.Store(true)
		timer.Since(time.Now())
		count(1)
		time.Sleep(windowLength)
		timer.Since(time.Now())
		timer.Since(time.Now())
		count(1)
		time.Sleep(windowLength)
		count(2)
		time.Sleep(windowLength)
		count(0)
	})
}

// TestQuantiles: quantiles are of what was observed within the last window, and of the latest if that is much.
func TestQuantiles(t *testing.T) {
	timer, now := &Timer{family: callTimer.family}, time.Now()
	check := func(count uint64, median, last float64) {
		t.Helper()
		d, used := timer.digest(now)
		if !used || d.count != count || d.quantiles[0] != median || d.quantiles[2] != last {
			t.Errorf("%v %+v, want %d, %v and %v", used, d, count, median, last)
		}
	}
	for i := range 100 {
		timer.observe(now, float64(i))
	}
	check(100, 50, 99)
	for i := range 10_000 {
		timer.observe(now, float64(i))
	}
	check(10_100, 9_744, 9_994)
	now = now.Add(windowLength + 1)
	timer.observe(now, 7)
	check(10_101, 7, 7)
}

func BenchmarkTimer(b *testing.B) {
	wanted.Store(true)
	for b.Loop() {
		callTimer.Since(time.Now())
	}
}

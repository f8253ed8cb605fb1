package jobseries

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// world is a state that jobs are registered in.
type world struct {
	*testcluster.Log
	t     testing.TB
	store *state.Store
}

func newWorld(t testing.TB) *world {
	l := testcluster.New(0, state.Options{})
	return &world{l, t, l.Store}
}

func (w *world) register(id string, groups ...string) {
	w.t.Helper()
	j := &structs.Job{ID: id, Name: id, Namespace: "default", Type: structs.JobTypeBatch, Datacenters: []string{"dc1"}, NodePool: "default", Region: "global"}
	for _, g := range groups {
		j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: g, Count: 1, Tasks: []*structs.Task{
			{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 100, MemoryMB: 64}},
		}})
	}
	w.Put(w.t, &structs.JobRegisterEntry{Job: j, Time: int64(w.Index() + 1)})
}

func (w *world) purge(id string) {
	w.t.Helper()
	w.Put(w.t, &structs.JobDeregisterEntry{Namespace: "default", JobID: id, Purge: true, Time: int64(w.Index() + 1)})
}

// shown is what a scrape of the series shows, by series.
func shown(t testing.TB, s *Series, snap *state.Snapshot, limit int) map[string]string {
	t.Helper()
	h := telemetry.NewHub(telemetry.Options{MaxSeries: limit})
	h.Add(func(b *telemetry.Batch) { s.Add(b, snap) })
	var text strings.Builder
	if err := h.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(text.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if line[0] != '#' && !strings.HasPrefix(name, "go_") { // which are those of the process
			if _, twice := out[name]; twice {
				t.Fatalf("%s comes twice", name)
			}
			out[name] = value
		}
	}
	return out
}

// TestAsDerivedAnew: whatever jobs come, change and go, what is kept gives the same series as deriving all of them anew.
func TestAsDerivedAnew(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, kept := newWorld(t), &Series{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d/dispatch-1", "d/periodic-2", "e"}).Draw(rt, "job")
			if rapid.Bool().Draw(rt, "purge") && w.store.Snapshot().Job(nil, "default", id) != nil {
				w.purge(id)
			} else {
				w.register(id, rapid.SampledFrom([][]string{{"g"}, {"g", "h"}, {"h", "i"}}).Draw(rt, "groups")...)
			}
			if rapid.Bool().Draw(rt, "look") {
				snap := w.store.Snapshot()
				if have, want := shown(t, kept, snap, 1000), shown(t, &Series{}, snap, 1000); !maps.Equal(have, want) {
					rt.Fatalf("have %v\nwant %v", have, want)
				}
			}
		}
	})
}

func TestLabels(t *testing.T) {
	w := newWorld(t)
	w.register("nightly/periodic-17", "g")
	w.register("ask/dispatch-5-ab", "g")
	w.register("web", "g")
	got := shown(t, &Series{}, w.store.Snapshot(), 1000)
	for _, want := range []string{
		`nomad_nomad_job_summary_queued{job="web",task_group="g",namespace="default"`,
		`nomad_nomad_job_summary_lost{job="nightly",task_group="g",namespace="default",parent_id="nightly",periodic_id="17"`,
		`nomad_nomad_job_summary_unknown{job="ask",task_group="g",namespace="default",parent_id="ask",dispatch_id="5-ab"`,
	} {
		if _, ok := got[want]; !ok {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}

// TestLimit: of jobs that are too many the last are left out, and counted; a job that is gone makes room for the next.
func TestLimit(t *testing.T) {
	w, s := newWorld(t), &Series{}
	for i := range 5 {
		w.register(fmt.Sprint("job", i), "g")
	}
	has := func(id string) bool {
		_, ok := shown(t, s, w.store.Snapshot(), 21)[`nomad_nomad_job_summary_running{job="`+id+`",task_group="g",namespace="default"`]
		return ok
	}
	if !has("job2") || has("job3") {
		t.Error("not the first three jobs are shown")
	}
	if n := shown(t, s, w.store.Snapshot(), 21)[`nomad_telemetry_series_dropped{of="jobs"`]; n != "14" {
		t.Errorf("%s series are dropped, want 14", n)
	}
	w.purge("job0")
	if has("job0") || !has("job3") {
		t.Error("a job that is gone has series, or its room is not used")
	}
}

// TestLimitOfDatacenters: what waits by datacenters counts as series of jobs, as there may be as many lists of datacenters as jobs.
func TestLimitOfDatacenters(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		id := fmt.Sprint("job", i)
		w.Put(w.t, &structs.JobRegisterEntry{Time: int64(w.Index() + 1), Job: &structs.Job{
			ID: id, Name: id, Namespace: "default", Type: structs.JobTypeBatch, Datacenters: []string{id}, NodePool: "default", Region: "global",
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{
				{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 100, MemoryMB: 64}},
			}}},
		}})
		w.Put(w.t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: int64(w.Index() + 1), Requests: []*structs.RequestUpdate{
			{Namespace: "default", JobID: id, Group: "g", Missing: 1, EvalID: "b"},
		}}}})
	}
	count := func(limit int) (centers, jobs int, dropped string) {
		all := shown(t, &Series{}, w.store.Snapshot(), limit)
		for name := range all {
			switch {
			case strings.HasPrefix(name, "nomad_nomad_blocked_evals_job_"):
				jobs++
			case strings.HasPrefix(name, "nomad_nomad_blocked_evals_"):
				centers++
			}
		}
		return centers, jobs, all[`nomad_telemetry_series_dropped{of="jobs"`]
	}
	// Summaries take 35 of them.
	for _, c := range []struct {
		limit, centers, jobs int
		dropped              string
	}{{55, 10, 10, "0"}, {49, 10, 4, "6"}, {41, 6, 0, "14"}, {35, 0, 0, "20"}} {
		if centers, jobs, dropped := count(c.limit); centers != c.centers || jobs != c.jobs || dropped != c.dropped {
			t.Errorf("with a limit of %d: %d series by datacenters, %d by jobs, %s dropped; want %+v", c.limit, centers, jobs, dropped, c)
		}
	}
}

// BenchmarkScrape is deriving the series of 10,000 jobs of which 100 have changed, and writing them as Prometheus reads them.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(b)
	for i := range 10_000 {
		w.register(fmt.Sprintf("job-%05d", i), "group")
	}
	change := func() {
		for i := range 100 {
			w.register(fmt.Sprintf("job-%05d", i*100), "group")
			w.register(fmt.Sprintf("job-%05d", i*100), "group", "other")
		}
	}
	for _, changes := range []bool{false, true} {
		b.Run(fmt.Sprintf("derive/changed=%v", changes), func(b *testing.B) {
			s := &Series{}
			s.Add(telemetry.NewBatch(100_000), w.store.Snapshot())
			for b.Loop() {
				if changes {
					b.StopTimer()
					change()
					b.StartTimer()
				}
				s.Add(telemetry.NewBatch(100_000), w.store.Snapshot())
			}
		})
	}
	b.Run("write", func(b *testing.B) {
		s := &Series{}
		h := telemetry.NewHub(telemetry.Options{Host: "server1", MaxSeries: 100_000})
		h.Add(func(to *telemetry.Batch) { s.Add(to, w.store.Snapshot()) })
		for b.Loop() {
			if err := h.WriteText(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package forecast

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// flowOf is a workflow of a stage for each time limit, of one job of so many GPUs.
func flowOf(t *testing.T, id string, gpus int, limits ...time.Duration) *structs.Workflow {
	t.Helper()
	w := &structs.Workflow{Namespace: structs.DefaultNamespace, ID: id, NodePool: structs.NodePoolDefault, Priority: 50}
	for i, limit := range limits {
		name := fmt.Sprint("job-", i)
		w.Stages = append(w.Stages, &structs.WorkflowStage{
			Name: fmt.Sprint("stage-", i), Jobs: []*structs.WorkflowJob{{Name: name, Job: gpuJob(name, 50, 1, gpus, limit)}},
		})
	}
	w.Canonicalize()
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWorkflowStarts: a workflow that waits for its reservation starts when the forecast states, and each of its stages does.
func TestWorkflowStarts(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	r.submit(gpuJob("fill", 50, 1, 8, time.Hour))
	r.until(r.now.Add(time.Minute))
	r.put(&structs.WorkflowRunEntry{Workflow: flowOf(t, "chip", 8, 10*time.Minute, 20*time.Minute), Time: r.now.UnixNano()})
	r.submit(gpuJob("after", 10, 1, 8, time.Hour))
	r.until(r.now.Add(time.Second))

	all, id := r.forecast(Options{}), structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: "chip"}
	one := r.forecast(Options{Workflow: &id})
	if len(all.Workflows) != 1 || len(all.Requests) != 1 || len(one.Workflows) != 1 || len(one.Requests) != 0 {
		t.Fatalf("%+v; alone %+v", all, one)
	}
	start := epoch.Add(time.Hour).UnixNano()
	for what, s := range map[string]structs.WorkflowStartForecast{"of the queue": all.Workflows[0].Latest, "of it alone": one.Workflows[0].Latest} {
		if s.Unknown != "" || s.Start-start >= int64(time.Second) || s.Start < start || len(s.WaitsFor) != 1 || s.WaitsFor[0].Name != "fill.g[0]" || s.WaitsFor[0].Time != start {
			t.Errorf("the forecast %s: %+v", what, s)
		}
	}
	stages := one.Workflows[0].Latest.Stages
	if f := all.OfWorkflow(structs.DefaultNamespace, "chip", 1); f == nil || len(f.Latest.Stages) != 0 || len(stages) != 2 {
		t.Fatalf("%+v; alone %+v", f, stages)
	}
	r.until(epoch.Add(3 * time.Hour))
	for i, is := range r.log.Store.Snapshot().Workflows(nil).Get(id.Namespace, id.ID).Stages {
		if s := stages[i]; s.Name != is.Name || s.Start == 0 || s.Start != is.Start || s.End != is.End {
			t.Errorf("%s: from %s to %s, not as stated: %+v", is.Name, time.Unix(0, is.Start).UTC(), time.Unix(0, is.End).UTC(), s)
		}
	}
	q := all.Requests[0]
	if starts := r.started(q, epoch); len(starts) != 1 || starts[0].Sub(time.Unix(0, q.Latest.All)).Abs() >= time.Second {
		t.Errorf("%s starts at %v, not as stated: %+v", q.JobID, starts, q.Latest)
	}
}

// TestWorkflowStartUnknown: why it is not known when a workflow starts, or when its stages end.
func TestWorkflowStartUnknown(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	for _, w := range []*structs.Workflow{flowOf(t, "endless", 8, 10*time.Minute, 0, time.Minute), flowOf(t, "large", 9, time.Minute)} {
		r.put(&structs.WorkflowRunEntry{Workflow: w, Time: r.now.UnixNano()})
	}
	of := func(id string) structs.WorkflowStartForecast {
		t.Helper()
		f := r.forecast(Options{Horizon: time.Hour, Workflow: &structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: id}})
		if len(f.Workflows) != 1 {
			t.Fatalf("%+v", f)
		}
		return f.Workflows[0].Latest
	}
	s := of("endless")
	if want := `job "endless/1/job-1" has no end: no max_run_duration and no finished run of it or its user`; s.Unknown != want || s.Start == 0 {
		t.Errorf("%+v", s)
	}
	if a, b, c := s.Stages[0], s.Stages[1], s.Stages[2]; a.End == 0 || b.Start < a.End || b.End != 0 || c.Start != 0 {
		t.Errorf("%+v", s.Stages)
	}
	if s := of("large"); s.Start != 0 || !strings.HasPrefix(s.Unknown, "not within 1h0m0s; ") {
		t.Errorf("%+v", s)
	}
}

// TestEarlierRuns: a job of a workflow is expected to take as long as it did in the runs before.
func TestEarlierRuns(t *testing.T) {
	h := &history{jobs: map[structs.NamespacedID][]time.Duration{
		{Namespace: "default", ID: inAnyRun("chip/1/a")}: {time.Minute}, {Namespace: "default", ID: inAnyRun("other/1/a")}: {time.Hour},
	}}
	for id, want := range map[string]time.Duration{"chip/2/a": time.Minute, "chip/2/b": 0, "chip/x/a": 0, "other/17/a": time.Hour, "chip": 0, "chip/1": 0} {
		in := &instance{job: structs.NamespacedID{Namespace: "default", ID: id}, is: &kind{job: &structs.Job{ID: id}}}
		if got := h.expected(in, 0); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	r := newReality(t)
	r.nodes(1)
	r.put(&structs.WorkflowRunEntry{Workflow: flowOf(t, "chip", 8, 10*time.Minute), Time: r.now.UnixNano()})
	r.until(epoch.Add(time.Hour))
	if runs := historyOf(r.log.Store.Snapshot()).jobs[structs.NamespacedID{Namespace: structs.DefaultNamespace, ID: "chip/*/job-0"}]; len(runs) != 1 {
		t.Errorf("%v", runs)
	}
}

// TestRounded: ends that are expected are known in as much detail as how long the run takes.
func TestRounded(t *testing.T) {
	for lasts, want := range map[time.Duration]time.Duration{
		30 * time.Second: 61*time.Second + 500*time.Millisecond, 3 * time.Minute: 62 * time.Second, 30 * time.Minute: 90 * time.Second, 10 * time.Hour: 5 * time.Minute,
	} {
		if got := rounded(epoch.Add(61*time.Second+500*time.Millisecond), lasts); !got.Equal(epoch.Add(want)) {
			t.Errorf("an end of a run of %s is rounded to %s, not %s", lasts, got.Sub(epoch), want)
		}
	}
}

// TestWaitingWorkflowIsCheap: a workflow that cannot be placed within the horizon does not hold up the forecast of all else, though this ends with the horizon then.
func TestWaitingWorkflowIsCheap(t *testing.T) {
	r := newReality(t)
	r.nodes(1)
	r.submit(gpuJob("fill", 50, 1, 8, time.Hour))
	r.until(r.now.Add(time.Minute))
	r.submit(gpuJob("after", 60, 1, 4, time.Hour))
	for id, gpus := range map[string]int{"large": 9, "second": 10} {
		r.put(&structs.WorkflowRunEntry{Workflow: flowOf(t, id, gpus, time.Minute), Time: r.now.UnixNano()})
	}
	r.until(r.now.Add(time.Second))
	steps := 0
	f := r.forecast(Options{Pace: func(context.Context) { steps++ }})
	if len(f.Requests) != 1 || f.Requests[0].Latest.Unknown != "" || len(f.Workflows) != 2 || !strings.HasPrefix(f.Workflows[0].Latest.Unknown, "not within ") {
		t.Fatalf("%+v", f)
	}
	if steps > 1000 {
		t.Errorf("%d steps of work", steps)
	}
}

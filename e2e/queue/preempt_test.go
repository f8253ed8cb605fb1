package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// preempting is the configuration of a server whose service and batch jobs preempt. more goes into its scheduling block.
func preempting(more string) string {
	return `server {
  enabled         = true
  heartbeat_grace = "1m"
  default_scheduler_config {
    preemption_config {
      service_scheduler_enabled = true
      batch_scheduler_enabled   = true
    }
  }
  scheduling {
    ` + more + `
  }
}
`
}

// place registers a volume and waits until all of it runs.
func place(a *harness.Agent, v harness.MockJob) []*structs.AllocListStub {
	a.T.Helper()
	a.SubmitMock(v)
	return a.WaitRunning(v.ID, v.Count, 20*time.Second)
}

// set changes the scheduler's configuration.
func set(a *harness.Agent, args ...string) {
	a.T.Helper()
	if out, code := a.CLI(append([]string{"operator", "scheduler", "set-config"}, args...)...); code != 0 {
		a.T.Fatalf("set-config %v: exit %d\n%s", args, code, out)
	}
}

// quiet waits until no evaluation is being decided, and gives the index of that.
func quiet(a *harness.Agent) uint64 {
	a.T.Helper()
	var index uint64
	harness.Within(a.T, 20*time.Second, "all evaluations decided", func(ctx context.Context) error {
		if err := decided(ctx, a); err != nil {
			return err
		}
		_, meta, err := a.API.Allocations().List(ctx, nil)
		if err == nil {
			index = meta.Index
		}
		return err
	})
	return index
}

// TestGoldenExample is the example of the priority bands times ten, over and over on one simulated node of that shape: E's 30
// instances stop exactly 4 of B and 9 of C. All others stay the same, untouched, and what stopped comes back when E ends.
func TestGoldenExample(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(`bands = [[1, 1], [2, 2], [3, 3], [4, 4]]`), harness.PlainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	jobs := []harness.MockJob{
		{ID: "a", Priority: 3, Count: 20, CPU: 10, Memory: 10},
		{ID: "b", Kind: "batch", Priority: 2, Count: 20, CPU: 30, Memory: 20},
		{ID: "c", Priority: 1, Count: 10, CPU: 20, Memory: 10},
	}
	for _, v := range jobs {
		place(a, v)
	}
	round := func(name string, lose map[string]int) {
		t.Helper()
		start := quiet(a)
		before := map[string][]string{}
		for _, v := range jobs {
			before[v.ID] = ids(a.WaitRunning(v.ID, v.Count, 20*time.Second))
		}
		place(a, harness.MockJob{ID: name, Priority: 4, Count: 30, CPU: 10, Memory: 10})
		w.upTo(t, quiet(a))
		placed := w.placed(name, start)
		if len(placed) != 30 {
			t.Errorf("%s: %d were placed, want 30", name, len(placed))
		}
		for _, v := range jobs {
			left := a.WaitRunning(v.ID, v.Count-lose[v.ID], 20*time.Second)
			a.WaitMissing(v.ID, lose[v.ID])
			w.upTo(t, quiet(a))
			stopped := w.stopped(v.ID, structs.AllocDesiredEvict, start)
			if len(stopped) != lose[v.ID] || len(w.placed(v.ID, start)) != 0 {
				t.Errorf("%s: %d of %s were taken and %d came, want %d and none", name, len(stopped), v.ID, len(w.placed(v.ID, start)), lose[v.ID])
			}
			for id, index := range stopped {
				if !slices.Contains(slices.Collect(maps.Values(placed)), index) {
					t.Errorf("%s: %s of %s was taken at index %d, where nothing of %s came", name, id, v.ID, index, name)
				}
			}
			for _, id := range ids(left) {
				if !slices.Contains(before[v.ID], id) {
					t.Errorf("%s: %s of %s is new", name, id, v.ID)
				}
				for _, c := range w.of(id, start) { // its client may still tell that it is healthy
					if c.is() != "run/running" {
						t.Errorf("%s: %s of %s, which stays, was touched: %s at index %d", name, id, v.ID, c.is(), c.index)
					}
				}
			}
			for _, alloc := range a.ReadAllocs(left) {
				s := alloc.TaskStates["t"]
				starts := 0
				for _, e := range s.Events {
					if e.Type == structs.TaskStarted {
						starts++
					}
				}
				if s.Restarts != 0 || s.State != structs.TaskStateRunning || starts != 1 || alloc.PreemptedByAllocation != "" {
					t.Errorf("%s: %s of %s: %+v", name, alloc.ID, v.ID, s)
				}
			}
		}
		a.Stop(name)
		for _, v := range jobs { // all come back
			kept := ids(a.WaitRunning(v.ID, v.Count, 20*time.Second))
			w.upTo(t, quiet(a))
			if came := len(w.placed(v.ID, start)); came != lose[v.ID] || len(kept) != v.Count {
				t.Errorf("%s: %d of %s came back, want %d", name, came, v.ID, lose[v.ID])
			}
			a.WaitMissing(v.ID, 0)
		}
	}
	set(a, "-max-requeues", "1000") // the same instances are preempted in every round
	rounds := 10
	if harness.Raced {
		rounds = 3 // all is ten times as slow
	}
	for i := range rounds {
		round(fmt.Sprintf("e-%d", i), map[string]int{"b": 4, "c": 9})
	}
	// C is kept whole, so B loses more. B's own band is above C's: it must not take C's room in its turn to be seen so.
	set(a, "-keep-whole", "-preempt-batch-scheduler=false")
	round("whole", map[string]int{"b": 10})
	set(a, "-keep-whole=false", "-preempt-batch-scheduler=true")
	round("again", map[string]int{"b": 4, "c": 9})
}

// TestBands: a job takes from lower bands only. One of its own band, however much lower, is not touched, and the switches take
// effect at once, for what waits already too.
func TestBands(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(`bands = [[1, 4], [5, 7], [8, 10]]`), harness.PlainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	for _, p := range []int{4, 7, 8} {
		place(a, harness.MockJob{ID: fmt.Sprintf("p%d", p), Priority: p, Count: 1, CPU: 300, Memory: 300})
	}
	start := quiet(a)
	// 100 MHz are free. A 9 takes the 4 first, then the 7, never the 8.
	place(a, harness.MockJob{ID: "first", Priority: 9, Count: 1, CPU: 300, Memory: 300})
	a.WaitRunning("p4", 0, 20*time.Second)
	place(a, harness.MockJob{ID: "second", Priority: 9, Count: 1, CPU: 300, Memory: 300})
	a.WaitRunning("p7", 0, 20*time.Second)
	a.SubmitMock(harness.MockJob{ID: "third", Priority: 10, Count: 1, CPU: 300, Memory: 300})
	a.WaitMissing("third", 1)
	w.upTo(t, quiet(a))
	for job, want := range map[string]int{"p4": 1, "p7": 1, "p8": 0, "first": 0, "second": 0, "third": 0} {
		if got := len(w.stopped(job, structs.AllocDesiredEvict, start)); got != want {
			t.Errorf("%d of %s were taken, want %d", got, job, want)
		}
	}
	// With an own band for the 10, it takes the 8 at once.
	set(a, "-bands", "1-4,5-7,8-8,9-9,10-10")
	a.WaitRunning("third", 1, 20*time.Second)
	a.WaitRunning("p8", 0, 20*time.Second)
	w.upTo(t, quiet(a))
	for _, job := range []string{"first", "second"} {
		if got := len(w.stopped(job, structs.AllocDesiredEvict, start)); got != 0 {
			t.Errorf("%d of %s were taken", got, job)
		}
	}
	for _, job := range []string{"p4", "p7", "p8"} {
		a.WaitMissing(job, 1)
	}
}

// TestPreemptionSwitches: whether jobs of a type preempt is changed while they wait. System jobs do in a new cluster.
func TestPreemptionSwitches(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, harness.PatientServer, harness.PlainNodes("n", 1, 1000, 1000))
	place(a, harness.MockJob{ID: "low", Priority: 10, Count: 10, CPU: 100, Memory: 10})
	a.SubmitMock(harness.MockJob{ID: "high", Priority: 90, Count: 2, CPU: 100, Memory: 10})
	a.WaitMissing("high", 2)
	a.SubmitMock(harness.MockJob{ID: "batch", Kind: "batch", Priority: 90, Count: 1, CPU: 100, Memory: 10})
	a.WaitMissing("batch", 1)
	quiet(a)
	a.WaitRunning("low", 10, 5*time.Second)

	place(a, harness.MockJob{ID: "system", Kind: "system", Priority: 90, Count: 1, CPU: 200, Memory: 10})
	a.WaitRunning("low", 8, 20*time.Second)
	a.WaitMissing("low", 2)
	a.WaitMissing("high", 2)

	set(a, "-preempt-batch-scheduler=true")
	a.WaitRunning("batch", 1, 20*time.Second)
	a.WaitRunning("low", 7, 20*time.Second)
	a.WaitMissing("high", 2)

	set(a, "-preempt-service-scheduler=true")
	a.WaitRunning("high", 2, 20*time.Second)
	a.WaitRunning("low", 5, 20*time.Second)
	a.WaitMissing("low", 5)

	set(a, "-preempt-service-scheduler=false", "-preempt-system-scheduler=false")
	a.SubmitMock(harness.MockJob{ID: "late", Priority: 100, Count: 1, CPU: 100, Memory: 10})
	a.SubmitMock(harness.MockJob{ID: "system-2", Kind: "system", Priority: 100, Count: 1, CPU: 100, Memory: 10})
	a.WaitMissing("late", 1)
	a.WaitMissing("system-2", 1)
	quiet(a)
	a.WaitRunning("low", 5, 5*time.Second)
	set(a, "-preempt-system-scheduler=true")
	a.WaitRunning("system-2", 1, 20*time.Second)
	a.WaitRunning("low", 4, 20*time.Second)
	a.WaitMissing("late", 1)
}

// TestPartial: a request that does not get all takes all it can, only what is free, or nothing, as its job says; a gang nothing.
func TestPartial(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(""), harness.PlainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	place(a, harness.MockJob{ID: "keeps", Priority: 60, Count: 4, CPU: 100, Memory: 10})
	place(a, harness.MockJob{ID: "low", Priority: 10, Count: 4, CPU: 100, Memory: 10}) // 200 are free
	f := func(id, partial, gang string, runs, lost int) {
		t.Helper()
		start := quiet(a)
		v := harness.MockJob{ID: id, Priority: 60, Count: 9, CPU: 100, Memory: 10, Group: gang}
		if partial != "" {
			v.Job = fmt.Sprintf("partial = %q", partial)
		}
		a.SubmitMock(v)
		a.WaitMissing(id, 9-runs)
		a.WaitRunning(id, runs, 20*time.Second)
		w.upTo(t, quiet(a))
		if got := len(w.stopped("low", structs.AllocDesiredEvict, start)); got != lost {
			t.Errorf("%s: %d were taken, want %d", id, got, lost)
		}
		if len(w.stopped("keeps", structs.AllocDesiredEvict, start)) != 0 {
			t.Errorf("%s takes from its own band", id)
		}
		a.Stop(id)
		a.WaitRunning("low", 4, 20*time.Second)
	}
	f("all", "", "", 6, 4)
	f("preempt", "preempt", "", 6, 4)
	f("free", "free", "", 2, 0)
	f("none", "none", "", 0, 0)
	f("gang", "", "gang {}", 0, 0)
	f("some", "", "gang { min = 6 }", 6, 4)
}

// TestWordsOfPreemption: who lost its place says to whom, and who took it says from whom, as Nomad's client reads it.
func TestWordsOfPreemption(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(""), harness.PlainNodes("n", 1, 1000, 1000))
	victim := place(a, harness.MockJob{ID: "low", Priority: 10, Count: 1, CPU: 1000, Memory: 10})[0]
	taker := place(a, harness.MockJob{ID: "high", Priority: 90, Count: 1, CPU: 1000, Memory: 10})[0]
	lost, _, err := a.Nomad.Allocations().Info(victim.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	won, _, err := a.Nomad.Allocations().Info(taker.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lost.DesiredStatus != "evict" || lost.PreemptedByAllocation != taker.ID || !strings.Contains(lost.DesiredDescription, taker.ID) {
		t.Errorf("the victim says %s %q by %q", lost.DesiredStatus, lost.DesiredDescription, lost.PreemptedByAllocation)
	}
	if !slices.Equal(won.PreemptedAllocations, []string{victim.ID}) {
		t.Errorf("the taker says that it took %v", won.PreemptedAllocations)
	}
	evals, _, err := a.API.Jobs().Evaluations(t.Context(), "low", nil)
	if err != nil || !slices.ContainsFunc(evals, func(e *structs.Evaluation) bool { return e.TriggeredBy == structs.EvalTriggerPreemption }) {
		t.Errorf("no evaluation of the victim's job says that it was preempted: %v", err)
	}
	// A plan says what it would take, and takes nothing.
	dry := func(v harness.MockJob) *nomad.JobPlanResponse {
		t.Helper()
		plan, _, err := a.Nomad.Jobs().Plan(planned(t, a, v), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := dry(harness.MockJob{ID: "peer", Priority: 95, Count: 1, CPU: 1000, Memory: 10}); plan.FailedTGAllocs["g"] == nil {
		t.Errorf("of the same band it would wait: %+v", plan.Annotations)
	}
	set(a, "-bands", "1-40,41-90,91-100")
	plan := dry(harness.MockJob{ID: "peer", Priority: 95, Count: 1, CPU: 1000, Memory: 10})
	if plan.FailedTGAllocs["g"] != nil || len(plan.Annotations.PreemptedAllocs) != 1 || plan.Annotations.PreemptedAllocs[0].ID != taker.ID {
		t.Errorf("of a higher band it would take the place: %+v", plan.Annotations)
	}
	a.WaitRunning("high", 1, 5*time.Second)
}

// planned is a volume as the official client sends it.
func planned(t *testing.T, a *harness.Agent, v harness.MockJob) *nomad.Job {
	t.Helper()
	job, err := a.Nomad.Jobs().ParseHCL(v.Text(), true)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

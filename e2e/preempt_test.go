package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// plainNodes is a shape of simulated nodes of one core.
func plainNodes(name string, count, mhz, memory int) string {
	return fmt.Sprintf("shape %q {\n  count = %d\n  cores = 1\n  mhz = %d\n  memory = %d\n  disk = 1000000\n}\n", name, count, mhz, memory)
}

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

// volume is a job of pretended instances.
type volume struct {
	id                           string
	kind                         string // default: service
	priority, count, cpu, memory int
	job, group                   string // more of each
	config                       string // of the task; default: it runs for long
}

// text is the volume's job file.
func (v volume) text() string {
	kind, config := v.kind, v.config
	if kind == "" {
		kind = structs.JobTypeService
	}
	if config == "" {
		config = `run_for = "24h"`
	}
	return fmt.Sprintf(`job %q {
  type     = %q
  priority = %d
  %s
  group "g" {
    count = %d
    %s
    ephemeral_disk { size = 10 }
    task "t" {
      driver = "mock_driver"
      config {
        %s
      }
      logs {
        max_files     = 1
        max_file_size = 1
      }
      resources {
        cpu    = %d
        memory = %d
      }
    }
  }
}`, v.id, kind, v.priority, v.job, v.count, v.group, config, v.cpu, v.memory)
}

// submitVolume registers a volume and does not wait for what becomes of it.
func (a *agent) submitVolume(v volume) {
	a.t.Helper()
	a.submit(v.id, v.text())
}

// place registers a volume and waits until all of it runs.
func (a *agent) place(v volume) []*structs.AllocListStub {
	a.t.Helper()
	a.submitVolume(v)
	return a.running(v.id, v.count, 20*time.Second)
}

// set changes the scheduler's configuration.
func (a *agent) set(args ...string) {
	a.t.Helper()
	if out, code := a.cli(append([]string{"operator", "scheduler", "set-config"}, args...)...); code != 0 {
		a.t.Fatalf("set-config %v: exit %d\n%s", args, code, out)
	}
}

// missing waits until n instances of a job wait for room.
func (a *agent) missing(job string, n int) {
	a.t.Helper()
	within(a.t, 20*time.Second, fmt.Sprintf("%d instances of %s waiting", n, job), func(ctx context.Context) error {
		have, err := a.queued(ctx, job)
		if err == nil && have != n {
			err = fmt.Errorf("%d wait", have)
		}
		return err
	})
}

// queued is how many instances of a job wait for room.
func (a *agent) queued(ctx context.Context, job string) (n int, err error) {
	entries, err := a.queue(ctx)
	for _, e := range entries {
		if e.JobID == job {
			n += e.Missing
		}
	}
	return n, err
}

// queue reads the whole queue.
func (a *agent) queue(ctx context.Context) (out []*structs.QueueEntry, err error) {
	q := &api.Query{}
	for {
		entries, meta, err := a.api.Queue(ctx, "", q)
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
		if q.NextToken = meta.NextToken; q.NextToken == "" {
			return out, nil
		}
	}
}

// quiet waits until no evaluation is being decided, and gives the index of that.
func (a *agent) quiet() uint64 {
	a.t.Helper()
	var index uint64
	within(a.t, 20*time.Second, "all evaluations decided", func(ctx context.Context) error {
		if err := a.decided(ctx); err != nil {
			return err
		}
		_, meta, err := a.api.Allocations().List(ctx, nil)
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
	a := startLayouts(t, 1, preempting(`bands = [[1, 1], [2, 2], [3, 3], [4, 4]]`), plainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	jobs := []volume{
		{id: "a", priority: 3, count: 20, cpu: 10, memory: 10},
		{id: "b", kind: "batch", priority: 2, count: 20, cpu: 30, memory: 20},
		{id: "c", priority: 1, count: 10, cpu: 20, memory: 10},
	}
	for _, v := range jobs {
		a.place(v)
	}
	round := func(name string, lose map[string]int) {
		t.Helper()
		start := a.quiet()
		before := map[string][]string{}
		for _, v := range jobs {
			before[v.id] = ids(a.running(v.id, v.count, 20*time.Second))
		}
		a.place(volume{id: name, priority: 4, count: 30, cpu: 10, memory: 10})
		w.upTo(t, a.quiet())
		placed := w.placed(name, start)
		if len(placed) != 30 {
			t.Errorf("%s: %d were placed, want 30", name, len(placed))
		}
		for _, v := range jobs {
			left := a.running(v.id, v.count-lose[v.id], 20*time.Second)
			a.missing(v.id, lose[v.id])
			w.upTo(t, a.quiet())
			stopped := w.stopped(v.id, structs.AllocDesiredEvict, start)
			if len(stopped) != lose[v.id] || len(w.placed(v.id, start)) != 0 {
				t.Errorf("%s: %d of %s were taken and %d came, want %d and none", name, len(stopped), v.id, len(w.placed(v.id, start)), lose[v.id])
			}
			for id, index := range stopped {
				if !slices.Contains(slices.Collect(maps.Values(placed)), index) {
					t.Errorf("%s: %s of %s was taken at index %d, where nothing of %s came", name, id, v.id, index, name)
				}
			}
			for _, id := range ids(left) {
				if !slices.Contains(before[v.id], id) {
					t.Errorf("%s: %s of %s is new", name, id, v.id)
				}
				for _, c := range w.of(id, start) { // its client may still tell that it is healthy
					if c.is() != "run/running" {
						t.Errorf("%s: %s of %s, which stays, was touched: %s at index %d", name, id, v.id, c.is(), c.index)
					}
				}
			}
			for _, alloc := range a.whole(left) {
				s := alloc.TaskStates["t"]
				starts := 0
				for _, e := range s.Events {
					if e.Type == structs.TaskStarted {
						starts++
					}
				}
				if s.Restarts != 0 || s.State != structs.TaskStateRunning || starts != 1 || alloc.PreemptedByAllocation != "" {
					t.Errorf("%s: %s of %s: %+v", name, alloc.ID, v.id, s)
				}
			}
		}
		a.stop(name)
		for _, v := range jobs { // all come back
			kept := ids(a.running(v.id, v.count, 20*time.Second))
			w.upTo(t, a.quiet())
			if came := len(w.placed(v.id, start)); came != lose[v.id] || len(kept) != v.count {
				t.Errorf("%s: %d of %s came back, want %d", name, came, v.id, lose[v.id])
			}
			a.missing(v.id, 0)
		}
	}
	a.set("-max-requeues", "1000") // the same instances are preempted in every round
	rounds := 10
	if raced {
		rounds = 3 // all is ten times as slow
	}
	for i := range rounds {
		round(fmt.Sprintf("e-%d", i), map[string]int{"b": 4, "c": 9})
	}
	// C is kept whole, so B loses more. B's own band is above C's: it must not take C's room in its turn to be seen so.
	a.set("-keep-whole", "-preempt-batch-scheduler=false")
	round("whole", map[string]int{"b": 10})
	a.set("-keep-whole=false", "-preempt-batch-scheduler=true")
	round("again", map[string]int{"b": 4, "c": 9})
}

// TestBands: a job takes from lower bands only. One of its own band, however much lower, is not touched, and the switches take
// effect at once, for what waits already too.
func TestBands(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, preempting(`bands = [[1, 4], [5, 7], [8, 10]]`), plainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	for _, p := range []int{4, 7, 8} {
		a.place(volume{id: fmt.Sprintf("p%d", p), priority: p, count: 1, cpu: 300, memory: 300})
	}
	start := a.quiet()
	// 100 MHz are free. A 9 takes the 4 first, then the 7, never the 8.
	a.place(volume{id: "first", priority: 9, count: 1, cpu: 300, memory: 300})
	a.running("p4", 0, 20*time.Second)
	a.place(volume{id: "second", priority: 9, count: 1, cpu: 300, memory: 300})
	a.running("p7", 0, 20*time.Second)
	a.submitVolume(volume{id: "third", priority: 10, count: 1, cpu: 300, memory: 300})
	a.missing("third", 1)
	w.upTo(t, a.quiet())
	for job, want := range map[string]int{"p4": 1, "p7": 1, "p8": 0, "first": 0, "second": 0, "third": 0} {
		if got := len(w.stopped(job, structs.AllocDesiredEvict, start)); got != want {
			t.Errorf("%d of %s were taken, want %d", got, job, want)
		}
	}
	// With an own band for the 10, it takes the 8 at once.
	a.set("-bands", "1-4,5-7,8-8,9-9,10-10")
	a.running("third", 1, 20*time.Second)
	a.running("p8", 0, 20*time.Second)
	w.upTo(t, a.quiet())
	for _, job := range []string{"first", "second"} {
		if got := len(w.stopped(job, structs.AllocDesiredEvict, start)); got != 0 {
			t.Errorf("%d of %s were taken", got, job)
		}
	}
	for _, job := range []string{"p4", "p7", "p8"} {
		a.missing(job, 1)
	}
}

// TestPreemptionSwitches: whether jobs of a type preempt is changed while they wait. System jobs do in a new cluster.
func TestPreemptionSwitches(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, patient, plainNodes("n", 1, 1000, 1000))
	a.place(volume{id: "low", priority: 10, count: 10, cpu: 100, memory: 10})
	a.submitVolume(volume{id: "high", priority: 90, count: 2, cpu: 100, memory: 10})
	a.missing("high", 2)
	a.submitVolume(volume{id: "batch", kind: "batch", priority: 90, count: 1, cpu: 100, memory: 10})
	a.missing("batch", 1)
	a.quiet()
	a.running("low", 10, 5*time.Second)

	a.place(volume{id: "system", kind: "system", priority: 90, count: 1, cpu: 200, memory: 10})
	a.running("low", 8, 20*time.Second)
	a.missing("low", 2)
	a.missing("high", 2)

	a.set("-preempt-batch-scheduler=true")
	a.running("batch", 1, 20*time.Second)
	a.running("low", 7, 20*time.Second)
	a.missing("high", 2)

	a.set("-preempt-service-scheduler=true")
	a.running("high", 2, 20*time.Second)
	a.running("low", 5, 20*time.Second)
	a.missing("low", 5)

	a.set("-preempt-service-scheduler=false", "-preempt-system-scheduler=false")
	a.submitVolume(volume{id: "late", priority: 100, count: 1, cpu: 100, memory: 10})
	a.submitVolume(volume{id: "system-2", kind: "system", priority: 100, count: 1, cpu: 100, memory: 10})
	a.missing("late", 1)
	a.missing("system-2", 1)
	a.quiet()
	a.running("low", 5, 5*time.Second)
	a.set("-preempt-system-scheduler=true")
	a.running("system-2", 1, 20*time.Second)
	a.running("low", 4, 20*time.Second)
	a.missing("late", 1)
}

// TestPartial: a request that does not get all takes all it can, only what is free, or nothing, as its job says; a gang nothing.
func TestPartial(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 1, preempting(""), plainNodes("n", 1, 1000, 1000))
	w := watchRoom(t, a)
	a.place(volume{id: "keeps", priority: 60, count: 4, cpu: 100, memory: 10})
	a.place(volume{id: "low", priority: 10, count: 4, cpu: 100, memory: 10}) // 200 are free
	f := func(id, partial, gang string, runs, lost int) {
		t.Helper()
		start := a.quiet()
		v := volume{id: id, priority: 60, count: 9, cpu: 100, memory: 10, group: gang}
		if partial != "" {
			v.job = fmt.Sprintf("partial = %q", partial)
		}
		a.submitVolume(v)
		a.missing(id, 9-runs)
		a.running(id, runs, 20*time.Second)
		w.upTo(t, a.quiet())
		if got := len(w.stopped("low", structs.AllocDesiredEvict, start)); got != lost {
			t.Errorf("%s: %d were taken, want %d", id, got, lost)
		}
		if len(w.stopped("keeps", structs.AllocDesiredEvict, start)) != 0 {
			t.Errorf("%s takes from its own band", id)
		}
		a.stop(id)
		a.running("low", 4, 20*time.Second)
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
	a := startLayouts(t, 1, preempting(""), plainNodes("n", 1, 1000, 1000))
	victim := a.place(volume{id: "low", priority: 10, count: 1, cpu: 1000, memory: 10})[0]
	taker := a.place(volume{id: "high", priority: 90, count: 1, cpu: 1000, memory: 10})[0]
	lost, _, err := a.nomad.Allocations().Info(victim.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	won, _, err := a.nomad.Allocations().Info(taker.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lost.DesiredStatus != "evict" || lost.PreemptedByAllocation != taker.ID || !strings.Contains(lost.DesiredDescription, taker.ID) {
		t.Errorf("the victim says %s %q by %q", lost.DesiredStatus, lost.DesiredDescription, lost.PreemptedByAllocation)
	}
	if !slices.Equal(won.PreemptedAllocations, []string{victim.ID}) {
		t.Errorf("the taker says that it took %v", won.PreemptedAllocations)
	}
	evals, _, err := a.api.Jobs().Evaluations(t.Context(), "low", nil)
	if err != nil || !slices.ContainsFunc(evals, func(e *structs.Evaluation) bool { return e.TriggeredBy == structs.EvalTriggerPreemption }) {
		t.Errorf("no evaluation of the victim's job says that it was preempted: %v", err)
	}
	// A plan says what it would take, and takes nothing.
	dry := func(v volume) *nomad.JobPlanResponse {
		t.Helper()
		plan, _, err := a.nomad.Jobs().Plan(planned(t, a, v), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := dry(volume{id: "peer", priority: 95, count: 1, cpu: 1000, memory: 10}); plan.FailedTGAllocs["g"] == nil {
		t.Errorf("of the same band it would wait: %+v", plan.Annotations)
	}
	a.set("-bands", "1-40,41-90,91-100")
	plan := dry(volume{id: "peer", priority: 95, count: 1, cpu: 1000, memory: 10})
	if plan.FailedTGAllocs["g"] != nil || len(plan.Annotations.PreemptedAllocs) != 1 || plan.Annotations.PreemptedAllocs[0].ID != taker.ID {
		t.Errorf("of a higher band it would take the place: %+v", plan.Annotations)
	}
	a.running("high", 1, 5*time.Second)
}

// planned is a volume as the official client sends it.
func planned(t *testing.T, a *agent, v volume) *nomad.Job {
	t.Helper()
	job, err := a.nomad.Jobs().ParseHCL(v.text(), true)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

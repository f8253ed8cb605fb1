package trace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func TestWaitsAndUse(t *testing.T) {
	p := replayOf(machines(1, 8000, 8000, 2),
		gpuRow(0, 10, 2).with(named("a")), gpuRow(1, 5, 1).with(named("b")), gpuRow(2, 100, 1).with(named("c")))
	f := p.run(t)
	p.starts(t, map[string]int{"a": 0, "b": 10, "c": 10})
	if c := f.Counts; c.Jobs != 3 || c.Placed != 3 || c.Completed != 3 || c.Starts != 3 || c.Never != 0 {
		t.Errorf("counts %+v", c)
	}
	if f.Span.End != 110 || f.Span.LastArrival != 2 {
		t.Errorf("span %+v", f.Span)
	}
	// 2 GPUs for 10 s, 2 for 5 s, 1 for 95 s, of 2 × 110.
	if want := round(125.0/220, 6); f.All.GPU != want {
		t.Errorf("%v of the GPUs were held, want %v", f.All.GPU, want)
	}
	if f.Loaded.GPU != 1 {
		t.Errorf("%v of the GPUs were held up to the last arrival, want all", f.Loaded.GPU)
	}
	if w := f.Waits; w.Jobs != 3 || w.Mean != round(17.0/3, 6) || w.Max != 9 || w.P50 < 7.9 || w.P50 > 8.1 {
		t.Errorf("waits %+v", w)
	}
	if len(f.BySize) != 2 || f.BySize[0].Of != "1 GPU" || f.BySize[0].Jobs != 2 || f.BySize[1].GPUHours != round(20.0/3600, 6) {
		t.Errorf("by size %+v", f.BySize)
	}
}

func TestRankAndBackfill(t *testing.T) {
	prio := func(name string, n int) func(*Row) { return func(r *Row) { r.Name, r.Priority = name, n } }
	p := replayOf(machines(1, 8000, 8000, 4),
		gpuRow(0, 10, 4).with(named("first")), gpuRow(1, 10, 4).with(prio("low", 20)), gpuRow(2, 10, 4).with(prio("high", 80)),
		gpuRow(3, 10, 4).with(prio("middle", 50)), gpuRow(4, 10, 4).with(prio("low2", 20)))
	p.run(t)
	p.starts(t, map[string]int{"first": 0, "high": 10, "middle": 20, "low": 30, "low2": 40})

	// What does not fit lets smaller ones pass.
	p = replayOf(machines(1, 8000, 8000, 4),
		gpuRow(0, 100, 3).with(named("a")), gpuRow(1, 10, 4).with(named("large")), gpuRow(2, 10, 1).with(named("small")))
	p.run(t)
	p.starts(t, map[string]int{"a": 0, "small": 2, "large": 100})
}

func TestGangsCountsAndLimits(t *testing.T) {
	gang := func(r *Row) { r.Name, r.Count, r.Gang = "gang", 3, true }
	p := replayOf(machines(3, 8000, 8000, 1), gpuRow(0, 10, 1).with(named("a")), gpuRow(1, 10, 1).with(gang))
	f := p.run(t)
	p.starts(t, map[string]int{"a": 0, "gang": 10})
	if f.Counts.Starts != 4 || f.Span.End != 20 {
		t.Errorf("counts %+v, span %+v", f.Counts, f.Span)
	}
	// Without a gang, instances start as they find room; the wait ends with the last.
	p = replayOf(machines(3, 8000, 8000, 1), gpuRow(0, 10, 1).with(named("a")),
		gpuRow(1, 30, 1).with(func(r *Row) { r.Name, r.Count = "many", 5 }))
	f = p.run(t)
	p.starts(t, map[string]int{"many": 31})
	if f.Counts.Starts != 6 || f.Counts.Completed != 2 || f.Span.End != 61 {
		t.Errorf("counts %+v, span %+v", f.Counts, f.Span)
	}
	// A time limit ends what would run longer.
	p = replayOf(machines(1, 8000, 8000, 1), gpuRow(0, 100, 1).with(func(r *Row) { r.Name, r.MaxRun = "cut", sec(7) }), gpuRow(1, 1, 1).with(named("b")))
	f = p.run(t)
	p.starts(t, map[string]int{"cut": 0, "b": 7})
	if f.Counts.CutShort != 1 {
		t.Errorf("counts %+v", f.Counts)
	}
}

func TestModelsAndShares(t *testing.T) {
	nodes := append(modelMachines("a", 1, 8000, 8000, 2, "A"), modelMachines("b", 1, 8000, 8000, 2, "B")...)
	on := func(name string, models ...string) func(*Row) {
		return func(r *Row) { r.Name, r.Models = name, models }
	}
	share := func(name string, milli int) func(*Row) { return func(r *Row) { r.Name, r.Share = name, milli } }
	p := replayOf(nodes, gpuRow(0, 10, 2).with(on("b1", "B")), gpuRow(1, 10, 1).with(on("b2", "B")), gpuRow(2, 10, 1).with(on("either", "A", "B")),
		gpuRow(3, 10, 1).with(share("s1", 600)), gpuRow(4, 10, 1).with(share("s2", 500)), gpuRow(5, 10, 1).with(share("s3", 400)))
	f := p.run(t)
	// s1 opens the second GPU of A, s2 finds no room beside it, s3 does.
	p.starts(t, map[string]int{"b1": 0, "b2": 10, "either": 2, "s1": 3, "s2": 10, "s3": 5})
	if f.Counts.Never != 0 {
		t.Errorf("counts %+v", f.Counts)
	}
	p = replayOf(nodes, gpuRow(0, 10, 1).with(on("c", "C")), gpuRow(0, 10, 3).with(named("large")), gpuRow(1, 1, 1).with(named("x")))
	if f = p.run(t); f.Counts.Never != 2 || f.Counts.Completed != 1 || f.Waits.Never != 2 {
		t.Errorf("counts %+v", f.Counts)
	}
}

func TestReclaimed(t *testing.T) {
	preempt := func(p *placed) *placed {
		p.c.Scheduler.PreemptionConfig.BatchSchedulerEnabled = true
		return p
	}
	low := func(r *Row) { r.Name, r.Priority = "low", 10 }
	high := func(r *Row) { r.Name, r.Priority = "high", 90 }
	p := preempt(replayOf(machines(1, 8000, 8000, 2), gpuRow(0, 100, 2).with(low), gpuRow(40, 10, 2).with(high)))
	f := p.run(t)
	p.starts(t, map[string]int{"low": 0, "high": 40})
	// It begins again at 50, and the first 40 s of both GPUs were in vain.
	if f.Counts.Requeued != 1 || f.Counts.Starts != 3 || f.Span.End != 150 || f.Counts.LostGPUHrs != round(80.0/3600, 6) {
		t.Errorf("counts %+v, span %+v", f.Counts, f.Span)
	}
	suspend := func(r *Row) { r.Reclaim = structs.ReclaimSuspend }
	p = preempt(replayOf(machines(1, 8000, 8000, 2), gpuRow(0, 100, 2).with(low).with(suspend), gpuRow(40, 10, 2).with(high)))
	// A suspended process keeps the memory of its GPUs.
	if f = p.run(t); f.Counts.Suspended != 0 || f.Counts.Requeued != 1 {
		t.Errorf("counts %+v", f.Counts)
	}
	cpus := func(r *Row) { r.GPUs, r.CPU = 0, 8000 }
	p = preempt(replayOf(machines(1, 8000, 8000, 2), gpuRow(0, 100, 0).with(low).with(suspend).with(cpus), gpuRow(40, 10, 0).with(high).with(cpus)))
	f = p.run(t)
	// It goes on at 50 with the 60 s that were left.
	if f.Counts.Suspended != 1 || f.Counts.Resumed != 1 || f.Counts.Requeued != 0 || f.Counts.Completed != 2 || f.Span.End != 110 {
		t.Errorf("counts %+v, span %+v", f.Counts, f.Span)
	}
	// What was taken back goes before what never was, within its band.
	p = preempt(replayOf(machines(1, 8000, 8000, 2), gpuRow(0, 100, 2).with(low), gpuRow(1, 10, 2).with(func(r *Row) { r.Name, r.Priority = "waits", 12 }),
		gpuRow(40, 10, 2).with(high)))
	p.run(t)
	p.starts(t, map[string]int{"high": 40, "waits": 150})
	// Without preemption nobody is taken from.
	p = replayOf(machines(1, 8000, 8000, 2), gpuRow(0, 100, 2).with(low), gpuRow(40, 10, 2).with(high))
	p.run(t)
	p.starts(t, map[string]int{"high": 100})
}

func TestDrop(t *testing.T) {
	p := replayOf(machines(2, 8000, 8000, 2), gpuRow(0, 1, 2), gpuRow(1, 1, 1), gpuRow(2, 1, 2), gpuRow(3, 1, 1))
	p.c.Drop = true
	f := p.run(t)
	if c := f.Counts; c.Placed != 3 || c.Dropped != 1 || c.Arrived != 6000 || f.Final.GPUMilli != 4000 || f.Mode != "drop" {
		t.Errorf("counts %+v, held %+v", c, f.Final)
	}
	want := []Point{{50, 0.5, 0, 1}, {75, 0.75, 0, 1}, {125, 0.75, 0, 1}, {150, 1, 0, 1}}
	if len(f.Arrived) != len(want) {
		t.Fatalf("points %+v", f.Arrived)
	}
	for i, x := range f.Arrived {
		if x.Arrived != want[i].Arrived || x.Allocated != want[i].Allocated {
			t.Errorf("point %+v, want %+v", x, want[i])
		}
	}
	p.c.Until = 1.2
	if f = p.run(t); f.Counts.Jobs != 3 {
		t.Errorf("%d rows until 120 %%, want 3", f.Counts.Jobs)
	}
}

// BestFit takes the machine that is left with least, by its published score.
func TestBestFit(t *testing.T) {
	nodes := machines(3, 8000, 8000, 2)
	rows := []Row{gpuRow(0, 1, 1), gpuRow(1, 1, 1), gpuRow(2, 1, 2)}
	p := replayOf(nodes, rows...)
	p.c.Drop, p.c.Chooser, p.c.PolicyName = true, &BestFit{Rank: map[string]int{"m-000": 2, "m-001": 0, "m-002": 1}}, "best"
	l, err := NewLedger(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := p.c.Chooser.Choose(l, &rows[0]); !ok || l.Machines[at].Name != "m-001" {
		t.Errorf("chose %d of equal ones, want that of the lowest rank", at)
	}
	f := p.run(t)
	if f.Policy != "best" || f.Counts.Dropped != 0 || f.Final.GPUMilli != 4000 {
		t.Errorf("%+v", f.Counts)
	}
	if _, ok := p.c.Chooser.Choose(l, &Row{Count: 1, GPUs: 3}); ok {
		t.Error("chose a machine for what fits nowhere")
	}
	p.c.Drop = false
	if _, _, err := Run(p.c); err == nil {
		t.Error("a chooser was taken where work leaves")
	}
}

func TestRefused(t *testing.T) {
	f := func(want string, rows ...Row) {
		t.Helper()
		_, _, err := Run(replayOf(machines(1, 1000, 1000, 1), rows...).c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	bad := func(change func(*Row)) Row { return gpuRow(0, 1, 1).with(change) }
	f("row 2 arrives at 1s, before the one above it (5s)", gpuRow(5, 1, 1), gpuRow(1, 1, 1))
	f("count 0: must be 1 to", bad(func(r *Row) { r.Count = 0 }))
	f("cpu -1: must be 0 to", bad(func(r *Row) { r.CPU = -1 }))
	f("memory -1: must be 0 to", bad(func(r *Row) { r.MemoryMB = -1 }))
	f("gpus -1: must be 0 to", bad(func(r *Row) { r.GPUs = -1 }))
	f("share 500: a part of a GPU is requested with gpus 1", bad(func(r *Row) { r.GPUs, r.Share = 2, 500 }))
	f("duration -1s: must be", bad(func(r *Row) { r.Duration = -sec(1) }))
	f("max_run_duration -1s: must be", bad(func(r *Row) { r.MaxRun = -sec(1) }))
	f("priority 101: must be", bad(func(r *Row) { r.Priority = 101 }))
	f(`reclaim "kill": must be "requeue" or "suspend"`, bad(func(r *Row) { r.Reclaim = "kill" }))
	f(`tenant "a b": must be letters`, bad(func(r *Row) { r.Tenant = "a b" }))
	f("model A: is stated, but gpus is 0", bad(func(r *Row) { r.GPUs, r.Models = 0, []string{"A"} }))

	c := replayOf(machines(1, 1000, 1000, 1), gpuRow(0, 1, 1)).c
	c.Scheduler.SchedulerAlgorithm = "best"
	if _, _, err := Run(c); err == nil || !strings.Contains(err.Error(), "scheduler configuration") {
		t.Errorf("error %v for an unknown algorithm", err)
	}
	twice := replayOf(append(machines(1, 1, 1, 1), machines(1, 1, 1, 1)...), gpuRow(0, 1, 1)).c
	if _, _, err := Run(twice); err == nil || !strings.Contains(err.Error(), "its ID m-000 is another's too") {
		t.Errorf("error %v for two nodes of one ID", err)
	}
	broken := errors.New("line 7 is broken")
	c = replayOf(machines(1, 1000, 1000, 1)).c
	c.Rows = func(yield func(*Row, error) bool) { yield(nil, broken) }
	if _, _, err := Run(c); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
}

// A reporter that fails ends the replay: so is it cancelled.
func TestCancelled(t *testing.T) {
	stop := errors.New("stop")
	c := replayOf(machines(1, 1000, 1000, 1)).c
	c.Rows = load(5*reportEvery, time.Second, 1, func(r *Row, _ uint64) { r.Duration = time.Second })
	var seen Progress
	c.Report = func(p Progress) error { seen = p; return stop }
	if _, _, err := Run(c); !errors.Is(err, stop) || seen.Rows != reportEvery {
		t.Errorf("error %v after %d rows", err, seen.Rows)
	}
}

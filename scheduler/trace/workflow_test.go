package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// stageRow is a job of a stage of a workflow, of so many cores; times are seconds.
func stageRow(workflow string, arrival, stage, duration, cores int, lend ...string) Row {
	w := &WorkflowRow{Name: workflow, Stage: stage}
	for _, to := range lend {
		w.Lend = append(w.Lend, &structs.WorkflowLend{To: to})
	}
	return Row{
		Name: fmt.Sprintf("%s%d", workflow, stage), Arrival: sec(arrival), Duration: sec(duration), MaxRun: sec(duration), Count: 1, CPU: cores * 1000,
		Workflow: w,
	}
}

// coreRow is a single job of so many cores, which states its duration as its limit.
func coreRow(arrival, duration, cores int) Row {
	return Row{Arrival: sec(arrival), Duration: sec(duration), MaxRun: sec(duration), Count: 1, CPU: cores * 1000}
}

// flood is single jobs of one core, one each second.
func flood(n, duration int, change func(*Row)) (rows []Row) {
	for i := range n {
		rows = append(rows, coreRow(i, duration, 1).with(change))
	}
	return rows
}

func byArrival(rows ...Row) []Row {
	slices.SortStableFunc(rows, func(a, b Row) int { return int(min(1, max(-1, a.Arrival-b.Arrival))) })
	return rows
}

func workflowReplay(t tester, mode string, cores int, rows ...Row) (*placed, *Figures) {
	t.Helper()
	p := replayOf(machines(1, cores*1000, 100_000, 0), rows...)
	p.c.Reservations = mode
	return p, p.run(t)
}

// The golden example of docs/design/semantics.md, part 5: stages of 2, 6, 6 and 8 cores on a node of 8, beside jobs that would fill it.
func TestWorkflowsGolden(t *testing.T) {
	chip := []Row{
		stageRow("chip", 1, 1, 100, 2, "node_pool:default"), stageRow("chip", 1, 2, 100, 6), stageRow("chip", 1, 3, 100, 6), stageRow("chip", 1, 4, 100, 8),
	}
	// The limits are longer than the stages, so that borrowers are there when a stage ends.
	for i := range chip {
		chip[i].MaxRun = sec(200)
	}
	rows := byArrival(append(chip, flood(100, 70, func(r *Row) {
		if r.Arrival < sec(2) {
			r.Arrival = sec(2)
		}
	})...)...)
	p, f := workflowReplay(t, ReservationsLend, 8, rows...)
	p.starts(t, map[string]int{"chip1": 1, "chip2": 101, "chip3": 201, "chip4": 301})
	w := f.Workflows
	if w.StageWaits.Max != 0 || w.Makespan.Max != 400 || w.Completed != 1 || w.TakenBack != 6 || f.Counts.Requeued != 6 {
		t.Errorf("%+v, requeued %d; want stages that wait for nobody, and 0, 4, 0 and 2 taken back", w, f.Counts.Requeued)
	}
	// Lent are 6, 2, 2 and 0 of 8 cores for 100 s each.
	if got, want := w.CPU, (ReservedHours{3200, 2200, 1000, 0}); !near(got.Reserved*3600, want.Reserved) || !near(got.Used*3600, want.Used) || got.Lent*3600 < 0.9*want.Lent {
		t.Errorf("core seconds %+v, want about %+v", w.CPU, want)
	}
	p, f = workflowReplay(t, ReservationsWhole, 8, rows...)
	p.starts(t, map[string]int{"chip1": 1, "chip2": 101, "chip3": 201, "chip4": 301})
	if w := f.Workflows; w.CPU.Lent != 0 || w.TakenBack != 0 || !near(w.CPU.Idle*3600, 1000) || f.Counts.Requeued != 0 {
		t.Errorf("%+v, want nothing lent", w)
	}
	_, f = workflowReplay(t, ReservationsNone, 8, rows...)
	if w := f.Workflows; w.StageWaits.Max == 0 || w.CPU.Reserved != 0 || w.Completed != 1 {
		t.Errorf("%+v, want stages that wait behind the single jobs", w)
	}
}

// Where batch jobs preempt, a workflow takes what it reserves from lower bands, which run again after it; where they do not, it waits for them.
func TestWorkflowsPreempt(t *testing.T) {
	rows := []Row{
		coreRow(0, 50, 4).with(func(r *Row) { r.Name, r.Priority = "low", 10 }), coreRow(0, 30, 4).with(func(r *Row) { r.Name, r.Priority = "same", 60 }),
		stageRow("w", 5, 1, 20, 4).with(func(r *Row) { r.Priority = 60 }),
	}
	for _, bands := range []bool{false, true} {
		p := replayOf(machines(1, 8000, 100_000, 0), rows...)
		p.c.Reservations, p.c.Scheduler.PreemptionConfig.BatchSchedulerEnabled = ReservationsLend, bands
		f := p.run(t)
		want := [3]int{30, 50, 0}
		if bands {
			want = [3]int{5, 75, 1}
		}
		if got := [3]int{p.at["w1"], int(f.Span.End), int(f.Counts.Requeued)}; got != want || f.Counts.Completed != 3 {
			t.Errorf("bands %v: the workflow started, all ended, requeued: %v, want %v; %d completed", bands, got, want, f.Counts.Completed)
		}
	}
}

func near(a, b float64) bool { return a > b*0.999-1e-6 && a < b*1.001+1e-6 }

// Who borrows is decided by the lend blocks and by time limits.
func TestWorkflowsLendTo(t *testing.T) {
	for _, x := range []struct {
		name, to string
		job      Row
		at       int
	}{
		{"named", "namespace:a", coreRow(5, 10, 4), 5},
		{"named by pool", "node_pool:default", coreRow(5, 10, 4), 5},
		{"not named", "namespace:b", coreRow(5, 10, 4), 100},
		{"too long", "namespace:a", coreRow(5, 96, 4), 100},
		{"ends with the stage", "namespace:a", coreRow(5, 95, 4), 5},
		{"without a limit", "namespace:a", coreRow(5, 10, 4).with(func(r *Row) { r.MaxRun = 0 }), 100},
	} {
		x.job.Name, x.job.Tenant = "single", "a"
		p, f := workflowReplay(t, ReservationsLend, 8, stageRow("w", 0, 1, 50, 3, x.to), stageRow("w", 0, 1, 100, 1), stageRow("w", 0, 2, 0, 8), x.job)
		if p.at["single"] != x.at || f.Workflows.StageWaits.Max != 0 {
			t.Errorf("%s: started at %d, want %d; %+v", x.name, p.at["single"], x.at, f.Workflows)
		}
	}
}

// The workflow of the highest priority is the first to get what comes free, and a second one that fits beside it starts, too.
func TestWorkflowsByPriority(t *testing.T) {
	of := func(name string, priority, cores int) Row {
		return stageRow(name, 1, 1, 100, cores).with(func(r *Row) { r.Priority = priority })
	}
	p, f := workflowReplay(t, ReservationsLend, 8, coreRow(0, 10, 6), of("low", 30, 8), of("high", 70, 8), of("small", 20, 4), of("tiny", 10, 4))
	p.starts(t, map[string]int{"high1": 10, "low1": 110, "small1": 210, "tiny1": 210})
	if f.Workflows.Start.Max != 209 {
		t.Errorf("%+v", f.Workflows.Start)
	}
	// What can never be reserved keeps nothing, and is reported.
	p, f = workflowReplay(t, ReservationsLend, 8, of("huge", 90, 9), of("small", 20, 4))
	p.starts(t, map[string]int{"small1": 1})
	if f.Workflows.Never != 1 || f.Counts.Never != 1 || f.Counts.Completed != 1 {
		t.Errorf("%+v, counts %+v", f.Workflows, f.Counts)
	}
}

func TestWorkflowsRefused(t *testing.T) {
	of := func(change func(*Row)) Row { return stageRow("w", 0, 1, 10, 1).with(change) }
	for want, rows := range map[string][]Row{
		"stage 3 comes after stage 1":                    {stageRow("w", 0, 1, 10, 1), stageRow("w", 0, 3, 10, 1)},
		"stage 2 comes after stage 0":                    {stageRow("w", 0, 2, 10, 1)},
		"its rows must stand one after the other":        {stageRow("w", 0, 1, 10, 1), coreRow(0, 1, 1), stageRow("w", 0, 2, 10, 1)},
		`workflow "a b": must be`:                        {of(func(r *Row) { r.Workflow.Name = "a b" })},
		`reserve "half": must be "max" or "sum"`:         {of(func(r *Row) { r.Workflow.Reserve = "half" })},
		"stage 0: must be 1 to":                          {of(func(r *Row) { r.Workflow.Stage = 0 })},
		"duration: must be stated":                       {of(func(r *Row) { r.Duration = Forever })},
		"max_run_duration 5s: must not be less than the": {of(func(r *Row) { r.MaxRun = sec(5) })},
	} {
		p := replayOf(machines(1, 8000, 1000, 1), rows...)
		p.c.Reservations = ReservationsLend
		if _, _, err := Run(p.c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(*Config){
		`reservations "some": must be one of none, whole, lend`: func(c *Config) { c.Reservations = "some" },
		"the replay states no way of reservations":              func(c *Config) { c.Reservations = "" },
		"cannot be combined with the mode drop":                 func(c *Config) { c.Drop = true },
		"not replayed together with virtual clusters":           func(c *Config) { c.VirtualClusters = []*structs.VirtualCluster{{Name: "a"}}; c.Sharing = SharingQueue },
	} {
		p := replayOf(machines(1, 8000, 1000, 0), stageRow("w", 0, 1, 10, 1))
		p.c.Reservations = ReservationsLend
		if change(&p.c); true {
			if _, _, err := Run(p.c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
}

// drawMix draws workflows and single jobs that each fit on a node of 8 cores and 2 GPUs.
func drawMix(t *rapid.T) (rows []Row) {
	at := 0
	for i := range rapid.IntRange(1, 8).Draw(t, "things") {
		at += rapid.IntRange(0, 30).Draw(t, "pause")
		cores := func() int { return rapid.IntRange(0, 8).Draw(t, "cores") }
		limit := func(r *Row) {
			r.MemoryMB = rapid.SampledFrom([]int{0, 300}).Draw(t, "memory")
			r.Priority = rapid.SampledFrom([]int{0, 20, 80}).Draw(t, "priority")
			r.Reclaim = rapid.SampledFrom([]string{"", structs.ReclaimSuspend}).Draw(t, "reclaim")
			if r.MaxRun = 0; rapid.Bool().Draw(t, "limited") {
				r.MaxRun = r.Duration + sec(rapid.IntRange(0, 20).Draw(t, "spare"))
			}
		}
		if rapid.Bool().Draw(t, "single") {
			row := coreRow(at, rapid.IntRange(0, 40).Draw(t, "duration"), cores()).with(limit)
			row.Count, row.GPUs, row.Tenant = rapid.IntRange(1, 3).Draw(t, "count"), rapid.IntRange(0, 2).Draw(t, "gpus"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")
			rows = append(rows, row)
			continue
		}
		for stage := range rapid.IntRange(1, 4).Draw(t, "stages") {
			for range rapid.IntRange(1, 3).Draw(t, "jobs") {
				row := stageRow(fmt.Sprint("w", i), at, stage+1, rapid.IntRange(0, 40).Draw(t, "duration"), cores()).with(limit)
				row.Count, row.GPUs = rapid.IntRange(1, 2).Draw(t, "count"), rapid.IntRange(0, 1).Draw(t, "gpus")
				row.Gang = rapid.Bool().Draw(t, "gang")
				if row.GPUs == 1 {
					row.Share = rapid.SampledFrom([]int{0, 300, 500}).Draw(t, "share")
				}
				row.Workflow.Reserve = rapid.SampledFrom([]string{"", structs.ReserveSum}).Draw(t, "reserve")
				row.Workflow.Lend = rapid.SampledFrom([][]*structs.WorkflowLend{
					nil, {{To: "namespace:a", LendLonger: true}}, {{To: "node_pool:default", LendLonger: true}}, {{To: "namespace:a", Share: 1}, {To: "namespace:b", Share: 2}},
				}).Draw(t, "lend")
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// Whatever comes, no stage of a workflow with a reservation waits after the one before, every job ends once or its workflow never began, what is
// reserved is used, lent or idle, and a second replay gives the same.
func TestWorkflowsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawMix(t)
		nodes := rapid.IntRange(1, 2).Draw(t, "nodes")
		for _, mode := range Reservations() {
			replay := func() *Figures {
				p := replayOf(machines(nodes, 8000, 2000, 2), rows...)
				p.c.Reservations = mode
				p.c.Scheduler.ReservationAfter = time.Minute
				return p.run(t)
			}
			f := replay()
			w, c := f.Workflows, f.Counts
			if c.Jobs != int64(len(rows)) || c.Completed+c.Never != c.Jobs || w.Completed+w.Never != w.Workflows {
				t.Errorf("%s: of %d jobs %+v; %+v", mode, len(rows), c, w)
			}
			if c.Never == 0 && f.Final != (Amounts{}) {
				t.Errorf("%s: in use in the end %+v", mode, f.Final)
			}
			if mode != ReservationsNone && w.StageWaits.Max != 0 {
				t.Errorf("%s: stages waited %+v", mode, w.StageWaits)
			}
			for _, h := range []ReservedHours{w.CPU, w.GPU} {
				if !near(h.Used+h.Lent+h.Idle, h.Reserved) || mode == ReservationsNone && h.Reserved != 0 || mode == ReservationsWhole && h.Lent != 0 {
					t.Errorf("%s: %+v do not add up", mode, h)
				}
			}
			if a, b := asJSON(t, f), asJSON(t, replay()); a != b {
				t.Errorf("%s: a second replay gives\n%s\nnot\n%s", mode, b, a)
			}
		}
	})
}

// A workflow that waits for its reservation waits for single jobs, not for the end of another workflow, where the nodes have the room; what comes free there
// it keeps, whatever idles of the other one's reservation, or is lent.
func TestWorkflowsBesideEachOther(t *testing.T) {
	for _, nodes := range []int{1, 2} { // the first workflow has a half of them
		for _, mode := range []string{ReservationsWhole, ReservationsLend} {
			rows := byArrival(slices.Concat([]Row{
				stageRow("first", 0, 1, 1000, 1, "node_pool:default"), stageRow("first", 0, 2, 10, 4*nodes), stageRow("second", 20, 1, 50, 4),
			}, flood(200, 30, func(r *Row) { r.Arrival += sec(2) }))...)
			p := replayOf(machines(nodes, 8000, 100_000, 0), rows...)
			p.c.Reservations = mode
			f := p.run(t)
			if at := p.at["second1"]; at != 35 || f.Workflows.StageWaits.Max != 0 || p.at["first2"] != 1000 {
				t.Errorf("%s on %d nodes: the second started at %d, want 35; %+v", mode, nodes, at, f.Workflows)
			}
		}
	}
}

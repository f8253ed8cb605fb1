package forecast_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/whatif"
	"github.com/nomadish/nomadish/structs"
)

// run makes a what-if of changes, with all that runs taking all the time that it may.
func run(t *testing.T, r forecast.Reality, changes ...*structs.WhatIfChange) *structs.WhatIf {
	t.Helper()
	w, err := whatif.Run(t.Context(), r.Store(), &structs.WhatIfRequest{Changes: changes, Latest: true}, whatif.Options{Now: r.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// makeAll makes changes in earnest, each when it is due.
func makeAll(t *testing.T, r forecast.Reality, changes func() []*structs.WhatIfChange) {
	t.Helper()
	begin := r.Now()
	c := whatif.NewChanger(r.Store(), r, r.Now, r.NewID, whatif.Rules{})
	for _, ch := range changes() {
		if at := begin.Add(ch.After); at.After(r.Now()) { // nothing is decided between changes that are due at the same time
			r.Until(at)
		}
		if _, err := c.Make(context.Background(), ch); err != nil {
			t.Fatal(err)
		}
	}
}

// equal makes a what-if, then the changes in earnest, and reports every group that does not start as the what-if states.
func equal(t *testing.T, r forecast.Reality, changes func() []*structs.WhatIfChange) *structs.WhatIf {
	t.Helper()
	w, from := run(t, r, changes()...), r.Now()
	makeAll(t, r, changes)
	r.Until(time.Unix(0, w.Until).Add(time.Minute))
	verdicts, wrong := map[string]int{}, 0
	for _, g := range w.Groups {
		verdicts[g.Verdict]++
		if g.After == nil {
			continue
		}
		starts := r.Starts(g.Namespace, g.JobID, g.Group, from)
		if len(starts) < g.After.Waits || g.After.All == 0 {
			t.Errorf("%s/%s: %d of %d started; the last %d", g.Namespace, g.JobID, len(starts), g.After.Waits, g.After.All)
			continue
		}
		first, all := starts[0].Sub(time.Unix(0, g.After.First)), starts[g.After.Waits-1].Sub(time.Unix(0, g.After.All))
		if first.Abs() >= time.Second || all.Abs() >= time.Second {
			wrong++
			t.Logf("%s/%s: the first of %d started %s after what the what-if stated, the last %s", g.Namespace, g.JobID, g.After.Waits, first, all)
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d started at another time", wrong, len(w.Groups))
	}
	t.Logf("%v; %d taken, %d before", verdicts, len(w.After.Taken), len(w.Before.Taken))
	return w
}

// planted returns a cluster of a few nodes with a queue.
func planted(t *testing.T, seed uint64) forecast.Reality {
	r := forecast.NewReality(t, 5)
	r.Plant(36, seed)
	return r
}

// one returns changes of one.
func one(change func() *structs.WhatIfChange) func() []*structs.WhatIfChange {
	return func() []*structs.WhatIfChange { return []*structs.WhatIfChange{change()} }
}

// TestTwoNodesMore: with two nodes more.
func TestTwoNodesMore(t *testing.T) {
	w := equal(t, planted(t, 2), one(func() *structs.WhatIfChange {
		return &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 2, Like: "node-0003"}}
	}))
	if w.After.Namespaces[0].Mean >= w.Before.Namespaces[0].Mean {
		t.Errorf("two nodes more, and jobs wait %s in the mean, not less than %s", w.After.Namespaces[0].Mean, w.Before.Namespaces[0].Mean)
	}
}

// TestNodeDrained: a node is drained; and another one is lost later.
func TestNodeDrained(t *testing.T) {
	w := equal(t, planted(t, 4), func() []*structs.WhatIfChange {
		return []*structs.WhatIfChange{
			{Drain: &structs.WhatIfDrain{Node: "node-0003", DrainSpec: structs.DrainSpec{Deadline: 10 * time.Minute}}}, {After: time.Hour, Lose: "node-0001"},
		}
	})
	left := map[string]bool{}
	for _, x := range w.After.Displaced {
		left[x.For+" "+x.NodeName] = true
	}
	if !left["drained node-0003"] || !left["lost node-0001"] || len(left) != 2 {
		t.Errorf("displaced: %v", left)
	}
	if at := time.Unix(0, w.Changes[1].Time); !at.Equal(time.Unix(0, w.Time).Add(time.Hour)) {
		t.Errorf("the node is lost at %s", at)
	}
}

// TestCellsHalved: a tenant has one cell instead of two.
func TestCellsHalved(t *testing.T) {
	w := equal(t, planted(t, 5), one(func() *structs.WhatIfChange {
		return &structs.WhatIfChange{VirtualCluster: &structs.VirtualCluster{Name: "red", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}}}}
	}))
	if len(w.Before.Taken) == len(w.After.Taken) {
		t.Errorf("%d instances are taken, with one cell as with two", len(w.After.Taken))
	}
}

// TestBandsOn: jobs preempt those of lower bands.
func TestBandsOn(t *testing.T) {
	r := forecast.NewReality(t, 5)
	r.Put(&structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration()}) // which every cluster has
	r.Plant(36, 6)
	w := equal(t, r, one(func() *structs.WhatIfChange { return bands(r) }))
	if len(w.After.Taken) <= len(w.Before.Taken) {
		t.Errorf("%d instances are taken, not more than %d", len(w.After.Taken), len(w.Before.Taken))
	}
	for _, x := range w.After.Taken {
		if x.Back < x.Time || x.NodeName == "" || x.For == "" {
			t.Errorf("taken: %+v", x)
		}
	}
}

// bands returns the configuration of a state with bands, whose jobs preempt those of lower ones.
func bands(r forecast.Reality) *structs.WhatIfChange {
	config := r.Store().Snapshot().SchedulerConfig(nil)
	to := *config.Effective()
	to.Bands = []structs.PriorityBand{{Low: 1, High: 40}, {Low: 41, High: 70}, {Low: 71, High: 100}}
	to.PreemptionConfig.BatchSchedulerEnabled = true
	return &structs.WhatIfChange{Scheduler: &to}
}

// TestSeveralChanges: several changes, one after the other, which the same seed makes the same. Nobody foresees the IDs of nodes that are added, by which those
// are ordered that are alike: it is one.
func TestSeveralChanges(t *testing.T) {
	for _, seed := range forecast.SeedsOr([]uint64{14}) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := forecast.NewReality(t, 5)
			r.Put(&structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration()})
			r.Plant(36, 1000+seed)
			equal(t, r, func() []*structs.WhatIfChange {
				rng := rand.New(rand.NewPCG(seed, 2))
				drain := structs.DrainSpec{Deadline: time.Duration(1+rng.IntN(20)) * time.Minute}
				cells := []*structs.CellQuota{{Level: structs.LevelNode, Count: 1 + rng.IntN(3)}}
				job := forecast.GPUJob("new", 20+rng.IntN(60), 1+rng.IntN(3), 1+rng.IntN(8), time.Duration(10+rng.IntN(60))*time.Minute)
				list := []*structs.WhatIfChange{
					bands(r), {AddNodes: &structs.WhatIfNodes{Count: 1, Like: "node-0003"}}, {Drain: &structs.WhatIfDrain{Node: "node-0002", DrainSpec: drain}},
					{Lose: "node-0001"}, {VirtualCluster: &structs.VirtualCluster{Name: "red", Cells: cells}}, {Job: job},
				}
				rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				after := time.Duration(0)
				for _, ch := range list {
					ch.After = after
					after += time.Duration(rng.IntN(2)*rng.IntN(1200)) * time.Second
				}
				return list[:1+rng.IntN(4)]
			})
		})
	}
}

// TestWorkflowAtNoon: a workflow of five stages is run at noon, and reserves what its largest stage needs.
func TestWorkflowAtNoon(t *testing.T) {
	r := forecast.NewReality(t, 5)
	morning := r.Now().Add(11*time.Hour + 40*time.Minute)
	r.Until(morning)
	r.Plant(36, 7)
	noon := morning.Add(20 * time.Minute)
	w := equal(t, r, one(func() *structs.WhatIfChange {
		flow := &structs.Workflow{ID: "chip", NodePool: structs.NodePoolDefault, Priority: 80, Reserve: structs.WorkflowReserve{Rule: structs.ReserveMax}}
		for i, count := range []int{1, 3, 2, 4, 1} {
			name := fmt.Sprint("stage", i)
			flow.Stages = append(flow.Stages, &structs.WorkflowStage{
				Name: name, Jobs: []*structs.WorkflowJob{{Name: "job" + name, Job: forecast.GPUJob("job"+name, 80, count, 4, time.Duration(i+1)*10*time.Minute)}},
			})
		}
		return &structs.WhatIfChange{After: noon.Sub(r.Now()), Workflow: flow}
	}))
	run := r.Store().Snapshot().Workflows(nil).Get(structs.DefaultNamespace, "chip")
	if len(w.After.Workflows) != 1 || run == nil {
		t.Fatalf("%+v", w.After.Workflows)
	}
	for i, s := range w.After.Workflows[0].Stages {
		if is := run.Stages[i]; s.Start == 0 || s.Start != is.Start || s.End != is.End || s.State != structs.StageComplete {
			t.Errorf("stage %s starts at %s and ends at %s, not as stated: %+v", s.Name, time.Unix(0, is.Start), time.Unix(0, is.End), s)
		}
	}
}

// TestSlotsMoved: a project's slots of the week are given to another project, whose jobs then go before.
func TestSlotsMoved(t *testing.T) {
	r := forecast.NewReality(t, 0)
	for _, id := range []string{"node-a", "node-b"} {
		n := forecast.GPUNode(id)
		n.NodeResources.Slots = map[string]int{structs.SlotBatch: 4}
		r.Put(&structs.NodeRegisterEntry{Node: n, Time: r.Now().UnixNano()})
	}
	begin := time.Date(2026, 2, 23, 0, 0, 0, 0, time.UTC)
	week := func(project string, slots int) *structs.ProjectWeek {
		return &structs.ProjectWeek{
			Project: project, Week: "2026-W09", From: begin.UnixNano(), To: begin.AddDate(0, 0, 7).UnixNano(), Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: slots}},
		}
	}
	ada := &structs.Submitter{User: "ada"}
	for project, slots := range map[string]int{"chip-a": 8, "chip-b": 0} {
		r.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: project, Users: []string{"ada"}}, Time: r.Now().UnixNano()})
		if slots > 0 {
			r.Put(&structs.ProjectCalendarEntry{Week: week(project, slots), Time: r.Now().UnixNano(), EvalSeed: r.NewID()})
		}
	}
	for i := range 24 {
		j := testcluster.Job(fmt.Sprintf("job-%02d", i), structs.JobTypeBatch, 1)
		j.NodePool, j.Project, j.Submitter = structs.NodePoolDefault, []string{"chip-a", "chip-b"}[i%2], ada
		j.TaskGroups[0].MaxRunDuration = time.Duration(20+i) * time.Minute
		j.TaskGroups[0].Tasks[0].Resources.CPU = 30_000
		r.Submit(j)
	}
	r.Until(r.Now().Add(time.Second))
	w := equal(t, r, func() []*structs.WhatIfChange {
		none, all := week("chip-a", 0), week("chip-b", 8)
		return []*structs.WhatIfChange{
			{Week: &structs.WhatIfWeek{Project: "chip-a", Week: none.Week, Rows: nil}}, {Week: &structs.WhatIfWeek{Project: "chip-b", Week: all.Week, Rows: all.Rows}},
		}
	})
	a, b := w.Before.Projects, w.After.Projects
	if len(a) != 2 || len(b) != 2 || a[0].Mean >= a[1].Mean || b[0].Mean <= b[1].Mean {
		t.Errorf("chip-a and chip-b wait %+v, then %+v", a, b)
	}
}

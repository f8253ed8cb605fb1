package whatif

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/internal/wire"
	jobendpoint "github.com/nomadish/nomadish/nomadish/endpoint/job"
	nodeendpoint "github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/endpoint/operator"
	"github.com/nomadish/nomadish/nomadish/endpoint/project"
	"github.com/nomadish/nomadish/nomadish/endpoint/virtualcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/workflow"
	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// now is when each test begins, in week 2026-W09.
var now = time.Date(2026, 2, 25, 0, 0, 0, 0, time.UTC)

// site is a state with two nodes of four GPUs, a tenant that owns a node, and a job that waits.
func site(t testing.TB) *testcluster.Log {
	l := testcluster.New(1, state.Options{})
	for i := range 2 {
		n := testcluster.Node(fmt.Sprintf("node-%d", i), 10_000)
		group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for g := range 4 {
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", n.ID, g), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
		n.ComputeClass()
		l.Put(t, &structs.NodeRegisterEntry{Node: n, Time: now.UnixNano(), EvalSeed: "e"})
	}
	l.Put(t, &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration()})
	l.Put(t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "red"}})
	l.Put(t, &structs.VirtualClusterUpsertEntry{
		VirtualCluster: &structs.VirtualCluster{Name: "red", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}}}, EvalSeed: "v", Time: now.UnixNano(),
	})
	l.Put(t, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip"}, Time: now.UnixNano()})
	for i := range 4 {
		j := gpuJob(fmt.Sprint("job-", i), 4)
		l.Put(t, &structs.JobRegisterEntry{Job: j, Eval: structs.NewEval(fmt.Sprint("eval-", i), j, structs.EvalTriggerJobRegister, now.UnixNano()), Time: now.UnixNano()})
	}
	return l
}

// gpuJob is a job of one instance that runs for an hour.
func gpuJob(id string, gpus int) *structs.Job {
	j := testcluster.Job(id, structs.JobTypeBatch, 1)
	g := j.TaskGroups[0]
	g.MaxRunDuration = time.Hour
	g.Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}
	return j
}

func flowOf(jobs ...*structs.WorkflowJob) *structs.Workflow {
	return &structs.Workflow{ID: "flow", Stages: []*structs.WorkflowStage{{Name: "s", Jobs: jobs}}}
}

// everything is a change of each kind.
func everything() []*structs.WhatIfChange {
	config := structs.DefaultSchedulerConfiguration()
	config.PreemptionConfig.BatchSchedulerEnabled = true
	return []*structs.WhatIfChange{
		{Job: gpuJob("new", 2)}, {VirtualCluster: &structs.VirtualCluster{Name: "red"}}, {Project: &structs.Project{Name: "chip-b"}},
		{Week: &structs.WhatIfWeek{Project: "chip", Week: "2026-W10", Rows: []structs.CalendarRow{}}}, {Flow: &structs.Flow{Name: "f", Steps: []string{"a"}}},
		{Workflow: flowOf(&structs.WorkflowJob{Name: "a", Job: gpuJob("a", 1)})}, {AddNodes: &structs.WhatIfNodes{Count: 2, Like: "node-1"}},
		{Drain: &structs.WhatIfDrain{Node: "node-0", DrainSpec: structs.DrainSpec{Deadline: time.Hour}}, After: 10 * time.Minute},
		{Lose: "node-1", After: 20 * time.Minute}, {Scheduler: &config, After: 30 * time.Minute},
	}
}

// TestNothingIsTouched: the state that a what-if begins with is as it was, whatever is changed.
func TestNothingIsTouched(t *testing.T) {
	l := site(t)
	index, hash := l.Store.LatestIndex(), l.Store.Snapshot().Hash()
	w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: everything()}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if snap := l.Store.Snapshot(); snap.Index() != index || snap.Hash() != hash {
		t.Error("the state has changed")
	}
	for i, text := range []string{
		"job:new", "vc:red", "project:chip-b", "project:chip (week 2026-W10)", "project: (flow f)", "workflow:flow", "add-nodes:2:like=node-1", "drain:node-0", "lose:node-1", "config",
	} {
		if w.Changes[i].Text != text {
			t.Errorf("change %d: %q, not %q", i, w.Changes[i].Text, text)
		}
	}
	if len(w.Changes) != 10 || w.Index != index || len(w.After.Workflows) != 1 || w.After.Workflows[0].State != structs.WorkflowComplete {
		t.Errorf("%+v", w)
	}
}

// TestSameBytes: the same state, changes and seed give the same bytes on every server: on one that has applied the same log, and on one that has restored a
// snapshot.
func TestSameBytes(t *testing.T) {
	l := site(t)
	restored := testcluster.New(1, state.Options{})
	restored.Restore(t, bytes.NewReader(l.Snapshot(t)))
	several := func() []*structs.WhatIfChange { // whoever owns lacks several things
		cells := []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}, {Level: structs.LevelGPU, Count: 2}}
		return []*structs.WhatIfChange{{VirtualCluster: &structs.VirtualCluster{Name: "red", Cells: cells}}, {Lose: "node-0"}, {Lose: "node-1", After: time.Minute}}
	}
	for _, changes := range []func() []*structs.WhatIfChange{everything, several} {
		var want []byte
		for i := range 16 {
			store := []*state.Store{l.Store, site(t).Store, restored.Store}[i%3]
			w, err := Run(t.Context(), store, &structs.WhatIfRequest{Changes: changes(), Seed: 7, Horizon: 30 * time.Hour}, Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("another answer:\n%.2000s\nnot\n%.2000s", got, want)
			}
		}
	}
}

// servers returns the methods as servers have them, over a log.
func servers(l *testcluster.Log) *wire.Mux {
	mux, silent, clock := wire.NewMux(hclog.NewNullLogger(), 0), hclog.NewNullLogger(), func() time.Time { return now }
	router := rpc.New(rpc.Config{Region: structs.DefaultRegion}, rpc.Deps{Store: l.Store, Leadership: alone{}, Cluster: alone{}, Gossip: alone{}, Logger: silent})
	id := func() string { return "00000001-0000-8000-8000-000000000000" }
	parts := rpc.Parts{Router: router, Applier: l, NewID: id, Now: clock}
	rpc.Register(mux,
		jobendpoint.New(jobendpoint.Config{}, jobendpoint.Deps{Parts: parts, Self: mux.Local}),
		nodeendpoint.New(nodeendpoint.Config{}, nodeendpoint.Deps{Parts: parts, Logger: silent}),
		operator.New(operator.Deps{Router: router, Applier: l, Now: clock}),
		virtualcluster.New(parts),
		project.New(project.Deps{Parts: parts}),
		workflow.New(workflow.Deps{Parts: parts, Self: mux.Local}),
	)
	return mux
}

// TestRefusedInTheSameWords: what the servers refuse when it is applied is refused with the same code and in the same words.
func TestRefusedInTheSameWords(t *testing.T) {
	l := site(t)
	mux := servers(l)
	f := func(method string, args any, ch *structs.WhatIfChange) {
		t.Helper()
		var reply structs.WriteReply
		want := mux.Local(t.Context(), method, args, &reply)
		_, got := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{ch}}, Options{Now: now})
		if want == nil || got == nil || got.Error() != want.Error() || structs.CodeOf(got) != structs.CodeOf(want) {
			t.Errorf("refused with %v, not with %v", got, want)
		}
	}
	jobs := func(change func(j *structs.Job)) {
		t.Helper()
		j := gpuJob("bad", 1)
		change(j)
		f(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: j.Copy(), WriteRequest: structs.WriteRequest{Namespace: j.Namespace}}, &structs.WhatIfChange{Job: j})
	}
	jobs(func(j *structs.Job) { j.Namespace = "nowhere" })
	jobs(func(j *structs.Job) { j.TaskGroups[0].Count = -1 })
	jobs(func(j *structs.Job) { j.NodePool = "nowhere" })
	jobs(func(j *structs.Job) { j.Class = structs.ClassGuaranteed })
	for _, vc := range []*structs.VirtualCluster{
		{Name: "red", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 3}}}, {Name: "red", Cells: []*structs.CellQuota{{Level: "floor", Count: 1}}}, {Name: "nowhere"},
	} {
		f(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: vc}, &structs.WhatIfChange{VirtualCluster: vc})
	}
	p := &structs.Project{Name: "chip", Steps: []string{"a", "a"}}
	f(wire.MethodProjectUpsert, &structs.ProjectUpsertRequest{Project: p}, &structs.WhatIfChange{Project: p})
	for _, week := range []string{"2026-W01", "2026-W99", "2026-W10"} {
		rows := []structs.CalendarRow{{Type: structs.SlotBatch, Count: 1000}}
		f(wire.MethodProjectCalendarEdit, &structs.ProjectCalendarRequest{Project: "chip", Week: week, Rows: rows}, &structs.WhatIfChange{Week: &structs.WhatIfWeek{Project: "chip", Week: week, Rows: rows}})
	}
	for _, w := range []*structs.Workflow{
		flowOf(), flowOf(&structs.WorkflowJob{Name: "a", DependsOn: []string{"a"}, Job: gpuJob("a", 1)}),
		flowOf(&structs.WorkflowJob{Name: "a", Job: testcluster.Job("a", structs.JobTypeService, 1)}),
	} {
		f(wire.MethodWorkflowRun, &structs.WorkflowRunRequest{Workflow: w}, &structs.WhatIfChange{Workflow: w})
	}
	other := uint64(9999)
	f(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: gpuJob("job-0", 1), EnforceIndex: true, JobModifyIndex: other, WriteRequest: structs.WriteRequest{Namespace: structs.DefaultNamespace}},
		&structs.WhatIfChange{Job: gpuJob("job-0", 1), CheckIndex: &other})
	f(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: gpuJob("job-0", 1), EnforceIndex: true, WriteRequest: structs.WriteRequest{Namespace: structs.DefaultNamespace}},
		&structs.WhatIfChange{Job: gpuJob("job-0", 1), CheckIndex: new(uint64)})
	red, chip, flow := &structs.VirtualCluster{Name: "red"}, &structs.Project{Name: "chip"}, flowOf(&structs.WorkflowJob{Name: "a", Job: gpuJob("a", 1)})
	f(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: red, CAS: true, CheckIndex: other}, &structs.WhatIfChange{VirtualCluster: red, CheckIndex: &other})
	f(wire.MethodProjectUpsert, &structs.ProjectUpsertRequest{Project: chip, CAS: true, CheckIndex: other}, &structs.WhatIfChange{Project: chip, CheckIndex: &other})
	f(wire.MethodWorkflowRun, &structs.WorkflowRunRequest{Workflow: flow, CAS: true, CheckIndex: other}, &structs.WhatIfChange{Workflow: flow, CheckIndex: &other})
	config := structs.DefaultSchedulerConfiguration()
	_, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Scheduler: &config, CheckIndex: &other}}}, Options{Now: now})
	if structs.CodeOf(err) != structs.CodeConflict || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("another configuration: %v", err)
	}
	config.Bands = []structs.PriorityBand{{Low: 50, High: 40}}
	f(wire.MethodSchedulerSet, &structs.SchedulerConfigRequest{Config: config}, &structs.WhatIfChange{Scheduler: &config})
	ada := structs.WriteRequest{Namespace: structs.DefaultNamespace, User: "ada"} // whom these servers do not trust to be
	f(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: gpuJob("hers", 1), WriteRequest: ada}, &structs.WhatIfChange{Job: gpuJob("hers", 1), User: "ada"})
}

// TestLimits: what is beyond the limits of what-ifs is refused.
func TestLimits(t *testing.T) {
	l := site(t)
	f := func(want string, horizon time.Duration, changes ...*structs.WhatIfChange) {
		t.Helper()
		_, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: changes, Horizon: horizon}, Options{Now: now})
		if err == nil || !strings.Contains(err.Error(), want) || structs.CodeOf(err) == structs.CodeInternal {
			t.Errorf("%v, not %q", err, want)
		}
	}
	lose := &structs.WhatIfChange{Lose: "node-0"}
	f("horizon 2160h0m0.000000001s: must be more than 0 and at most 2160h0m0s", structs.MaxForecastHorizon+1, lose)
	f("horizon -1ns: must be", -1, lose)
	f("a what-if needs at least one change", 0)
	f("101 changes: at most 100 are allowed", 0, make([]*structs.WhatIfChange, 101)...)
	f("change 2 is empty", 0, lose, nil)
	f("change 1: it is made after 2h0m0s: must be within the horizon of 1h0m0s", time.Hour, &structs.WhatIfChange{Lose: "node-0", After: 2 * time.Hour})
	f("change 1: it states 0 things that are to be changed, and not one", 0, &structs.WhatIfChange{})
	f("change 2: it states 2 things that are to be changed, and not one", 0, lose, &structs.WhatIfChange{Lose: "node-0", Drain: &structs.WhatIfDrain{Node: "node-1"}})
	f("12000 nodes are added: at most 10000 are allowed", 0, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 6000, Like: "node-0"}}, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 6000, Like: "node-0"}})
	f("add nodes: count 0: must be 1 to 10000", 0, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Like: "node-0"}})
	f("add nodes: one of Like and Node states", 0, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1}})
	large := testcluster.Node("large", 1000)
	for i := range 50 {
		large.Attributes[fmt.Sprint("attribute-", i)] = strings.Repeat("x", structs.MaxNodeValue)
	}
	more := func() *structs.WhatIfChange {
		return &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1000, Node: large.Copy()}}
	}
	f("in all: at most 268435456 are allowed", 0, more(), more())
	f(`node "nowhere": not found`, 0, &structs.WhatIfChange{Lose: "nowhere"})
	f(`node "nowhere": not found`, 0, &structs.WhatIfChange{Drain: &structs.WhatIfDrain{Node: "nowhere"}})
	f(`node "nowhere": not found`, 0, &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1, Like: "nowhere"}})
	f(`node "node": 2 nodes are called so or have such an ID`, 0, &structs.WhatIfChange{Lose: "node"})
	f(`at 2026-02-25T01:00:00Z: node "nowhere": not found`, 0, &structs.WhatIfChange{Lose: "nowhere", After: time.Hour})
}

// TestNoReservations: it is stated where more groups wait than get reservations.
func TestNoReservations(t *testing.T) {
	for reserving, none := range map[int]bool{3: true, 4: false} {
		w, err := Run(t.Context(), site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Job: gpuJob("new", 2)}}}, Options{Now: now, Reserving: reserving})
		if err != nil || w.NoReservations != none {
			t.Errorf("of 4 groups that wait %d may reserve: %v, %+v", reserving, err, w)
		}
	}
}

// TestBudget: a future that applies more log entries than it may states where it ends.
func TestBudget(t *testing.T) {
	w, err := Run(t.Context(), site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: "node-0"}}}, Options{Now: now, Entries: 5})
	if err != nil || !strings.HasPrefix(w.Before.Ended, "it ends after 5 log entries") || w.After.Ended == "" {
		t.Fatalf("%v; %+v", err, w)
	}
}

// TestEndedEarly: of what comes after a future has ended before it was complete nothing is stated: no group starts never, or when it does without the changes,
// a change that was to be made later is not made, and both futures are compared until then.
func TestEndedEarly(t *testing.T) {
	complete, err := Run(t.Context(), site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: "node-0", After: 10 * time.Hour}}}, Options{Now: now})
	if err != nil || complete.Changes[0].NotMade || complete.After.EndedAt != 0 {
		t.Fatalf("%v; %+v", err, complete)
	}
	few := 0
	for entries := 10; entries < 60; entries += 7 {
		w, err := Run(t.Context(), site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: "node-0", After: 10 * time.Hour}}}, Options{Now: now, Entries: entries})
		if err != nil {
			t.Fatal(err)
		}
		if w.After.Ended == "" {
			break
		}
		if w.After.EndedAt < w.Until || w.Until != min(w.Before.EndedAt, w.After.EndedAt) || !w.Changes[0].NotMade || w.Changes[0].Time != now.Add(10*time.Hour).UnixNano() {
			t.Errorf("%d entries: until %d, ended at %d and %d; %+v", entries, w.Until, w.Before.EndedAt, w.After.EndedAt, w.Changes)
		}
		for _, g := range w.Groups {
			if open := g.Before.All == 0 && g.After.All == 0; open != (g.Verdict == structs.WhatIfUnknown) {
				t.Errorf("%d entries: %+v, %+v, %+v", entries, g, g.Before, g.After)
			} else if open {
				few++
			}
		}
	}
	if few == 0 {
		t.Error("no start was unknown")
	}
}

// TestOutOfTime: a change that is being made when the time is over, or as many entries have been applied as may be, is not made, and not refused.
func TestOutOfTime(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	add := &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 100, Like: "node-0"}}
	f := func(ctx context.Context, entries int, want string) {
		t.Helper()
		w, err := Run(ctx, site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{add}}, Options{Now: now, Entries: entries})
		if err != nil || !w.Changes[0].NotMade || !strings.HasPrefix(w.After.Ended, want) {
			t.Errorf("%v; %+v", err, w)
		}
	}
	f(ended, 0, "it ran out of time at")
	f(t.Context(), 50, "it ends after 50 log entries")
}

// TestVerdicts: what is stated of a group follows from what both futures have seen of it before they ended.
func TestVerdicts(t *testing.T) {
	start := func(since, all int64) *structs.WhatIfStart {
		return &structs.WhatIfStart{Waits: 1, Since: since * 1e9, All: all * 1e9}
	}
	f := func(b, a *structs.WhatIfStart, before, after int64, want string, shift int64, atLeast bool) {
		t.Helper()
		g := &structs.WhatIfGroup{Before: b, After: a}
		if judge(g, before*1e9, after*1e9); g.Verdict != want || int64(g.Shift) != shift*1e9 || g.AtLeast != atLeast {
			t.Errorf("%+v", g)
		}
	}
	f(start(1, 5), start(1, 9), 0, 0, structs.WhatIfLater, 4, false)
	f(start(1, 9), start(1, 5), 10, 10, structs.WhatIfEarlier, -4, false)
	for _, by := range []int64{-1e9 + 1, 1e9 - 1} { // less than a second is the same
		moved := start(1, 5)
		moved.All += by
		f(start(1, 5), moved, 0, 0, structs.WhatIfSame, 0, false)
	}
	f(start(1, 5), start(1, 0), 0, 0, structs.WhatIfNever, 0, false)
	f(start(1, 5), start(1, 0), 0, 8, structs.WhatIfLater, 3, true)
	f(start(1, 5), start(1, 0), 0, 3, structs.WhatIfUnknown, 0, false)
	f(start(1, 5), start(1, 0), 8, 0, structs.WhatIfNever, 0, false)
	f(start(1, 0), start(1, 5), 0, 8, structs.WhatIfStarts, 0, false)
	f(start(1, 0), start(1, 5), 8, 0, structs.WhatIfEarlier, -3, true)
	f(start(1, 0), start(1, 5), 3, 0, structs.WhatIfUnknown, 0, false)
	f(start(1, 0), start(1, 0), 0, 0, structs.WhatIfSame, 0, false)
	f(start(1, 0), start(1, 0), 0, 8, structs.WhatIfUnknown, 0, false)
	f(nil, start(3, 5), 0, 0, structs.WhatIfNew, 0, false)
	f(nil, start(3, 5), 4, 0, structs.WhatIfNew, 0, false)
	f(nil, start(3, 5), 2, 0, structs.WhatIfUnknown, 0, false)
	f(start(3, 5), nil, 0, 4, structs.WhatIfGone, 0, false)
	f(start(3, 5), nil, 0, 2, structs.WhatIfUnknown, 0, false)
}

// fullNode is a state with a node that a job of low priority fills, which runs.
func fullNode(t *testing.T) *testcluster.Log {
	l := testcluster.New(1, state.Options{})
	config := structs.DefaultSchedulerConfiguration()
	config.PreemptionConfig.BatchSchedulerEnabled = true
	l.Put(t, &structs.SchedulerConfigEntry{Config: config})
	l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node("node-0", 1000), Time: now.UnixNano(), EvalSeed: "e"})
	fill(t, l, "low", 20)
	return l
}

// fill has a job run that fills the node, and returns the ID of its allocation.
func fill(t *testing.T, l *testcluster.Log, job string, priority int) string {
	l.Put(t, &structs.JobRegisterEntry{Job: fullJob(job, priority), Time: now.UnixNano()})
	batch := testcluster.Batch(job, "node-0", job, 1)
	batch.Resources = &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
		Cpu: structs.AllocatedCpuResources{CpuShares: 1000}, Memory: structs.AllocatedMemoryResources{MemoryMB: 10},
	}}}
	l.Put(t, testcluster.Commit(&structs.JudgedPlan{Time: now.UnixNano(), Place: []*structs.PlacementBatch{batch}}))
	reports(t, l, testcluster.AllocID(job, 0), structs.AllocClientRunning)
	return testcluster.AllocID(job, 0)
}

func reports(t *testing.T, l *testcluster.Log, alloc, status string) {
	l.Put(t, &structs.AllocClientEntry{Time: now.UnixNano(), Updates: []*structs.AllocClientUpdate{{ID: alloc, NodeID: "node-0", ClientStatus: status}}})
}

// fullJob is a job that fills that node for an hour.
func fullJob(id string, priority int) *structs.Job {
	j := testcluster.Job(id, structs.JobTypeBatch, 1)
	j.Priority, j.TaskGroups[0].MaxRunDuration, j.TaskGroups[0].Tasks[0].Resources.CPU = priority, time.Hour, 1000
	return j
}

// TestTaken: a job that runs and is taken for another one is listed as taken, and not among those that wait, also where a change is made while it waits.
func TestTaken(t *testing.T) {
	w, err := Run(t.Context(), fullNode(t).Store, &structs.WhatIfRequest{Latest: true, Changes: []*structs.WhatIfChange{
		{Job: fullJob("high", 90), After: time.Minute}, {Job: fullJob("next", 90), After: 2 * time.Minute},
	}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	back := now.Add(2*time.Hour + time.Minute).UnixNano()
	if x := w.After.Taken; len(x) != 1 || x[0].Name != "low.g[0]" || x[0].For != "preempted by high.g[0]" || x[0].NodeName != "node-0" || x[0].Back < back {
		t.Errorf("taken: %+v", x)
	}
	if len(w.After.Displaced) != 0 || len(w.Groups) != 2 || w.Groups[0].JobID != "high" || w.Groups[1].JobID != "next" || w.After.Mean.CPU > 1 {
		t.Errorf("%+v, %+v; %+v", w.Groups[0], w.Groups[len(w.Groups)-1], w.After.Mean)
	}
}

// TestSuspendedGoOn: an instance that is suspended for another when the what-if begins waits, and starts when it goes on.
func TestSuspendedGoOn(t *testing.T) {
	l := fullNode(t)
	low := testcluster.AllocID("low", 0)
	l.Put(t, testcluster.Commit(&structs.JudgedPlan{Time: now.UnixNano(), Stop: []*structs.AllocStop{{
		AllocID: low, DesiredStatus: structs.AllocDesiredSuspend, DesiredDescription: "preempted", SuspendedAt: now.UnixNano(),
	}}}))
	reports(t, l, low, structs.AllocClientSuspended)
	fill(t, l, "high", 90)
	job := l.Store.Snapshot().Job(nil, structs.DefaultNamespace, "low")
	blocked := structs.NewEval("eval", job, structs.EvalTriggerPreemption, now.UnixNano())
	blocked.Status, blocked.QueuedAllocations = structs.EvalStatusBlocked, map[string]int{"g": 1}
	l.Put(t, testcluster.Commit(&structs.JudgedPlan{
		EvalID: blocked.ID, Time: now.UnixNano(), Evals: []*structs.Evaluation{blocked},
		Requests: []*structs.RequestUpdate{{Namespace: job.Namespace, JobID: job.ID, Group: "g", Missing: 1, Since: now.UnixNano(), EvalID: blocked.ID}},
	}))
	w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Horizon: 2 * time.Hour, Changes: []*structs.WhatIfChange{{Lose: "node-0", After: time.Minute}}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Groups) != 1 {
		t.Fatalf("%d groups wait", len(w.Groups))
	}
	if w.Groups[0].JobID != "low" || w.Groups[0].Verdict != structs.WhatIfNever || w.Groups[0].Before.All != now.Add(time.Hour).UnixNano() {
		t.Errorf("%+v: %+v", w.Groups, w.Groups[0].Before)
	}
	if n := w.Before.Namespaces; len(n) != 1 || n[0].Started != 1 {
		t.Errorf("waits: %+v", n)
	}
}

// TestNeverStarts: of what never starts it is stated why: it is larger than any node, or something holds the room to the end.
func TestNeverStarts(t *testing.T) {
	large := fullJob("large", 50)
	large.TaskGroups[0].Tasks[0].Resources.CPU = 2000
	endless := fullJob("endless", 90)
	endless.TaskGroups[0].MaxRunDuration = 0
	w, err := Run(t.Context(), fullNode(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Job: large}, {Job: endless}, {Job: fullJob("waits", 50), After: time.Second}}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string]string{
		"endless": "", "large": "larger than any node: an instance needs 2000 MHz, and no node that is ready and may run it has more than 1000",
		"waits": "endless.g[0] may hold their room: no max_run_duration and no finished run of their job or user",
	} {
		found := false
		for _, g := range w.Groups {
			if found = found || g.JobID == job; g.JobID == job && g.After.Why != want {
				t.Errorf("%s: %+v", job, g.After)
			}
		}
		if !found {
			t.Errorf("nothing of %s", job)
		}
	}
}

// TestUntilDrained: where nothing waits, both futures are run until a drain among the changes is through and what it displaced runs again, and no further than
// the horizon.
func TestUntilDrained(t *testing.T) {
	l := fullNode(t)
	l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node("node-1", 1000), Time: now.UnixNano(), EvalSeed: "f"})
	drain := &structs.WhatIfDrain{Node: "node-0", DrainSpec: structs.DrainSpec{Deadline: 10 * time.Second}}
	for after, horizon := range map[time.Duration]time.Duration{0: 0, 30 * time.Minute: 0, time.Minute: 65 * time.Second} {
		w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Horizon: horizon, Changes: []*structs.WhatIfChange{{Drain: drain, After: after}}}, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		left, x := now.Add(after+10*time.Second).UnixNano(), w.After.Displaced
		if horizon > 0 {
			if w.Until != now.Add(horizon).UnixNano() || len(x) != 0 {
				t.Errorf("with a horizon of %s: until %s, displaced %+v", horizon, time.Unix(0, w.Until).UTC(), x)
			}
			continue
		}
		if len(x) != 1 || x[0].Name != "low.g[0]" || x[0].For != "drained" || x[0].Time < left || x[0].Back < x[0].Time || x[0].Back > w.Until {
			t.Errorf("after %s: until %s, displaced %+v", after, time.Unix(0, w.Until).UTC(), x)
		}
		if late := now.Add(after + time.Minute); time.Unix(0, w.Until).After(late) { // it is through long before
			t.Errorf("after %s: until %s", after, time.Unix(0, w.Until).UTC())
		}
	}
	lost := []*structs.WhatIfChange{{Drain: drain}, {Lose: "node-0", After: time.Second}}
	if w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: lost}, Options{Now: now}); err != nil || time.Unix(0, w.Until).After(now.Add(time.Minute)) {
		t.Errorf("a node that is lost while it is drained: %v, until %s", err, time.Unix(0, w.Until).UTC())
	}
}

// TestNothingWaits: where nothing waits, the figures are those of the instant at which both futures begin and end.
func TestNothingWaits(t *testing.T) {
	l := fullNode(t)
	more := &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1, Like: "node-0"}}
	w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{more}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := w.Before.Mean, w.After.Mean; w.Until != w.Time || len(w.Groups) != 0 || a.CPU != 1 || b.CPU != 0.5 || a.From != w.Time || a.Memory <= b.Memory {
		t.Errorf("until %s: %+v; %+v", time.Unix(0, w.Until).UTC(), a, b)
	}
}

// TestChangedJob: all instances that a changed job then waits for are followed: of a job that waits and gets more of them, also later, and of one that runs and
// whose instance is replaced.
func TestChangedJob(t *testing.T) {
	l := fullNode(t)
	config := structs.DefaultSchedulerConfiguration()
	l.Put(t, &structs.SchedulerConfigEntry{Config: config})
	register := func(j *structs.Job) {
		l.Put(t, &structs.JobRegisterEntry{Job: j, Eval: structs.NewEval("eval-"+j.ID, j, structs.EvalTriggerJobRegister, now.UnixNano()), Time: now.UnixNano()})
	}
	register(fullJob("waits", 50))
	settled := forecast.NewFuture(l.Store, forecast.FutureOptions{Now: now, IDs: "settled"}) // what waits has been decided
	defer settled.Close()
	if err := settled.Run(t.Context(), now, func() error { return nil }, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	two, heavier := fullJob("waits", 50), fullJob("low", 20)
	two.TaskGroups[0].Count = 2
	heavier.TaskGroups[0].Tasks[0].Resources.CPU = 1500
	at := func(hours int) int64 { return now.Add(time.Duration(hours) * time.Hour).UnixNano() }
	add := &structs.WhatIfChange{AddNodes: &structs.WhatIfNodes{Count: 1, Node: testcluster.Node("large", 1500)}, After: 3 * time.Hour}
	for name, c := range map[string]struct {
		change     *structs.WhatIfChange
		group      string
		waits      int
		first, all int64
		verdict    string
	}{
		"more":                {&structs.WhatIfChange{Job: two}, "waits", 2, at(1), at(2), structs.WhatIfLater},
		"more, later":         {&structs.WhatIfChange{Job: two, After: 10 * time.Minute}, "waits", 2, at(1), at(2), structs.WhatIfLater},
		"more, once one runs": {&structs.WhatIfChange{Job: two, After: 70 * time.Minute}, "waits", 2, at(1), at(2), structs.WhatIfLater},
		"replaced":            {&structs.WhatIfChange{Job: heavier}, "low", 1, at(3), at(3), structs.WhatIfNew},
	} {
		w, err := Run(t.Context(), settled.Store(), &structs.WhatIfRequest{Latest: true, Changes: []*structs.WhatIfChange{c.change, add}}, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, g := range w.Groups {
			t.Logf("%s: %s %s %+v %+v", name, g.JobID, g.Verdict, g.Before, g.After)
			if g.JobID == c.group && g.After != nil && g.After.Waits == c.waits && g.Verdict == c.verdict {
				found = near(g.After.Since, now.UnixNano()) && near(g.After.First, c.first) && near(g.After.All, c.all)
			}
		}
		if !found {
			t.Errorf("%s: not among the groups as it should be", name)
		}
	}
}

// near reports whether two times are less than a minute apart.
func near(a, b int64) bool { return time.Duration(a-b).Abs() < time.Minute }

// TestShortfallOfWorkflow: what waits for a part of its workflow's reservation is a shortfall of the workflow.
func TestShortfallOfWorkflow(t *testing.T) {
	l := testcluster.New(1, state.Options{})
	l.Put(t, &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration()})
	l.Put(t, &structs.NodeRegisterEntry{Node: testcluster.Node("node-0", 1000), Time: now.UnixNano(), EvalSeed: "e"})
	w, err := Run(t.Context(), l.Store, &structs.WhatIfRequest{Horizon: time.Hour, Changes: []*structs.WhatIfChange{
		{Workflow: flowOf(&structs.WorkflowJob{Name: "a", Job: fullJob("a", 50)})}, {Lose: "node-0", After: time.Minute},
	}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if s := w.After.Shortfalls; len(s) != 1 || s[0].Owner != "workflow flow" || s[0].Instances != 1 {
		t.Errorf("%+v", s)
	}
}

// TestShortfall: an owner lacks the cells of nodes that are lost.
func TestShortfall(t *testing.T) {
	w, err := Run(t.Context(), site(t).Store, &structs.WhatIfRequest{Changes: []*structs.WhatIfChange{{Lose: "node-0"}, {Lose: "node-1", After: time.Minute}}, Horizon: time.Hour}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	at := now.Add(time.Minute).UnixNano()
	if s := w.After.Shortfalls; len(w.Before.Shortfalls) != 0 || len(s) != 1 || s[0].Owner != "red" || s[0].Cells != 1 || s[0].Level != structs.LevelNode || s[0].Time != at {
		t.Errorf("%+v, without %+v", s, w.Before.Shortfalls)
	}
	for _, g := range w.Groups {
		if g.JobID == "job-3" && (g.Verdict != structs.WhatIfNever || g.After.All != 0) {
			t.Errorf("%+v", g)
		}
	}
}

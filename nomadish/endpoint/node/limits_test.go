package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestNodeRates: a node spends what it has saved up and then its rate, each node its own; those that have been silent take no memory.
func TestNodeRates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := &nodeRates{rate: 100, burst: nodeBurst * 100}
	f := func(node string, cost int, want time.Duration) {
		t.Helper()
		if got := r.take(node, cost, now); got != want {
			t.Errorf("%s spends %d: it is to wait for %v, want %v", node, cost, got, want)
		}
	}
	f("a", 1000, 0)
	f("a", 600, 0) // 16 seconds' worth by now
	f("a", 1, time.Second)
	f("a", 250, 3*time.Second)
	f("b", 1, 0)
	now = now.Add(3 * time.Second)
	f("a", 250, 0)
	f("a", 100, time.Second)
	f("c", 10_000, 0) // more than may be saved up, of who has spent nothing
	f("c", 1, 85*time.Second)
	f("c", 100_000, 100*time.Second)
	now = now.Add(-time.Hour) // a clock that is set back
	f("a", 100, time.Second)
	now = now.Add(2 * time.Hour)
	f("a", 1600, 0)
	for i := range 100_000 {
		now = now.Add(time.Millisecond) // each has got all back after 10
		r.take(fmt.Sprint(i), 1, now)
	}
	if n := len(r.nodes); n > 2*fewRates {
		t.Errorf("%d nodes are remembered, of which few have spent anything", n)
	}
	free := &nodeRates{}
	for range 100 {
		if wait := free.take("a", 1<<30, now); wait != 0 || len(free.nodes) > 0 {
			t.Fatalf("without a limit: %v, %d remembered", wait, len(free.nodes))
		}
	}
}

// TestHonestReportsAreNotCopied: nothing is allocated for a report that says nothing wrong. Tasks are those that the allocation was given
// resources for, and, where none are kept, those of its job.
func TestHonestReportsAreNotCopied(t *testing.T) {
	w := newReportWorld(t)
	job := &structs.Job{Namespace: "default", ID: "j", Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t"}}}}}
	w.to.Put(&structs.JobRegisterEntry{Job: job})
	for i, given := range []*structs.AllocatedResources{{Tasks: map[string]*structs.AllocatedTaskResources{"t": {}}}, nil} {
		seed := fmt.Sprint(i)
		w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: "j", Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: w.node.ID}}, Instances: []structs.Instance{{}}, Resources: given,
		}}}}})
		id := structs.DeriveID(seed, 0)
		u := &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientRunning, TaskStates: map[string]*structs.TaskState{
			"t": {State: structs.TaskStateRunning, Events: []*structs.TaskEvent{{Type: structs.TaskStarted, DisplayMessage: "Task started by client", Details: map[string]string{"a": "b"}}}},
		}}
		snap := w.store.Snapshot()
		row := snap.AllocRow(id)
		check := func() {
			if got, err := checkReport(snap, row, u); err != nil || got != u {
				t.Fatalf("%d: %v, %v", i, got, err)
			}
		}
		check()
		if n := testing.AllocsPerRun(100, check); n > 0 && given != nil {
			t.Errorf("%v allocations", n)
		}
		u.TaskStates["other"] = u.TaskStates["t"]
		if _, err := checkReport(snap, row, u); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%d: a task that is not the group's: %v", i, err)
		}
	}
}

// TestTasksOfAForgottenJob: the tasks of an allocation whose job is not known cannot be checked, and are few nevertheless.
func TestTasksOfAForgottenJob(t *testing.T) {
	w := newReportWorld(t)
	w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{{
		Namespace: "default", JobID: "gone", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: w.node.ID}}, Instances: []structs.Instance{{}},
	}}}}})
	id := structs.DeriveID("s", 0)
	snap := w.store.Snapshot()
	for tasks, want := range map[int]structs.Code{1: "", 256: "", 257: structs.CodeBadRequest, 10_000: structs.CodeBadRequest} {
		u := &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientRunning, TaskStates: map[string]*structs.TaskState{}}
		for i := range tasks {
			u.TaskStates[fmt.Sprint("t", i)] = &structs.TaskState{State: structs.TaskStateRunning}
		}
		if _, err := checkReport(snap, snap.AllocRow(id), u); structs.CodeOf(err) != want && (err != nil || want != "") {
			t.Errorf("%d tasks: %v, want %q", tasks, err, want)
		}
	}
}

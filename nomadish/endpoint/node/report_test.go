package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestReportsThatNeedALook: what a node says of an allocation makes its job's evaluation where something may follow from it that
// nothing else would bring about.
func TestReportsThatNeedALook(t *testing.T) {
	const run, stop, suspend = structs.AllocDesiredRun, structs.AllocDesiredStop, structs.AllocDesiredSuspend
	const running, suspended, complete, failed = structs.AllocClientRunning, structs.AllocClientSuspended, structs.AllocClientComplete, structs.AllocClientFailed
	ended := func(events ...string) map[string]*structs.TaskState {
		s := &structs.TaskState{State: structs.TaskStateDead}
		for _, kind := range events {
			s.Events = append(s.Events, &structs.TaskEvent{Type: kind})
		}
		return map[string]*structs.TaskState{"t": s}
	}
	well, unwell := &structs.AllocDeploymentStatus{Healthy: new(true)}, &structs.AllocDeploymentStatus{Healthy: new(false)}
	for i, c := range []struct {
		kind     string
		rolls    int // max_parallel of its update; below zero: it has none
		desired  string
		was, now string
		tasks    map[string]*structs.TaskState
		health   *structs.AllocDeploymentStatus
		want     string // the trigger; "": nobody need look
	}{
		{structs.JobTypeService, 1, run, running, running, nil, nil, ""},
		{structs.JobTypeService, 1, run, running, running, nil, well, ""}, // nothing waits for it
		{structs.JobTypeService, 1, run, running, running, nil, unwell, structs.EvalTriggerAllocHealth},
		{structs.JobTypeService, -1, run, running, failed, nil, nil, structs.EvalTriggerAllocFailure},
		{structs.JobTypeService, -1, run, running, complete, ended(), nil, structs.EvalTriggerAllocFailure},
		{structs.JobTypeService, -1, run, running, complete, ended(), well, structs.EvalTriggerAllocFailure},
		{structs.JobTypeService, -1, stop, running, complete, ended(), nil, ""},
		// An update waits for what was suspended.
		{structs.JobTypeService, 1, run, suspended, running, nil, nil, structs.EvalTriggerAllocResume},
		{structs.JobTypeService, 0, run, suspended, running, nil, nil, ""},
		{structs.JobTypeService, -1, run, suspended, running, nil, nil, ""},
		{structs.JobTypeService, 1, suspend, running, suspended, nil, nil, ""},
		// Its work is done, though it was to be stopped: who stands for it is not needed.
		{structs.JobTypeBatch, -1, stop, running, complete, ended(structs.TaskTerminated), nil, structs.EvalTriggerAllocStop},
		{structs.JobTypeSysBatch, -1, stop, running, complete, ended(structs.TaskTerminated), nil, structs.EvalTriggerAllocStop},
		{structs.JobTypeBatch, -1, stop, running, complete, ended(structs.TaskKilling, structs.TaskTerminated, structs.TaskKilled), nil, ""},
		{structs.JobTypeBatch, -1, stop, running, complete, nil, nil, ""}, // it never ran
		{structs.JobTypeBatch, -1, run, running, complete, ended(structs.TaskTerminated), nil, ""},
	} {
		got := reported(t, c.kind, c.rolls, "", c.desired, c.was, &structs.AllocClientUpdate{ClientStatus: c.now, TaskStates: c.tasks, DeploymentStatus: c.health})
		if got != c.want {
			t.Errorf("%d: %s, desired %s, was %s, is %s: %q, want %q", i, c.kind, c.desired, c.was, c.now, got, c.want)
		}
	}
}

// TestHealthNeedsALookWhileOlderOnesWait: that an instance is well matters to its job as long as some are left of an earlier
// version, running or failed.
func TestHealthNeedsALookWhileOlderOnesWait(t *testing.T) {
	for older, want := range map[string]string{
		structs.AllocClientRunning: structs.EvalTriggerAllocHealth,
		structs.AllocClientFailed:  structs.EvalTriggerAllocHealth,
		structs.AllocDesiredStop:   "",
	} {
		well := &structs.AllocClientUpdate{ClientStatus: structs.AllocClientRunning, DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: new(true)}}
		if got := reported(t, structs.JobTypeService, 1, older, structs.AllocDesiredRun, structs.AllocClientRunning, well); got != want {
			t.Errorf("beside an older one that is %s: %q, want %q", older, got, want)
		}
	}
}

// TestReportBeforeTheLeaderKnows: a node that got an allocation from a follower reports of it before the leader has applied
// its entry: the report waits for that, though not for ever. One of something that was collected is left.
func TestReportBeforeTheLeaderKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newReportWorld(t)
		job := &structs.Job{Namespace: "default", ID: "j", Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}}}
		w.to.Put(&structs.JobRegisterEntry{Job: job})
		id := structs.DeriveID("s", 0)
		told := w.store.LatestIndex() + 1 // where the follower had it
		answer := make(chan error, 1)
		go func() {
			_, err := w.updateAllocs(t.Context(), w.report(told, &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientRunning}))
			answer <- err
		}()
		synctest.Wait()
		w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: "j", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: w.node.ID}}, Instances: []structs.Instance{{}},
		}}}}})
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		if got := w.store.Snapshot().Alloc(nil, id); got == nil || got.ClientStatus != structs.AllocClientRunning {
			t.Errorf("what the node reported is lost: %+v", got)
		}
		_, err := w.updateAllocs(t.Context(), w.report(w.store.LatestIndex()+1000, &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientFailed}))
		if got := w.store.Snapshot().Alloc(nil, id); err != nil || got.ClientStatus != structs.AllocClientFailed {
			t.Errorf("a node that has heard of more than the servers, set back, know of: %v, %+v", err, got)
		}
		if _, err := w.updateAllocs(t.Context(), w.report(0, &structs.AllocClientUpdate{ID: "collected"})); err != nil {
			t.Errorf("what was collected: %v", err)
		}
	})
}

// reportWorld is a server with a node that reports.
type reportWorld struct {
	*Endpoint
	t     *testing.T
	store *state.Store
	to    *endpointtest.Site
	node  *structs.Node
}

func newReportWorld(t *testing.T) *reportWorld {
	t.Helper()
	d := endpointtest.New(t)
	ids := 0
	e := New(Config{}, Deps{
		Parts: rpc.Parts{Router: d.Router, Applier: d, Now: time.Now, NewID: func() string {
			ids++
			return fmt.Sprintf("00000000-0000-7000-8000-%012d", ids)
		}},
		Heartbeats: endpointtest.Alone{},
	})
	w := &reportWorld{e, t, d.Store, d, &structs.Node{
		ID: "00000000-0000-7000-8000-0000000000ff", SecretID: "s", Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
	}}
	w.to.Put(&structs.NodeRegisterEntry{Node: w.node})
	return w
}

func (w *reportWorld) report(known uint64, u *structs.AllocClientUpdate) *structs.ClientUpdateRequest {
	return &structs.ClientUpdateRequest{NodeID: w.node.ID, SecretID: w.node.SecretID, KnownIndex: known, Updates: []*structs.AllocClientUpdate{u}}
}

// reported has a node report of an allocation, and returns what triggered the evaluation that was made of that. older is what has
// become of another one of an earlier version; empty: there is none.
func reported(t *testing.T, kind string, rolls int, older, desired, was string, now *structs.AllocClientUpdate) string {
	t.Helper()
	w := newReportWorld(t)
	g := &structs.TaskGroup{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "raw_exec"}}}
	if rolls >= 0 {
		g.Update = &structs.UpdateStrategy{MaxParallel: &rolls}
	}
	place := func(seed string, version uint64) {
		t.Helper()
		job := &structs.Job{Namespace: "default", ID: "j", Type: kind, TaskGroups: []*structs.TaskGroup{g}, Meta: map[string]string{"of": seed}}
		w.to.Put(&structs.JobRegisterEntry{Job: job})
		w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: "j", JobVersion: version, Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: w.node.ID}}, Instances: []structs.Instance{{}},
		}}}}})
	}
	switch older {
	case "":
		place("s", 0)
	case structs.AllocDesiredStop:
		place("o", 0)
		w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Stop: []*structs.AllocStop{{AllocID: structs.DeriveID("o", 0), DesiredStatus: older}}}}})
		place("s", 1)
	default:
		place("o", 0)
		w.to.Put(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: structs.DeriveID("o", 0), ClientStatus: older}}})
		place("s", 1)
	}
	now.ID = structs.DeriveID("s", 0)
	w.to.Put(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: now.ID, ClientStatus: was}}})
	if desired != structs.AllocDesiredRun {
		w.to.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Stop: []*structs.AllocStop{{AllocID: now.ID, DesiredStatus: desired}}}}})
	}
	reply, err := w.updateAllocs(t.Context(), w.report(0, now))
	if err != nil {
		t.Fatal(err)
	}
	made := ""
	for ev := range w.store.Snapshot().Evals(nil, "*", "", false) {
		if ev.CreateIndex == reply.Index {
			made += ev.TriggeredBy
		}
	}
	return made
}

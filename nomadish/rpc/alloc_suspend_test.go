package rpc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// direct commits at once.
type direct struct {
	writer *state.Writer
	mu     sync.Mutex
	index  uint64
}

func (d *direct) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index++
	return d.index, d.writer.Apply(d.index, t, payload)
}

// TestUserSuspendsAndResumes: suspending takes effect with the entry; resuming asks the
// scheduler, by an evaluation.
func TestUserSuspendsAndResumes(t *testing.T) {
	d := &direct{}
	store, writer := state.New(state.Options{})
	d.writer = writer
	e := New(Config{}, Deps{Store: store, Applier: d, Heartbeats: alone{}, Leadership: alone{}, Cluster: alone{}, Now: time.Now, NewID: func() string {
		return "00000000-0000-7000-8000-000000000001"
	}})
	apply := func(kind structs.LogType, entry any) {
		t.Helper()
		if _, err := d.Apply(t.Context(), kind, entry); err != nil {
			t.Fatal(err)
		}
	}
	node := &structs.Node{ID: "00000000-0000-7000-8000-0000000000ff", Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}}
	apply(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: node})
	apply(structs.LogJobRegister, &structs.JobRegisterEntry{Job: &structs.Job{
		Namespace: "default", ID: "j", Type: structs.JobTypeService,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "once", Driver: "old"}, {Name: "main", Driver: "raw_exec"}}}},
	}})
	batch := &structs.PlacementBatch{
		Namespace: "default", JobID: "j", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: node.ID}}, Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}},
	}
	apply(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{batch}}}})
	id, ended := structs.DeriveID("s", 0), structs.DeriveID("s", 1)
	apply(structs.LogAllocClient, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: ended, ClientStatus: structs.AllocClientFailed}}})

	ask := func(id string, resume bool) (*structs.AllocStopReply, error) {
		return e.allocSuspend(t.Context(), &structs.AllocSuspendRequest{AllocID: id, Resume: resume})
	}
	refused := func(id string, resume bool, want error) {
		t.Helper()
		if _, err := ask(id, resume); !errors.Is(err, want) {
			t.Errorf("%s, resume %v: %v, want %v", id, resume, err, want)
		}
	}
	refused("5f3a", false, structs.ErrNotFound)
	refused("00000000-0000-7000-8000-00000000000a", false, structs.ErrNotFound)
	refused(ended, false, structs.ErrBadRequest)
	refused(id, true, structs.ErrBadRequest) // it is not suspended

	// What its node says of the drivers decides, and of the tasks that are not over.
	says := func(old, rawExec string) {
		t.Helper()
		n := *node
		n.Attributes = map[string]string{"driver.old.suspend": old, "driver.raw_exec.suspend": rawExec}
		apply(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &n})
	}
	says("1", "0")
	before := d.index
	_, err := ask(id, false)
	if !errors.Is(err, structs.ErrBadRequest) || d.index != before || store.Snapshot().Alloc(nil, id).Suspended() {
		t.Fatalf("%v, and it is %s", err, store.Snapshot().Alloc(nil, id).DesiredStatus)
	}
	for _, part := range []string{`task "main" cannot be frozen`, "driver raw_exec", "node n1", "alloc stop"} {
		if text := err.Error(); !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	says("0", "1")
	refused(id, false, structs.ErrBadRequest)
	apply(structs.LogAllocClient, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{
		ID: id, ClientStatus: structs.AllocClientRunning, TaskStates: map[string]*structs.TaskState{"once": {State: structs.TaskStateDead}},
	}}})
	for range 2 {
		reply, err := ask(id, false)
		if err != nil || reply.EvalID != "" || reply.Index != d.index {
			t.Fatalf("suspend: %+v, %v", reply, err)
		}
	}
	if a := store.Snapshot().Alloc(nil, id); !a.Suspended() || !a.DesiredTransition.ShouldSuspend() {
		t.Fatalf("it is %s", a.DesiredStatus)
	}
	reply, err := ask(id, true)
	if err != nil {
		t.Fatal(err)
	}
	ev := store.Snapshot().Eval(nil, reply.EvalID)
	if ev == nil || ev.TriggeredBy != structs.EvalTriggerAllocResume || ev.JobID != "j" {
		t.Errorf("evaluation: %+v", ev)
	}
	if a := store.Snapshot().Alloc(nil, id); !a.Suspended() || a.DesiredTransition.ShouldSuspend() {
		t.Errorf("before there is room it is %s", a.DesiredStatus)
	}
}

package alloc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// TestUserSuspendsAndResumes: suspending takes effect with the entry; resuming calls the
// scheduler, by an evaluation.
func TestUserSuspendsAndResumes(t *testing.T) {
	d := endpointtest.New(t)
	e := New(rpc.Parts{Router: d.Router, Applier: d, Now: time.Now, NewID: func() string {
		return "00000000-0000-7000-8000-000000000001"
	}})
	node := &structs.Node{ID: "00000000-0000-7000-8000-0000000000ff", Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}}
	d.Put(&structs.NodeRegisterEntry{Node: node})
	d.Put(&structs.JobRegisterEntry{Job: &structs.Job{
		Namespace: "default", ID: "j", Type: structs.JobTypeService,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "once", Driver: "old"}, {Name: "main", Driver: "raw_exec"}}}},
	}})
	batch := &structs.PlacementBatch{
		Namespace: "default", JobID: "j", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: node.ID}}, Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}},
	}
	d.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{batch}}}})
	id, ended := structs.DeriveID("s", 0), structs.DeriveID("s", 1)
	d.Put(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: ended, ClientStatus: structs.AllocClientFailed}}})

	request := func(id string, resume bool) (*structs.AllocStopReply, error) {
		return e.suspend(t.Context(), &structs.AllocSuspendRequest{AllocID: id, Resume: resume})
	}
	refused := func(id string, resume bool, want error) {
		t.Helper()
		if _, err := request(id, resume); !errors.Is(err, want) {
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
		d.Put(&structs.NodeRegisterEntry{Node: &n})
	}
	says("1", "0")
	before := d.Index()
	_, err := request(id, false)
	if !errors.Is(err, structs.ErrBadRequest) || d.Index() != before || d.Store.Snapshot().Alloc(nil, id).Suspended() {
		t.Fatalf("%v, and it is %s", err, d.Store.Snapshot().Alloc(nil, id).DesiredStatus)
	}
	for _, part := range []string{`task "main" cannot be suspended`, "driver raw_exec", "node n1", "alloc stop"} {
		if text := err.Error(); !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	says("0", "1")
	refused(id, false, structs.ErrBadRequest)
	d.Put(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{
		ID: id, ClientStatus: structs.AllocClientRunning, TaskStates: map[string]*structs.TaskState{"once": {State: structs.TaskStateDead}},
	}}})
	for range 2 {
		reply, err := request(id, false)
		if err != nil || reply.EvalID != "" || reply.Index != d.Index() {
			t.Fatalf("suspend: %+v, %v", reply, err)
		}
	}
	if a := d.Store.Snapshot().Alloc(nil, id); !a.Suspended() || !a.DesiredTransition.ShouldSuspend() {
		t.Fatalf("it is %s", a.DesiredStatus)
	}
	reply, err := request(id, true)
	if err != nil {
		t.Fatal(err)
	}
	ev := d.Store.Snapshot().Eval(nil, reply.EvalID)
	if ev == nil || ev.TriggeredBy != structs.EvalTriggerAllocResume || ev.JobID != "j" {
		t.Errorf("evaluation: %+v", ev)
	}
	if a := d.Store.Snapshot().Alloc(nil, id); !a.Suspended() || a.DesiredTransition.ShouldSuspend() {
		t.Errorf("before there is room it is %s", a.DesiredStatus)
	}
}

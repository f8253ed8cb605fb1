package whatif

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/structs"
)

// nobody is a user database without users.
type nobody struct{}

func (nobody) Groups(string) ([]string, bool) { return nil, false }
func (nobody) HasGroup(string) bool           { return false }

// committed has what is committed from now on added to a list, as text.
func committed(t *testing.T, l *testcluster.Log) *[]string {
	list := &[]string{}
	l.Committed = func(e testcluster.Entry) {
		text, err := json.Marshal(e.Payload)
		if err != nil {
			t.Error(err)
		}
		*list = append(*list, fmt.Sprintf("%v %s", e.Type, text))
	}
	return list
}

// TestMadeAsApplied: each change is made by the entries by which it is applied in earnest, with all that it states beside what is changed.
func TestMadeAsApplied(t *testing.T) {
	id := func() string { return "00000001-0000-8000-8000-000000000000" }
	f := func(method string, args any, ch *structs.WhatIfChange) {
		t.Helper()
		real, trial := site(t), site(t)
		for _, l := range []*testcluster.Log{real, trial} {
			config := structs.DefaultSchedulerConfiguration()
			config.ReservationAfter = 42 * time.Minute
			l.Put(t, &structs.SchedulerConfigEntry{Config: config})
		}
		want, got := committed(t, real), committed(t, trial)
		var reply structs.WriteReply
		if err := servers(real).Local(t.Context(), method, args, &reply); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if _, err := NewChanger(trial.Store, trial, func() time.Time { return now }, id, Rules{Identity: identity.New(identity.Options{Database: nobody{}})}).Make(t.Context(), ch); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if len(*want) == 0 || fmt.Sprint(*got) != fmt.Sprint(*want) {
			t.Errorf("%s: committed is\n%.3000s\nnot\n%.3000s", method, *got, *want)
		}
	}
	write := structs.WriteRequest{Region: structs.DefaultRegion, Namespace: structs.DefaultNamespace}
	f(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: gpuJob("new", 2), Opportunistic: true, WriteRequest: write}, &structs.WhatIfChange{Job: gpuJob("new", 2), Opportunistic: true})
	vc := &structs.VirtualCluster{Name: "red", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 2}}}
	f(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: vc, WhenFree: true}, &structs.WhatIfChange{VirtualCluster: vc, WhenFree: true})
	p := &structs.Project{Name: "chip", Users: []string{"ada"}} // whom the user database does not know
	f(wire.MethodProjectUpsert, &structs.ProjectUpsertRequest{Project: p, Force: true}, &structs.WhatIfChange{Project: p, Force: true})
	rows := []structs.CalendarRow{{Type: structs.SlotBatch, User: "ada"}}
	f(wire.MethodProjectCalendarEdit, &structs.ProjectCalendarRequest{Project: "chip", Week: "2026-W10", Rows: rows, Force: true}, &structs.WhatIfChange{Week: &structs.WhatIfWeek{Project: "chip", Week: "2026-W10", Rows: rows}, Force: true})
	flow := &structs.Flow{Name: "f", Steps: []string{"a"}}
	f(wire.MethodFlowUpsert, &structs.FlowUpsertRequest{Flow: flow}, &structs.WhatIfChange{Flow: flow})
	w := func() *structs.Workflow { return flowOf(&structs.WorkflowJob{Name: "a", Job: gpuJob("a", 1)}) }
	f(wire.MethodWorkflowRun, &structs.WorkflowRunRequest{Workflow: w(), WriteRequest: write}, &structs.WhatIfChange{Workflow: w()})
	drain := structs.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}
	f(wire.MethodNodeDrain, &structs.NodeDrainRequest{NodeID: "node-0", DrainSpec: &drain}, &structs.WhatIfChange{Drain: &structs.WhatIfDrain{Node: "node-0", DrainSpec: drain}})
	config := structs.SchedulerConfiguration{SchedulerAlgorithm: structs.AlgorithmSpread}
	absent := []string{"ReservationAfter"}
	f(wire.MethodSchedulerSet, &structs.SchedulerConfigRequest{Config: config, Absent: absent}, &structs.WhatIfChange{Scheduler: &config, Absent: absent})
}

package job

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// What a plan would take back is reported with evaluations of the jobs that lose it: their own
// type and priority, as they would be stored.
func TestJobPlanTellsOfTheVictimsJob(t *testing.T) {
	s := newSite(t, endpointtest.Node("n1"))
	ids := 0
	s.NewID = func() string { ids++; return fmt.Sprintf("id-%d", ids) }
	low := endpointtest.Job("low", 900)
	low.Type, low.Priority = structs.JobTypeBatch, 20
	s.Put(&structs.JobRegisterEntry{Job: low})
	config := structs.DefaultSchedulerConfiguration()
	config.PreemptionConfig.ServiceSchedulerEnabled = true
	s.Put(&structs.SchedulerConfigEntry{Config: config})
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 1, Place: []*structs.PlacementBatch{{
		Namespace: "default", JobID: "low", Group: "g", Seed: "a", CreateTime: 1,
		Nodes: []structs.PlacedNode{{ID: "n1", Name: "n1"}}, Instances: []structs.Instance{{}},
		Resources: &structs.AllocatedResources{
			Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Memory: structs.AllocatedMemoryResources{MemoryMB: 900}}},
			Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Priority: 20}},
		},
	}}}}})
	high := endpointtest.Job("high", 500)
	high.TaskGroups[0].Count, high.Priority = 1, 90
	reply, err := s.plan(t.Context(), &structs.JobPlanRequest{Job: high})
	if err != nil {
		t.Fatal(err)
	}
	if reply.Annotations == nil || len(reply.Annotations.PreemptedAllocs) != 1 || len(reply.CreatedEvals) != 1 {
		t.Fatalf("%+v", reply)
	}
	if ev := reply.CreatedEvals[0]; ev.JobID != "low" || ev.Type != structs.JobTypeBatch || ev.Priority != 20 || ev.JobModifyIndex == 0 {
		t.Errorf("%+v", ev)
	}
}

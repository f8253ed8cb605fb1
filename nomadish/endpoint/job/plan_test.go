package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
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

// A plan says what a registration would be refused for, in its words.
func TestJobPlanTellsOfTheLimit(t *testing.T) {
	s := newSite(t, endpointtest.DGX("n1", "r1"), endpointtest.DGX("n2", "r1"))
	ids := 0
	s.NewID = func() string { ids++; return fmt.Sprintf("id-%d", ids) }
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{
		Name: "default", OverLimit: structs.OverLimitConfirm, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
	}})
	plan := func(count int, change func(*structs.Job)) string {
		t.Helper()
		j := endpointtest.Job("j", 10)
		j.TaskGroups[0].Count = count
		j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
		change(j)
		reply, err := s.plan(t.Context(), &structs.JobPlanRequest{Job: j})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Warnings
	}
	as := func(*structs.Job) {}
	want := `the job would be refused: job "j": it requests more than namespace "default" owns (8 GPUs, 0 in guaranteed use); ` +
		"what is beyond it may be reclaimed at any time (repeat `job run` with -opportunistic (opportunistic=true), or request less)"
	if got := plan(9, as); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for what, got := range map[string]string{
		"within the limit": plan(8, as), "confirmed": plan(9, func(j *structs.Job) { j.OverLimit = structs.OverLimitOpportunistic }),
	} {
		if strings.Contains(got, "refused") {
			t.Errorf("%s: %q", what, got)
		}
	}
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "default"}})
	if got := plan(1, func(j *structs.Job) { j.Class = structs.ClassGuaranteed }); !strings.Contains(got, `the job would be refused: job "j": class is "guaranteed", but namespace "default" owns nothing`) {
		t.Errorf("%q", got)
	}
}

// TestWarnsBeyondShare: a guaranteed job of which an instance requests more than belongs to its GPUs on any node is warned of when it is
// planned, validated or registered.
func TestWarnsBeyondShare(t *testing.T) {
	s := newSite(t, endpointtest.DGX("n1", "r1"))
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "default", Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}}}})
	share := int(endpointtest.DGX("n1", "r1").NodeResources.Cpu.CpuShares / 8)
	warnings := func(cpu int, class string) string {
		t.Helper()
		j := endpointtest.Job("j", 10)
		j.Class = class
		r := j.TaskGroups[0].Tasks[0].Resources
		r.CPU, r.Devices = cpu, []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
		text, err := s.admit(j, "")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := fmt.Sprintf(`job "j": group %q: it requests %d MHz of %d that belong to its GPUs, and waits as class is "guaranteed": request less, or more GPUs`, endpointtest.Job("j", 10).TaskGroups[0].Name, share+1, share)
	if got := warnings(share+1, structs.ClassGuaranteed); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for what, got := range map[string]string{"within": warnings(share, structs.ClassGuaranteed), "of any class": warnings(share+1, "")} {
		if strings.Contains(got, "belong to its GPUs") {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestLimitOfRollingUpdates: an update that goes over the limit only when all of its instances are updated must be confirmed at once.
func TestLimitOfRollingUpdates(t *testing.T) {
	s := newSite(t, endpointtest.DGX("n1", "r1"), endpointtest.DGX("n2", "r1"))
	ids := uint64(0)
	s.NewID = func() string { ids++; return structs.DeriveID("limit", ids) }
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{
		Name: "default", OverLimit: structs.OverLimitConfirm, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}},
	}})
	j := endpointtest.Job("j", 10)
	j.TaskGroups[0].Count = 4
	j.TaskGroups[0].Update = &structs.UpdateStrategy{MaxParallel: new(1)}
	j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
	j.Canonicalize()
	s.Put(&structs.JobRegisterEntry{Job: j})
	snap := s.Router.Snapshot()
	job := snap.Job(nil, "default", "j")
	eval := structs.NewEval(s.NewID(), job, structs.EvalTriggerJobRegister, 1)
	plan, err := scheduler.Schedule(snap.World(), eval, snap.Input(job, nil, &state.InputOptions{Now: time.Unix(1, 0), NewID: s.NewID}))
	if err != nil {
		t.Fatal(err)
	}
	judged, _, _ := scheduler.Judge(snap.World().Edit(), plan)
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: eval.ID, Place: judged.Place, JudgedAt: snap.Index()}}})
	if n := len(s.Router.Snapshot().AllocsByJob(nil, "default", "j", false)); n != 4 {
		t.Fatalf("%d run", n)
	}
	for gpus, refused := range map[int]bool{2: false, 3: true} {
		now := j.Copy()
		now.TaskGroups[0].Tasks[0].Resources.Devices[0].Count = gpus
		if err := s.checkLimit(t.Context(), s.Router.Snapshot(), now); (structs.CodeOf(err) == structs.CodeConflict) != refused {
			t.Errorf("4 × %d GPUs of 8 owned: %v", gpus, err)
		}
	}
}

package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// A level that nothing here has is refused with those that it has.
func TestUnknownLevels(t *testing.T) {
	odd := endpointtest.DGX("b", "")
	odd.NodeResources.Topology = &structs.NodeTopology{Cells: []*structs.TopologyCell{{ID: "x", Level: "tray"}}}
	s := newSite(t, endpointtest.DGX("a", "r1"), odd)
	f := func(group, device, want string) {
		t.Helper()
		job := &structs.Job{ID: "j", TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2, Gang: &structs.Gang{}, Tasks: []*structs.Task{
			{Name: "t", Driver: "d", Resources: &structs.Resources{Devices: []*structs.RequestedDevice{{Name: "gpu", Count: 2}}}},
		}}}}
		if group != "" {
			job.TaskGroups[0].Topology = &structs.TopologyConstraint{Level: group, Required: true}
		}
		if device != "" {
			job.TaskGroups[0].Tasks[0].Resources.Devices[0].Topology = &structs.TopologyConstraint{Level: device}
		}
		job.Priority = 50
		_, err := s.admit(job, "default")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s %s: %v", group, device, err)
		case want != "" && (err == nil || structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want)):
			t.Errorf("%s %s: %v, want %s", group, device, err, want)
		}
	}
	f("", "", "")
	f("rack", "pcie", "")
	f("pcie", "mig", "") // a gang on one switch
	f("tray", "tray", "")
	f("rak", "", `job "j" > group "g" > topology: level: unknown level "rak": this cluster has mig, gpu, nvlink, pcie, socket, node, rack, tray; did you mean "rack"?`)
	f("", "sockt", `task "t" > resources > device "gpu" > topology: level: unknown level "sockt"`)
	config := structs.DefaultSchedulerConfiguration()
	config.Levels = []structs.TopologyLevel{}
	s.Put(&structs.SchedulerConfigEntry{Config: config})
	f("rack", "", `unknown level "rack"`)
	f("a", "b", "2 problems")
}

// A gang's count never falls below its min: neither by scaling, nor by a registration
// that keeps counts.
func TestGangsKeepTheirMin(t *testing.T) {
	s := newSite(t)
	ids := 0
	s.Applier, s.NewID = s, func() string { ids++; return fmt.Sprint(ids) }
	gang := func(count, minimum int) *structs.Job {
		return &structs.Job{ID: "j", Priority: 50, TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: count, Gang: &structs.Gang{Min: minimum}, Tasks: []*structs.Task{{Name: "t", Driver: "d"}},
		}}}
	}
	register := func(job *structs.Job, keep bool) error {
		_, err := s.register(t.Context(), &structs.JobRegisterRequest{Job: job, PreserveCounts: keep})
		return err
	}
	if err := register(gang(10_000, 10_000), false); err != nil {
		t.Fatalf("a gang larger than the cluster must wait, not be refused: %v", err)
	}
	if err := register(gang(4, 2), false); err != nil {
		t.Fatal(err)
	}
	scale := func(n int64) error {
		_, err := s.scale(t.Context(), &structs.JobScaleRequest{JobID: "j", Target: map[string]string{"Group": "g"}, Count: &n})
		return err
	}
	if err := scale(1); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "needs at least 2 members") {
		t.Errorf("below min: %v", err)
	}
	if err := scale(2); err != nil {
		t.Errorf("to min: %v", err)
	}
	if err := register(gang(4, 3), true); structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "must be at most the group's count of 2") {
		t.Errorf("a kept count below the new min: %v", err)
	}
	if err := register(gang(4, 1), true); err != nil || s.Store.Snapshot().Job(nil, "default", "j").TaskGroups[0].Count != 2 {
		t.Errorf("a kept count: %v", err)
	}
}

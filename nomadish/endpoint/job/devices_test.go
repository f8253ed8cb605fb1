package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

func TestWarningOfDevicesThatNoNodeHas(t *testing.T) {
	warned := func(s *site, device string) string {
		t.Helper()
		job := &structs.Job{ID: "j", Priority: 50, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{
			{Name: "t", Driver: "d", Resources: &structs.Resources{Devices: []*structs.RequestedDevice{{Name: device, Count: 1}}}},
		}}}}
		warnings, err := s.admit(job, "default")
		if err != nil {
			t.Fatal(err)
		}
		return warnings
	}
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"))
	for _, known := range []string{"gpu", "nvidia/gpu", "nvidia/gpu/H100"} {
		if got := warned(s, known); got != "" {
			t.Errorf("%s: %q", known, got)
		}
	}
	for _, unknown := range []string{"H100", "amd/gpu", "nvidia/gpu/H10"} {
		want := fmt.Sprintf(`device %q: no node has it; the cluster has nvidia/gpu/H100 (16 on a and 1 more)`, unknown)
		if got := warned(s, unknown); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", unknown, got, want)
		}
	}
	if got := warned(newSite(t), "H100"); got != "" {
		t.Errorf("without any node: %q", got)
	}
	plain := endpointtest.DGX("c", "")
	plain.NodeResources.Devices = nil
	if got := warned(newSite(t, plain), "gpu"); !strings.HasSuffix(got, "no node of the cluster has devices") {
		t.Errorf("without devices: %q", got)
	}
	many := endpointtest.DGX("d", "")
	for i := range 7 {
		many.NodeResources.Devices = append(many.NodeResources.Devices, &structs.NodeDeviceResource{
			Vendor: "v", Type: "fpga", Name: fmt.Sprint(i), Instances: []*structs.NodeDevice{{ID: fmt.Sprint("f", i), Healthy: true}},
		})
	}
	if got := warned(newSite(t, many), "tpu"); !strings.HasSuffix(got, "v/fpga/3 (1 on d) and 3 more kinds") {
		t.Errorf("many kinds: %q", got)
	}
}

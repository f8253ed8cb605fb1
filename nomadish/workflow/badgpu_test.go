package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// gpuNode has a node of four GPUs register, of which some are bad.
func (s *started) gpuNode(id string, bad ...int) {
	n := testcluster.Node(id, 8000)
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for i := range 4 {
		group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", id, i), Healthy: true})
	}
	for _, i := range bad {
		group.Instances[i].Healthy = false
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
	s.Put(s.t, &structs.NodeRegisterEntry{Node: n, Time: int64(s.Index())})
}

// TestBadGPU: a run of whose reservation a GPU turns bad says so, and has another one reserved as soon as one is free; or none if the GPU is well again.
func TestBadGPU(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		w := lendingWorkflow("chip", 50, []int{1000}, []int{1000})
		w.Stages[1].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 4}}
		s := startedWith(t, nil, w)
		s.gpuNode("n-a")
		s.step()
		s.gpuNode("n-a", 2)
		s.step()
		if r, want := s.run(), "GPU n-a-gpu-2 of node n-a is bad, and nowhere is so much free: "; !strings.HasPrefix(r.Missing, want) || len(r.Parts) != 1 || r.Parts[0].Devices != 4 {
			t.Fatalf("reserved %+v, missing %q", r.Parts, r.Missing)
		}
		if back {
			s.gpuNode("n-a")
		} else {
			s.gpuNode("n-b")
		}
		s.step()
		gpus := map[string]int{}
		for _, p := range s.run().Parts {
			gpus[p.NodeID] += p.Devices
		}
		if on := map[bool]string{false: "n-b", true: "n-a"}[back]; gpus[on] != 4 || s.run().Missing != "" {
			t.Errorf("well again: %v: reserved %+v, missing %q", back, s.run().Parts, s.run().Missing)
		}
	}
}

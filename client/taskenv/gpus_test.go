package taskenv

import (
	"maps"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func TestGPUsOfATask(t *testing.T) {
	given := func(vendor, kind string, share int, ids ...string) *structs.AllocatedDeviceResource {
		return &structs.AllocatedDeviceResource{Vendor: vendor, Type: kind, Name: "m", DeviceIDs: ids, Share: share}
	}
	withGPUs := &structs.Node{NodeResources: &structs.NodeResources{Devices: []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100"}}}}
	onlyNIC := &structs.Node{NodeResources: &structs.NodeResources{Devices: []*structs.NodeDeviceResource{{Vendor: "mellanox", Type: "nic", Name: "cx7"}}}}
	// want is the variables about GPUs; visible stands for both that say what is seen.
	f := func(what string, node *structs.Node, own map[string]string, want map[string]string, devices ...*structs.AllocatedDeviceResource) {
		t.Helper()
		in := Input{
			Node: node, Task: &structs.Task{Name: "t", Env: own},
			Alloc: &structs.Allocation{AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
				"t": {Devices: devices}, "other": {Devices: []*structs.AllocatedDeviceResource{given("nvidia", "gpu", 0, "theirs")}},
			}}},
		}
		got := Build(in).Vars()
		maps.DeleteFunc(got, func(k, _ string) bool { return !strings.Contains(k, "VISIBLE") && !strings.Contains(k, "GPU") })
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	visible := func(v string) map[string]string {
		return map[string]string{"NVIDIA_VISIBLE_DEVICES": v, "CUDA_VISIBLE_DEVICES": v}
	}
	none := map[string]string{"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": ""}
	f("two GPUs, in order", withGPUs, nil, visible("GPU-b,GPU-a"), given("nvidia", "gpu", 0, "GPU-b", "GPU-a"))
	f("two asks", withGPUs, nil, visible("GPU-b,GPU-a"), given("nvidia", "gpu", 0, "GPU-b"), given("nvidia", "gpu", 0, "GPU-a"))
	f("a slice", withGPUs, nil, visible("MIG-1"), given("nvidia", "mig", 0, "MIG-1"))
	f("another spelling", withGPUs, nil, visible("GPU-a"), given("NVIDIA", "GPU", 0, "GPU-a"))
	shared := visible("GPU-a")
	shared["NOMADISH_GPU_SHARE"] = "250"
	f("a share", withGPUs, nil, shared, given("nvidia", "gpu", 250, "GPU-a"))
	f("the whole as a share", withGPUs, nil, visible("GPU-a"), given("nvidia", "gpu", 1000, "GPU-a"))
	f("none on a node with GPUs", withGPUs, nil, none)
	f("another device on a node with GPUs", withGPUs, nil, none, given("mellanox", "nic", 0, "mlx5_0"))
	f("none on a node without", onlyNIC, nil, map[string]string{})
	f("none on a node that is not known", nil, nil, map[string]string{})
	f("a watcher's own word", withGPUs, map[string]string{"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"},
		map[string]string{"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"})
}

func TestGang(t *testing.T) {
	f := func(g *structs.AllocGang, want map[string]string) {
		t.Helper()
		in := Input{Task: &structs.Task{Name: "t", Env: map[string]string{"MASTER": "${NOMADISH_GANG_HOSTS}"}}, Alloc: &structs.Allocation{Gang: g}}
		got := Build(in).Vars()
		maps.DeleteFunc(got, func(k, _ string) bool { return !strings.Contains(k, "GANG") && k != "MASTER" })
		if !maps.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", g, got, want)
		}
	}
	f(nil, map[string]string{"MASTER": "${NOMADISH_GANG_HOSTS}"})
	f(&structs.AllocGang{Rank: 0, Size: 2, Hosts: []string{"10.0.0.1:20001", "[fd00::2]:20007"}}, map[string]string{
		"NOMADISH_GANG_RANK": "0", "NOMADISH_GANG_SIZE": "2", "NOMADISH_GANG_HOSTS": "10.0.0.1:20001,[fd00::2]:20007",
		"MASTER": "10.0.0.1:20001,[fd00::2]:20007",
	})
	f(&structs.AllocGang{Rank: 1, Size: 2, Hosts: []string{"10.0.0.1", "10.0.0.2"}}, map[string]string{
		"NOMADISH_GANG_RANK": "1", "NOMADISH_GANG_SIZE": "2", "NOMADISH_GANG_HOSTS": "10.0.0.1,10.0.0.2", "MASTER": "10.0.0.1,10.0.0.2",
	})
}

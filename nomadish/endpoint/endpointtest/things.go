package endpointtest

import (
	"fmt"

	"github.com/nomadish/nomadish/structs"
)

// DGX is a ready node of 2 sockets × 2 switches × 2 GPUs, named by its places.
func DGX(name, rack string) *structs.Node {
	n := &structs.Node{
		ID: name, SecretID: "s", Name: name, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Meta: map[string]string{}, NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: 1000, TotalCpuCores: 1}, Memory: structs.NodeMemoryResources{MemoryMB: 1000},
		},
	}
	if rack != "" {
		n.Meta["rack"] = rack
	}
	d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for i := range 8 {
		d.Instances = append(d.Instances, &structs.NodeDevice{
			ID: fmt.Sprintf("%s-gpu-%d", name, i), Healthy: true, Locality: &structs.NodeDeviceLocality{Socket: i / 4, Switch: i / 2},
		})
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{d}
	return n
}

// Node is a ready node of 1000 MHz and 1000 MiB.
func Node(id string) *structs.Node {
	return &structs.Node{
		ID: id, SecretID: "s", Name: id, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: 1000, TotalCpuCores: 1}, Memory: structs.NodeMemoryResources{MemoryMB: 1000},
			Disk: structs.NodeDiskResources{DiskMB: 1000},
		},
	}
}

// Job is a service of two instances that take so much memory each, in MiB.
func Job(id string, memory int) *structs.Job {
	j := &structs.Job{ID: id, Type: structs.JobTypeService, Priority: 50, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: 2, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 10, MemoryMB: memory},
		}},
	}}}
	j.Canonicalize()
	return j
}

package schedtest

import (
	"fmt"

	"github.com/nomadish/nomadish/structs"
)

// Node returns a ready node of 4 cores, 8000 MiB and no devices, as the changes make it.
func Node(id string, change ...func(*structs.Node)) *structs.Node {
	n := &structs.Node{
		ID: id, Name: "name-" + id, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible,
		Attributes:            map[string]string{"kernel.name": "linux", "unique.hostname": "host-" + id},
		Meta:                  map[string]string{},
		Drivers:               map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory: structs.NodeMemoryResources{MemoryMB: 8000}, Disk: structs.NodeDiskResources{DiskMB: 100_000},
			Networks: []*structs.NetworkResource{{Device: "eth0", IP: "10.0.0.1"}},
		},
	}
	for _, f := range change {
		f(n)
	}
	n.ComputeClass()
	return n
}

// Job is one group "g" of one mock task: 500 MHz, 256 MiB, 10 MiB of disk.
func Job(kind string, count int, change ...func(*structs.Job)) *structs.Job {
	j := &structs.Job{
		ID: "j", Type: kind, Priority: 50, CreateIndex: 1,
		TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: count, EphemeralDisk: &structs.EphemeralDisk{SizeMB: 10},
			Tasks: []*structs.Task{{
				Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1s"},
				Resources: &structs.Resources{CPU: 500, MemoryMB: 256},
			}},
		}},
	}
	for _, f := range change {
		f(j)
	}
	j.Canonicalize()
	return j
}

// EightGPUs makes a node one of eight GPUs: two sockets of two switches of two each.
// Devices are <node>-gpu-0 to -7 in the order of the tree.
func EightGPUs(n *structs.Node) {
	n.NodeResources.Cpu = structs.NodeCpuResources{CpuShares: 256_000, TotalCpuCores: 128}
	n.NodeResources.Memory.MemoryMB = 1 << 20
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	t := &structs.NodeTopology{}
	for s := range 2 {
		socket := fmt.Sprint("socket-", s)
		t.Cells = append(t.Cells, &structs.TopologyCell{ID: socket, Level: structs.LevelSocket})
		for w := range 2 {
			sw := &structs.TopologyCell{ID: fmt.Sprint("pcie-", 2*s+w), Level: structs.LevelPCIe, Parent: socket}
			for g := range 2 {
				id := fmt.Sprintf("%s-gpu-%d", n.ID, 4*s+2*w+g)
				sw.Devices = append(sw.Devices, id)
				group.Instances = append(group.Instances, &structs.NodeDevice{ID: id, Healthy: true})
			}
			t.Cells = append(t.Cells, sw)
		}
	}
	n.NodeResources.Devices, n.NodeResources.Topology = []*structs.NodeDeviceResource{group}, t
}

// GPUJob returns a job that requests one device per instance.
func GPUJob(count int, d structs.RequestedDevice) *structs.Job {
	return Job(structs.JobTypeBatch, count, func(j *structs.Job) {
		Task(j).Resources.Devices = []*structs.RequestedDevice{&d}
	})
}

// Group is a job's first group.
func Group(j *structs.Job) *structs.TaskGroup { return j.TaskGroups[0] }

// Task is the first task of a job's first group.
func Task(j *structs.Job) *structs.Task { return j.TaskGroups[0].Tasks[0] }

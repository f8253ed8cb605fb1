package endpointtest

import (
	"fmt"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// DGX is a ready node of 2 sockets × 2 switches × 2 GPUs, named by its places.
func DGX(name, rack string) *structs.Node {
	n := testcluster.Node(name, 1000)
	n.Meta, n.NodeResources.Memory.MemoryMB = map[string]string{}, 1000
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
	n := testcluster.Node(id, 1000)
	n.NodeResources.Memory.MemoryMB, n.NodeResources.Disk.DiskMB = 1000, 1000
	return n
}

// Job is a service of two instances that take so much memory each, in MiB.
func Job(id string, memory int) *structs.Job {
	j := testcluster.Job(id, structs.JobTypeService, 2)
	j.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: 10, MemoryMB: memory}
	j.Canonicalize()
	return j
}

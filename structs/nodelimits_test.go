package structs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestLargeNodesAreTaken: a node with as many devices as there may be, and what its machine says of each, is within all bounds, that of
// a message too.
func TestLargeNodesAreTaken(t *testing.T) {
	n := &structs.Node{
		ID: strings.Repeat("a", 36), SecretID: strings.Repeat("b", 36), Name: "dgx", Attributes: map[string]string{}, Meta: map[string]string{},
		Drivers: map[string]*structs.DriverInfo{"raw_exec": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 512 * 4000, TotalCpuCores: 512, ReservableCpuCores: make([]uint16, 512)},
			Memory: structs.NodeMemoryResources{MemoryMB: 24 << 20}, Disk: structs.NodeDiskResources{DiskMB: 900 << 30}, MinDynamicPort: 20000, MaxDynamicPort: 65535,
			Topology: &structs.NodeTopology{},
		},
	}
	for i := range 500 {
		n.Attributes[fmt.Sprintf("unique.device.attribute.%d", i)] = strings.Repeat("v", 100)
	}
	kind := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "NVIDIA H100 80GB HBM3", Attributes: map[string]*structs.Attribute{}}
	for i := range structs.MaxNodeDevices {
		kind.Instances = append(kind.Instances, &structs.NodeDevice{
			ID: fmt.Sprintf("GPU-%032d", i), Healthy: true, Locality: &structs.NodeDeviceLocality{PciBusID: "00000000:3B:00.0", NUMANode: 1, Socket: 1, Switch: 3},
		})
		if i%8 == 0 {
			n.NodeResources.Topology.Cells = append(n.NodeResources.Topology.Cells, &structs.TopologyCell{ID: fmt.Sprintf("pcie-%d", i/8), Level: structs.LevelPCIe})
		}
		cell := n.NodeResources.Topology.Cells[i/8]
		cell.Devices = append(cell.Devices, kind.Instances[i].ID)
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{kind}
	if err := n.CheckLimits(); err != nil {
		t.Error(err)
	}
	if size := encoded(t, &structs.NodeRegisterRequest{Node: n}); size > 900<<10 {
		t.Errorf("it takes %d bytes", size)
	}
}

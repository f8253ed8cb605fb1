package check

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestCellsOfDevices: a GPU is a cell of its own, whether it is divided into slices or not.
func TestCellsOfDevices(t *testing.T) {
	n := &structs.Node{ID: "n", NodeResources: &structs.NodeResources{Topology: &structs.NodeTopology{Cells: []*structs.TopologyCell{
		{ID: "pcie-0", Level: structs.LevelPCIe, Devices: []string{"whole"}},
		{ID: "gpu-1", Level: structs.LevelGPU, Parent: "pcie-0", Devices: []string{"slice-0", "slice-1"}},
	}}}}
	for _, row := range []struct{ device, level, want string }{
		{"whole", structs.LevelGPU, "whole [whole]"}, {"slice-0", structs.LevelGPU, "n/gpu-1 [slice-0 slice-1]"}, {"slice-1", structs.LevelGPU, "n/gpu-1 [slice-0 slice-1]"},
		{"slice-1", structs.LevelMIG, "slice-1 [slice-1]"}, {"slice-1", structs.LevelPCIe, "n/pcie-0 [whole slice-0 slice-1]"}, {"whole", structs.LevelSocket, " []"},
	} {
		name, devices := (&checker{}).cellOf(n, row.device, &structs.AllocTerms{CellLevel: row.level})
		if got := fmt.Sprint(name, " ", devices); got != row.want {
			t.Errorf("%s in a cell of level %s: %s, want %s", row.device, row.level, got, row.want)
		}
	}
}

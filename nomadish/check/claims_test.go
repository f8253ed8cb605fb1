package check

import (
	"fmt"
	"slices"
	"strings"
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

// TestRacksThatAreUnbound: what runs by a claim on a rack of which a node is drained, or that has not the size that was claimed any more, takes
// no room of its owner, on none of the rack's nodes.
func TestRacksThatAreUnbound(t *testing.T) {
	s := newSite(t)
	register := func(id, rack string) {
		n := testNode(id)
		if n.Meta = map[string]string{"rack": rack}; id == "cpu" {
			n.NodeResources.Devices = nil // of no cell
		}
		s.must(&structs.NodeRegisterEntry{Node: n, Time: s.now(), EvalSeed: "register " + id})
	}
	for _, id := range []string{"a0", "a1", "b0", "b1"} {
		register(id, id[:1])
	}
	register("cpu", "a")
	owns := &structs.CellQuota{Level: "rack", Size: 2, Count: 1}
	s.must(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "default", Cells: []*structs.CellQuota{owns}}})
	s.job("x", 2, nil)
	place := func(node string, instance int) {
		t.Helper()
		id := s.place("x", node, instance, 1, func(b *structs.PlacementBatch) {
			b.Resources.Shared.Terms = &structs.AllocTerms{Priority: 50, Claim: structs.ClaimCells, CellLevel: "rack", CellSize: 2}
			b.Instances[0].Devices = gpu("gpu-0", structs.DeviceShareWhole)
		})[0]
		if a := s.store.Snapshot().Alloc(nil, id); a.AllocatedResources.Shared.Terms.Claim != structs.ClaimCells {
			t.Fatalf("the instance on %s has no claim", node)
		}
	}
	check := func(when string) {
		t.Helper()
		if r := s.check(Options{}); len(r.Faults) > 0 {
			t.Errorf("%s: %+v", when, r.Faults)
		}
	}
	place("a0", 0)
	check("one rack is used")
	vc := s.store.Snapshot().VirtualClusters(nil).Get("default")
	claims := vc.Claims
	vc.Claims = nil
	if r := s.check(Options{}); !slices.ContainsFunc(r.Faults, func(f structs.CheckFinding) bool {
		return strings.HasPrefix(f.What, "1 cells of level rack of nvidia/gpu/h more are in guaranteed use")
	}) {
		t.Errorf("a rack that nobody owns is used, and that is not found: %+v", r.Faults)
	}
	vc.Claims = claims
	s.must(&structs.NodeDrainEntry{NodeID: "a1", Strategy: &structs.DrainStrategy{}, Time: s.now(), EvalSeed: "drain"})
	place("b0", 1)
	check("a node of the first rack is drained")
	register("b2", "b")
	s.must(&structs.NodeDrainEntry{NodeID: "a1", MarkEligible: true, Time: s.now(), EvalSeed: "ready"})
	check("the second rack has three nodes, and those of the first are ready again")
}

package state

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// The World that was moved on entry by entry equals the one made anew from the
// tables, whatever happens to nodes and allocations.
func TestWorldMovedOnEqualsRebuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, w := New(Options{})
		index := uint64(0)
		apply := func(entry any) {
			index++
			_ = w.Apply(index, 0, entry) // an unknown node or job is refused, which is fine
		}
		nodeID := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node") }
		alloc := func() string {
			return structs.DeriveID(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "seed")), rapid.Uint64Range(0, 2).Draw(t, "ordinal"))
		}
		placements := 0
		t.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) {
				n := node(nodeID())
				n.NodeResources.Cpu.ReservableCpuCores = []uint16{0, 1, 2, 3}[rapid.IntRange(0, 3).Draw(t, "first core"):]
				devices(n.NodeResources, rapid.IntRange(0, 4).Draw(t, "GPUs"), rapid.IntRange(0, 1).Draw(t, "switches"))
				if rapid.Bool().Draw(t, "in a rack") {
					n.Meta = map[string]string{"rack": rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")}
				}
				apply(&structs.NodeRegisterEntry{Node: n})
			},
			"deregister": func(*rapid.T) { apply(&structs.NodeDeregisterEntry{NodeIDs: []string{nodeID()}}) },
			"down": func(*rapid.T) {
				apply(&structs.NodeStatusEntry{NodeIDs: []string{nodeID()}, Status: structs.NodeStatusDown})
			},
			"ready": func(*rapid.T) {
				apply(&structs.NodeStatusEntry{NodeIDs: []string{nodeID()}, Status: structs.NodeStatusReady})
			},
			"drain": func(*rapid.T) {
				apply(&structs.NodeDrainEntry{NodeID: nodeID(), Strategy: &structs.DrainStrategy{}})
			},
			"place": func(*rapid.T) {
				b := batch("web", 0, nodeID(), fmt.Sprint(placements%6), 3)
				b.Instances[1].Ports = []structs.PortMapping{{Label: "http", Value: 20000 + placements}}
				b.Instances[2].Cores = map[string][]uint16{"t": {rapid.Uint16Range(0, 3).Draw(t, "core")}}
				b.Instances[2].CoreMHz = map[string]int64{"t": 1000}
				for i := range b.Instances {
					b.Instances[i].Devices = map[string][]*structs.AllocatedDeviceResource{"t": {{
						Vendor: "v", Type: "gpu", Name: "m", DeviceIDs: []string{fmt.Sprint("gpu-", rapid.IntRange(0, 4).Draw(t, "device"))},
						Share: rapid.SampledFrom([]int{0, 300, 700}).Draw(t, "share"),
					}}}
				}
				if rapid.Bool().Draw(t, "limited") {
					b.Resources.Shared.TimeLimit = time.Hour
				}
				placements++
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{b}}}})
			},
			"stop": func(*rapid.T) {
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Stop: []*structs.AllocStop{{AllocID: alloc()}}}}})
			},
			"suspend": func(*rapid.T) {
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Stop: []*structs.AllocStop{{
					AllocID: alloc(), DesiredStatus: structs.AllocDesiredSuspend, Reclaim: structs.ReclaimSuspend,
				}}}}})
			},
			"resume": func(*rapid.T) {
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Update: []*structs.AllocInPlace{{AllocID: alloc(), Resume: true}}}}})
			},
			"resize": func(*rapid.T) {
				b := batch("web", 0, "a", "x", 1)
				b.Resources.Tasks["t"].Memory.MemoryMB = rapid.Int64Range(1, 900).Draw(t, "memory")
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Update: []*structs.AllocInPlace{{AllocID: alloc(), Resources: b.Resources}}}}})
			},
			"report": func(*rapid.T) {
				status := rapid.SampledFrom([]string{"running", "unknown", "complete", "failed", "suspended"}).Draw(t, "status")
				apply(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{ID: alloc(), ClientStatus: status}}})
			},
			"collect": func(*rapid.T) {
				apply(&structs.CollectEntry{Allocs: []string{alloc(), alloc()}, Nodes: []string{nodeID()}})
			},
			"reserve": func(*rapid.T) {
				r := &structs.Reservation{NodeID: nodeID(), JobID: "web", Group: "g", CPU: int64(rapid.IntRange(0, 900).Draw(t, "reserved"))}
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Reserve: []*structs.Reservation{r}}}})
			},
			"unreserve": func(*rapid.T) {
				apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Unreserve: []string{nodeID()}}}})
			},
			"configure": func(*rapid.T) {
				apply(&structs.SchedulerConfigEntry{Config: structs.SchedulerConfiguration{
					SchedulerAlgorithm: "binpack", Granularity: map[string]int64{"cpu": rapid.Int64Range(1, 2000).Draw(t, "granularity")},
				}})
			},
			"eligibility": func(*rapid.T) {
				apply(&structs.NodeEligibilityEntry{NodeID: nodeID(), Eligibility: rapid.SampledFrom([]string{
					structs.NodeEligible, structs.NodeIneligible,
				}).Draw(t, "eligibility")})
			},
			"reconcile": func(*rapid.T) { apply(&structs.ReconcileEntry{}) },
			"": func(t *rapid.T) {
				snap := store.Snapshot()
				if d := snap.World().Diff(Rebuild(snap)); len(d) > 0 {
					t.Fatalf("at index %d: %v", snap.Index(), d)
				}
			},
		})
	})
}

// devices gives a node so many GPUs, one of them bad, under switches of two or nowhere.
func devices(r *structs.NodeResources, count, switches int) {
	if count == 0 {
		return
	}
	group := &structs.NodeDeviceResource{Vendor: "v", Type: "gpu", Name: "m"}
	topology := &structs.NodeTopology{}
	for i := range count {
		id := fmt.Sprint("gpu-", i)
		group.Instances = append(group.Instances, &structs.NodeDevice{ID: id, Healthy: i != 2})
		if i%2 == 0 {
			topology.Cells = append(topology.Cells, &structs.TopologyCell{ID: fmt.Sprint("pcie-", i/2), Level: structs.LevelPCIe})
		}
		sw := topology.Cells[len(topology.Cells)-1]
		sw.Devices = append(sw.Devices, id)
	}
	r.Devices = []*structs.NodeDeviceResource{group}
	if switches > 0 {
		r.Topology = topology
	}
}

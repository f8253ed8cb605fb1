package worker

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestAssumedIsGoneOnWith: whatever is submitted, ends and is committed between two looks, what is assumed is what it would be
// if it were put together anew.
func TestAssumedIsGoneOnWith(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBed(t)
		nodes := []string{"00000000-0000-7000-8000-0000000000a1", "00000000-0000-7000-8000-0000000000a2"}
		for _, id := range nodes {
			b.gpuNode(id)
		}
		b.ownsNode()
		f := NewAssumed()
		type submitted struct {
			plan      *structs.Plan
			committed func(whole bool)
			judged    bool
			placed    bool // in the state: a claim may have been lost
		}
		var inFlight []submitted
		seed := 0
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				seed++
				p := placing(strconv.Itoa(seed), rapid.SampledFrom(nodes).Draw(rt, "node"), rapid.Bool().Draw(rt, "claims"))
				inFlight = append(inFlight, submitted{plan: p, committed: f.add(p)})
			},
			"end": func(rt *rapid.T) {
				if len(inFlight) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(rt, "which")
				inFlight[i].committed(inFlight[i].placed)
				inFlight = append(inFlight[:i], inFlight[i+1:]...)
			},
			"commit": func(rt *rapid.T) {
				for i := range inFlight {
					if p := inFlight[i].plan; !inFlight[i].judged {
						b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: p.Place, Time: 1}}})
						inFlight[i].judged, inFlight[i].placed = true, b.store.Snapshot().Alloc(nil, p.Place[0].Allocation(0).ID) != nil
						return
					}
				}
				rt.Skip()
			},
			"change": func(*rapid.T) { b.gpuNode(nodes[0]) },
			"": func(rt *rapid.T) {
				snap := b.store.Snapshot()
				got, assumed := f.world(snap)
				want := snap.World().Edit()
				for _, x := range inFlight {
					for _, batch := range x.plan.Place {
						want.UpsertAlloc(batch.Allocation(0))
					}
				}
				if assumed != (len(inFlight) > 0) {
					rt.Fatalf("%d plans are in the air, assumed %v", len(inFlight), assumed)
				}
				if diff := got.Diff(want.World()); len(diff) > 0 {
					rt.Fatalf("with %d plans in the air: %v", len(inFlight), diff)
				}
			},
		})
	})
}

// placing is a plan that places an instance on a node, which uses its GPU: by a claim of a cell of level node, or without.
func placing(seed, node string, claims bool) *structs.Plan {
	r := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
		"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 7}, Memory: structs.AllocatedMemoryResources{MemoryMB: 3}},
	}}
	if claims {
		r.Shared.Terms = &structs.AllocTerms{Priority: 50, Claim: structs.ClaimCells, CellLevel: structs.LevelNode}
	}
	return &structs.Plan{Place: []*structs.PlacementBatch{{
		Namespace: structs.DefaultNamespace, JobID: "j", Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: node}}, Resources: r,
		Instances: []structs.Instance{{Devices: map[string][]*structs.AllocatedDeviceResource{
			"t": {{Vendor: "nvidia", Type: "gpu", Name: "T4", DeviceIDs: []string{"g0"}}},
		}}},
	}}}
}

// ownsNode gives the default namespace one node.
func (b *bed) ownsNode() {
	b.Put(b, &structs.VirtualClusterUpsertEntry{
		VirtualCluster: &structs.VirtualCluster{Name: structs.DefaultNamespace, Cells: []*structs.CellQuota{{Level: structs.LevelNode, Count: 1}}},
		EvalSeed:       "00000000-0000-7000-8000-0000000000ff", Time: 1,
	})
}

// TestFirstSubmittedClaims: of plans that claim what only one of them can get, that which was submitted first is assumed to have it, however
// often what is assumed is put together anew.
func TestFirstSubmittedClaims(t *testing.T) {
	b := newBed(t)
	var nodes []string
	for i := range 8 {
		nodes = append(nodes, fmt.Sprintf("00000000-0000-7000-8000-0000000000a%d", i))
		b.gpuNode(nodes[i])
	}
	b.ownsNode()
	f := NewAssumed()
	var committed []func(whole bool)
	for i, at := range []int{5, 2, 7, 0, 3, 6, 1, 4} {
		committed = append(committed, f.add(placing(strconv.Itoa(i), nodes[at], true)))
	}
	bound := func() (on []string) {
		b.gpuNode(nodes[0]) // so that the state has another World
		w, _ := f.world(b.store.Snapshot())
		for _, id := range nodes {
			if len(w.BindingsOn(id)) > 0 {
				on = append(on, id)
			}
		}
		return on
	}
	for i, at := range []int{5, 2, 7} {
		for range 10 {
			if got := bound(); !slices.Equal(got, nodes[at:at+1]) {
				t.Fatalf("with the first %d of the plans gone the cell is bound on %v, want %s", i, got, nodes[at])
			}
		}
		committed[i](false)
	}
}

// TestWorldStaysWhileNothingChanges: an edit that changes nothing returns the World that it began with.
func TestWorldStaysWhileNothingChanges(t *testing.T) {
	w := scheduler.NewWorld()
	e := w.Edit()
	if e.World() != w {
		t.Error("another World, with nothing changed")
	}
	e.UpsertNode(&structs.Node{ID: "n", NodeResources: &structs.NodeResources{}})
	now := e.World()
	if now == w || e.World() != now {
		t.Error("the World with the node must be another, and stay")
	}
}

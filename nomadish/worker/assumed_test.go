package worker

import (
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
		f := NewAssumed()
		type assumedPlan struct {
			plan      *structs.Plan
			committed func(whole bool)
			leased    bool // by the state
		}
		var inFlight []assumedPlan
		seed := 0
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				seed++
				p := &structs.Plan{Place: []*structs.PlacementBatch{{
					Namespace: "default", JobID: "j", Group: "g", Seed: strconv.Itoa(seed),
					Nodes: []structs.PlacedNode{{ID: rapid.SampledFrom(nodes).Draw(rt, "node")}}, Instances: []structs.Instance{{}},
					Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
						"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 7}, Memory: structs.AllocatedMemoryResources{MemoryMB: 3}},
					}},
				}}}
				inFlight = append(inFlight, assumedPlan{plan: p, committed: f.add(p)})
			},
			"end": func(rt *rapid.T) {
				if len(inFlight) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(rt, "which")
				inFlight[i].committed(inFlight[i].leased)
				inFlight = append(inFlight[:i], inFlight[i+1:]...)
			},
			"commit": func(rt *rapid.T) {
				for i := range inFlight {
					if p := inFlight[i].plan; !inFlight[i].leased {
						inFlight[i].leased = true
						b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: p.Place, Time: 1}}})
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

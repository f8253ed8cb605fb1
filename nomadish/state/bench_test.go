package state

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// BenchmarkPlanApply applies a plan of n placements over 1,000 nodes to a store that
// has as many allocations again.
func BenchmarkPlanApply(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := benchWorld(b)
			w.plan(benchPlan("before", n))
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				p := benchPlan(fmt.Sprint("seed", i), n)
				b.StopTimer()
				w.index++
				b.StartTimer()
				if err := w.w.PlanApply(w.index, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				old := &structs.AllocClientEntry{}
				gone := &structs.CollectEntry{}
				stop := &structs.JudgedPlan{}
				for k := range n {
					id := structs.DeriveID(fmt.Sprint("seed", i), uint64(k)) // small
					stop.Stop = append(stop.Stop, &structs.AllocStop{AllocID: id})
					old.Updates = append(old.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientComplete})
					gone.Allocs = append(gone.Allocs, id)
				}
				for _, e := range []any{&structs.PlanCommit{Plans: []*structs.JudgedPlan{stop}}, old, gone} {
					w.index++
					if err := w.w.Apply(w.index, 0, e); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/placement")
		})
	}
}

// BenchmarkAllocClient applies one report of 64 allocations of a job of 10,000.
func BenchmarkAllocClient(b *testing.B) {
	w := benchWorld(b)
	w.plan(benchPlan("s", 10_000))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		e := &structs.AllocClientEntry{}
		for range 64 {
			i++
			id := structs.DeriveID("s", uint64(i%10_000)) // small
			e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: id, ClientStatus: structs.AllocClientRunning})
		}
		w.index++
		if err := w.w.AllocClient(w.index, e); err != nil {
			b.Fatal(err)
		}
	}
}

func benchWorld(b *testing.B) *world {
	b.Helper()
	w := newWorld(b)
	for i := range 1_000 {
		w.index++
		if err := w.w.NodeRegister(w.index, &structs.NodeRegisterEntry{Node: node(fmt.Sprintf("node-%04d", i))}); err != nil {
			b.Fatal(err)
		}
	}
	w.register(job("web"))
	return w
}

func benchPlan(seed string, n int) *structs.JudgedPlan {
	p := batch("web", 0, "", seed, n)
	p.Nodes = nil
	for i := range 1_000 {
		p.Nodes = append(p.Nodes, structs.PlacedNode{ID: fmt.Sprintf("node-%04d", i)})
	}
	for i := range p.Instances {
		p.Instances[i].Node = i % 1_000
	}
	return &structs.JudgedPlan{EvalID: "e", Place: []*structs.PlacementBatch{p}, Time: 1}
}

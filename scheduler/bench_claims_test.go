package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkClaims decides a job of one tenant of 100 that together own all nodes of 8 GPUs. Others use half of all GPUs, and each tenant
// uses a part of its own. opportunistic is a job of somebody who owns nothing, with 100 virtual clusters and without any.
func BenchmarkClaims(b *testing.B) {
	sizes := []int{1_000, 10_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, nodes := range sizes {
		for _, owned := range []bool{true, false} {
			w := tenantsWorld(nodes, owned)
			for _, gpus := range []int{1, 8} {
				kind, namespace := "opportunistic-alone", "nobody"
				if owned {
					b.Run(fmt.Sprintf("guaranteed/nodes=%d/gpus=%d", nodes, gpus), func(b *testing.B) { benchTenant(b, w, "tenant-7", gpus, structs.ClassGuaranteed) })
					kind = "opportunistic-beside"
				}
				if gpus == 1 {
					b.Run(fmt.Sprintf("%s/nodes=%d/gpus=%d", kind, nodes, gpus), func(b *testing.B) { benchTenant(b, w, namespace, gpus, "auto") })
				}
			}
		}
	}
}

func benchTenant(b *testing.B, w *scheduler.World, namespace string, gpus int, class string) {
	b.Helper()
	job := gpuJobOf(namespace, "bench", 1, gpus)
	job.Class = class
	ids, prepared := 0, scheduler.NewPrepared()
	b.ReportAllocs()
	for b.Loop() {
		in := inputOf(job, &ids)
		in.Prepared = prepared
		plan, err := scheduler.Schedule(w, &structs.Evaluation{ID: "e", Namespace: namespace, JobID: job.ID, Priority: 50, Type: job.Type}, in)
		if err != nil || len(plan.Place) != 1 {
			b.Fatalf("%d placed, %v", len(plan.Place), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/evaluation")
}

// tenantsWorld is nodes of 8 GPUs of which others use half. If they are owned, 100 tenants own them all, and a fifth of what each
// owns is bound.
func tenantsWorld(nodes int, owned bool) *scheduler.World {
	e := scheduler.NewWorld().Edit()
	for i := range nodes {
		e.UpsertNode(eightGPUs(fmt.Sprintf("node-%06d", i)))
	}
	if owned {
		var chain world.ChainKey
		probe := e.World().Edit()
		probe.SetQuotas("any", []world.Quota{{Level: "node", Count: 1}})
		for key := range probe.World().Chains {
			chain = key
		}
		for i := range 100 {
			e.SetQuotas(fmt.Sprint("tenant-", i), []world.Quota{{Chain: chain, Level: "node", Count: nodes / 100, Order: uint64(i + 1)}}) // small
		}
	}
	use := func(id, namespace, node string, first, count int, level string) {
		var ids []string
		for g := range count {
			ids = append(ids, fmt.Sprintf("%s-gpu-%d", node, first+g))
		}
		terms := &structs.AllocTerms{Priority: 50}
		if level != "" {
			terms.Claim, terms.CellLevel = structs.ClaimCells, level
		}
		e.UpsertAlloc(&structs.Allocation{
			ID: id, Namespace: namespace, JobID: id, TaskGroup: "g", NodeID: node, DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
			AllocatedResources: &structs.AllocatedResources{
				Shared: structs.AllocatedSharedResources{Terms: terms},
				Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Devices: []*structs.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: ids}}}},
			},
		})
	}
	for i := range nodes {
		node := fmt.Sprintf("node-%06d", i)
		if i%5 == 0 && owned {
			use(fmt.Sprint("own-", i), fmt.Sprint("tenant-", i/5%100), node, 0, 8, "node")
			continue
		}
		use(fmt.Sprint("other-", i), "others", node, i%5, 4, "")
	}
	return e.World()
}

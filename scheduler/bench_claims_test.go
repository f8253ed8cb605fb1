package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkClaims decides jobs of one tenant of 100 that together own all nodes of 8 GPUs. Others use half of all GPUs, and each tenant
// uses a part of its own. opportunistic is a job of somebody who owns nothing, with 100 virtual clusters and without any. growth and
// beside compare two worlds, measured in turn within one run.
func BenchmarkClaims(b *testing.B) {
	small, large := 1_000, 10_000
	if testing.Short() {
		small, large = 500, 1_000
	}
	type side struct {
		nodes int
		owned bool
	}
	made := map[side]*scheduler.World{}
	on := func(s side) *scheduler.World {
		if made[s] == nil {
			made[s] = tenantsWorld(s.nodes, s.owned)
		}
		return made[s]
	}
	const inARow = 4 // a tenant of ten nodes has room for so many jobs of 8 GPUs
	compare := func(name, unit string, d *decision, sides [2]side) {
		b.Run(name, func(b *testing.B) {
			for _, s := range sides {
				d.on(b, on(s))
			}
			paired(b, unit, func(i int) float64 { return micros(d.round(b, on(sides[i]), inARow)) / inARow })
		})
	}
	nobody := tenantDecision("nobody", 1, structs.ClassAuto)
	for _, nodes := range []int{small, large} {
		for _, gpus := range []int{1, 8} {
			b.Run(fmt.Sprintf("guaranteed/nodes=%d/gpus=%d", nodes, gpus), func(b *testing.B) {
				tenantDecision("tenant-7", gpus, structs.ClassGuaranteed).measure(b, on(side{nodes, true}), inARow, "evaluation", 1)
			})
		}
		b.Run(fmt.Sprintf("opportunistic/nodes=%d", nodes), func(b *testing.B) { nobody.measure(b, on(side{nodes, true}), inARow, "evaluation", 1) })
	}
	for _, gpus := range []int{1, 8} {
		compare(fmt.Sprintf("growth/gpus=%d", gpus), "growth", tenantDecision("tenant-7", gpus, structs.ClassGuaranteed), [2]side{{small, true}, {large, true}})
	}
	compare("beside", "ratio", nobody, [2]side{{large, false}, {large, true}})
}

// tenantDecision is a job of one instance, of a namespace.
func tenantDecision(namespace string, gpus int, class string) *decision {
	d := newDecision(gpuJobOf(namespace, "bench", 1, gpus), 1)
	d.job.Class = class
	return d
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

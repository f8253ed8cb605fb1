package scheduler

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// benchCluster has n nodes in 20 classes, each with room for 32 instances.
func benchCluster(b *testing.B, n int) *cluster {
	c := newCluster(b)
	e := c.w.Edit()
	for i := range n {
		e.UpsertNode(testNode(fmt.Sprintf("node-%06d", i), func(n *structs.Node) {
			n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = 16_000, 16_000
			n.NodeResources.Disk.DiskMB = 1_000_000
			n.Meta["rack"] = fmt.Sprint(i % 20)
		}))
	}
	c.w = e.World()
	return c
}

func benchSchedule(b *testing.B, c *cluster, want int) {
	in, ev := c.input(), c.newEval()
	in.Annotate = false
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		plan, err := Schedule(c.w, ev, in)
		if err != nil || placed(plan) != want {
			b.Fatalf("%d placed, %v", placed(plan), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(want), "µs/placement")
}

func BenchmarkSchedule(b *testing.B) {
	ports := func(j *structs.Job) {
		group(j).Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "a"}, {Label: "b"}}}}
	}
	spread := func(j *structs.Job) { j.Spreads = []*structs.Spread{{Attribute: "${meta.rack}", Weight: 50}} }
	plain := func(*structs.Job) {}
	for _, k := range []struct {
		name         string
		kind         string
		nodes, count int
		change       func(*structs.Job)
		algorithm    string
	}{
		{"service", structs.JobTypeService, 1000, 10_000, plain, structs.AlgorithmBinpack},
		{"batch", structs.JobTypeBatch, 1000, 10_000, plain, structs.AlgorithmBinpack},
		{"spread-algorithm", structs.JobTypeService, 1000, 10_000, plain, structs.AlgorithmSpread},
		{"ports", structs.JobTypeService, 1000, 10_000, ports, structs.AlgorithmBinpack},
		{"spread-racks", structs.JobTypeService, 1000, 10_000, spread, structs.AlgorithmBinpack},
		{"distinct-hosts", structs.JobTypeService, 10_000, 1000, func(j *structs.Job) {
			j.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
		}, structs.AlgorithmBinpack},
		{"system", structs.JobTypeSystem, 10_000, 10_000, plain, structs.AlgorithmBinpack},
		{"one", structs.JobTypeService, 10_000, 1, plain, structs.AlgorithmBinpack},
		{"one-of-100k", structs.JobTypeService, 100_000, 1, plain, structs.AlgorithmBinpack},
	} {
		b.Run(fmt.Sprintf("%s/%dx%d", k.name, k.count, k.nodes), func(b *testing.B) {
			c := benchCluster(b, k.nodes)
			c.config.SchedulerAlgorithm = k.algorithm
			c.register(testJob(k.kind, k.count, k.change))
			benchSchedule(b, c, k.count)
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	c := benchCluster(b, 1000)
	c.register(testJob(structs.JobTypeService, 10_000))
	plan, err := Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e := c.w.Edit()
		if _, refused, _ := e.Judge(plan); len(refused) > 0 {
			b.Fatal(refused)
		}
		e.World()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10_000, "µs/placement")
}

// BenchmarkUpsertAlloc is what the state pays for the World, by allocation.
func BenchmarkUpsertAlloc(b *testing.B) {
	c := benchCluster(b, 1000)
	c.register(testJob(structs.JobTypeService, 10_000))
	plan, err := Schedule(c.w, c.newEval(), c.input())
	if err != nil {
		b.Fatal(err)
	}
	var allocs []*structs.Allocation
	for _, batch := range plan.Place {
		for i := range batch.Instances {
			allocs = append(allocs, batch.Allocation(i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		e := c.w.Edit()
		for _, a := range allocs {
			e.UpsertAlloc(a)
		}
		e.World()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10_000, "µs/alloc")
}

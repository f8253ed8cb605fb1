package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Further measurements, which no row of the table asks for.

// BenchmarkFurther is other things that jobs ask for.
func BenchmarkFurther(b *testing.B) {
	many := func(name, kind string, count, perNodes, nodes int, change func(*structs.Job)) {
		for _, s := range eachSize("small", fillNone, 0, nodes) {
			n := min(count, s.nodes*perNodes)
			bench(b, name, newDecision(benchJob(kind, n, change), n), s)
		}
	}
	many("ports", structs.JobTypeService, manyInstances, 10, 10_000, func(j *structs.Job) {
		j.TaskGroups[0].Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "a"}, {Label: "b"}}}}
	})
	many("distinct-hosts", structs.JobTypeService, manyInstances, 1, 10_000, func(j *structs.Job) {
		j.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	})
	many("system", structs.JobTypeSystem, manyInstances, 1, 10_000, func(*structs.Job) {})
	for _, policy := range []string{"spread", "first-fit", "next-fit", "random"} {
		many("policy-"+policy, structs.JobTypeService, manyInstances, 10, 10_000, func(j *structs.Job) { j.Policy = policy })
	}
	for _, s := range eachSize("small", fillFull, 0, 1000, 100_000) { // finds nothing, and says why
		b.Run(fmt.Sprintf("no-room/%s", s), func(b *testing.B) {
			d := newDecision(benchJob(structs.JobTypeService, 1, volume(1500, 2000)), 0)
			d.measure(b, worlds.get(s), 1, "evaluation", 1)
		})
	}
}

// BenchmarkCommit is what judging a plan costs the applier, and following what is
// committed costs the state.
func BenchmarkCommit(b *testing.B) {
	for _, s := range eachSize("small", fillHalf, 0, 10_000) {
		job := benchJob(structs.JobTypeService, s.nodes)
		b.Run(fmt.Sprintf("judge/%s", s), func(b *testing.B) {
			w := worlds.get(s)
			plan, _ := newDecision(job, s.nodes).on(b, w)
			timed(b, s.nodes, func() { commit(b, w, plan) })
		})
		b.Run(fmt.Sprintf("upsert-alloc/%s", s), func(b *testing.B) {
			w := worlds.get(s)
			plan, _ := newDecision(job, s.nodes).on(b, w)
			var allocs []*structs.Allocation
			for _, batch := range plan.Place {
				for i := range batch.Instances {
					allocs = append(allocs, batch.Allocation(i))
				}
			}
			timed(b, len(allocs), func() {
				e := w.Edit()
				for _, a := range allocs {
					e.UpsertAlloc(a)
				}
				e.World()
			})
		})
	}
}

// timed reports the median cost of f, divided by n.
func timed(b *testing.B, n int, f func()) {
	var took []time.Duration
	b.ResetTimer()
	for b.Loop() {
		stop := stopwatch()
		f()
		took = append(took, stop())
	}
	b.ReportMetric(micros(median(took))/float64(n), "µs/alloc")
	b.ReportMetric(0, "ns/op")
}

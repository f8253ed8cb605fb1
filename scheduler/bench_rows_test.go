package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// The rows of the table of decisions. .ci/benchtable knows them by the first part of
// their names and says what they must reach; docs/design/numbers.md says how they are measured.

const manyInstances = 10_000

func eachSize(layout, fill string, racks int, of ...int) (out []worldSpec) {
	for _, n := range sizes(of...) {
		if s := (worldSpec{layout, fill, n, racks}); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// BenchmarkMany is jobs of many instances each, most of the table.
func BenchmarkMany(b *testing.B) {
	service, batch := structs.JobTypeService, structs.JobTypeBatch
	plainWorlds := slices.Concat(
		eachSize("small", fillNone, 0, 1000, 10_000, 50_000), eachSize("big", fillNone, 0, 1000, 10_000),
		eachSize("mixed", fillHalf, 0, 10_000, 100_000))
	if testing.Short() {
		plainWorlds = slices.Concat(eachSize("small", fillNone, 0, 1000), eachSize("mixed", fillHalf, 0, 1000))
	}
	for _, s := range plainWorlds {
		bench(b, "service", newDecision(benchJob(service, manyInstances), manyInstances), s)
		bench(b, "batch", newDecision(benchJob(batch, manyInstances), manyInstances), s)
	}
	for _, s := range eachSize("small", fillFull, 0, 10_000) {
		n := s.nodes / 10
		bench(b, "service", newDecision(benchJob(service, n, volume(100, 64)), n), s)
	}
	gpuWorlds := slices.Concat(eachSize("dgx", fillNone, 0, 1000, 10_000, 100_000),
		eachSize("dgx", fillHalf, 0, 1000, 10_000), eachSize("mixed", fillHalf, 0, 10_000))
	for _, s := range gpuWorlds {
		for _, request := range []struct {
			row, level string
			gpus       int
		}{
			{"gpu-1", "", 1}, {"gpu-4", "", 4},
			{"topology-pcie-2", structs.LevelPCIe, 2}, {"topology-socket-4", structs.LevelSocket, 4},
		} {
			n := min(manyInstances, s.nodes/2)
			switch {
			case s.layout == "mixed":
				n = s.nodes / 20 // few nodes have so many
			case s.fill == fillHalf:
				n = s.nodes / 4 // about as many sockets again are free
			}
			bench(b, request.row, newDecision(benchJob(service, n, gpus(request.gpus, request.level)), n), s)
			if request.row == "gpu-1" {
				bench(b, "gpu-1-batch", newDecision(benchJob(batch, n, gpus(1, "")), n), s)
			}
		}
	}
}

// BenchmarkScored is jobs that prefer some nodes to others.
func BenchmarkScored(b *testing.B) {
	affinity := func(j *structs.Job) {
		j.Affinities = []*structs.Affinity{{LTarget: "${meta.rack}", Operand: "=", RTarget: "r7", Weight: 50}}
	}
	spread := func(j *structs.Job) { j.Spreads = []*structs.Spread{{Attribute: "${meta.rack}", Weight: 50}} }
	for _, s := range slices.Concat(eachSize("small", fillNone, 50, 1000, 10_000, 100_000), eachSize("small", fillHalf, 50, 10_000)) {
		n := min(manyInstances, 4*s.nodes)
		for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch} {
			bench(b, "affinity-"+kind, newDecision(benchJob(kind, n, affinity), n), s)
			bench(b, "spread-50-racks-"+kind, newDecision(benchJob(kind, n, spread), n), s)
		}
	}
}

// BenchmarkGang is a gang of 64 nodes' GPUs under one rack.
func BenchmarkGang(b *testing.B) {
	size := 64
	if testing.Short() {
		size = 16
	}
	job := benchJob(structs.JobTypeBatch, size, gpus(8, ""), func(j *structs.Job) {
		g := j.TaskGroups[0]
		g.Gang, g.Topology = &structs.Gang{}, &structs.TopologyConstraint{Level: "rack", Required: true}
	})
	d := newDecision(job, size)
	d.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
	for _, s := range slices.Concat(eachSize("dgx", fillNone, -size, 10_000), eachSize("dgx", oneRackFree, -size, 10_000)) {
		b.Run(fmt.Sprintf("gang-8-gpus-each/%s/members=%d", s, size), func(b *testing.B) {
			d.measure(b, worlds.get(s), 1, "gang", 1)
		})
	}
}

// singles is how many jobs of one instance are decided one after another.
const singles = 40

// BenchmarkSingle is whole evaluations of jobs of one instance, each decided on what
// the one before left.
func BenchmarkSingle(b *testing.B) {
	single := func(row string, job *structs.Job, specs ...worldSpec) {
		for _, s := range specs {
			b.Run(fmt.Sprintf("%s/%s", row, s), func(b *testing.B) {
				newDecision(job, 1).measure(b, worlds.get(s), singles, "evaluation", 1)
			})
		}
	}
	plain := benchJob(structs.JobTypeService, 1)
	oneGPU := benchJob(structs.JobTypeService, 1, gpus(1, ""))
	single("one", plain, eachSize("small", fillNone, 0, 1000, 10_000, 50_000)...)
	single("one", plain, eachSize("mixed", fillHalf, 0, 10_000)...)
	single("one", plain, eachSize("small", fillHalf, 50, 10_000)...)
	single("one-gpu-of-full", oneGPU, eachSize("dgx", fillFull, 0, 1000, 10_000)...)
	single("one-gpu-of-full", oneGPU, eachSize("mixed", fillFull, 0, 10_000)...)
}

// BenchmarkPreempt is requests of a high priority onto a cluster that is full: whole evaluations of
// one instance each, on what the one before left, and many instances at once.
func BenchmarkPreempt(b *testing.B) {
	high := func(j *structs.Job) { j.Priority = 90 }
	const requests = 100
	for _, s := range slices.Concat(
		eachSize("small", fillReserved, 0, 1000, 10_000, 100_000), eachSize("dgx", fillReserved, 0, 1000, 10_000), eachSize("mixed", fillReserved, 0, 10_000),
	) {
		kinds := map[string]func(*structs.Job){"plain": volume(1000, 1024)}
		if s.layout != "small" {
			kinds = map[string]func(*structs.Job){"gpu-1": gpus(1, ""), "gpu-2-of-a-switch": gpus(2, structs.LevelPCIe)}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			b.Run(fmt.Sprintf("one/%s-%s", kind, s), func(b *testing.B) {
				d := newDecision(benchJob(structs.JobTypeService, 1, kinds[kind], high), 1)
				d.config = *preemptConfig()
				d.measure(b, worlds.get(s), requests, "evaluation", 1)
			})
			b.Run(fmt.Sprintf("many/%s-%s", kind, s), func(b *testing.B) {
				d := newDecision(benchJob(structs.JobTypeService, requests, kinds[kind], high), requests)
				d.config = *preemptConfig()
				d.measure(b, worlds.get(s), 1, "placement", requests)
			})
		}
	}
}

// BenchmarkGrowth compares what the same costs in a small and in a large world, both
// measured in turn within one run.
func BenchmarkGrowth(b *testing.B) {
	small, large := 1000, 100_000
	if testing.Short() {
		small, large = 500, 1000
	}
	type request struct {
		row, requestKey, oneFits string
		change                   []func(*structs.Job)
	}
	requests := []request{
		{"plain", "small", oneFits, nil},
		{"gpu", "dgx", oneFits4GPU, []func(*structs.Job){gpus(4, "")}},
		{"topology", "dgx", oneFitsPCIe, []func(*structs.Job){gpus(2, structs.LevelPCIe)}},
	}
	for _, fill := range []string{fillNone, fillFull, "one"} {
		for _, a := range requests {
			f, count := fill, small/2
			switch fill {
			case "one":
				f = a.oneFits
			case fillFull:
				count = small / 50
				if a.row == "plain" {
					a.change = []func(*structs.Job){volume(100, 64)}
				}
			}
			on := [2]worldSpec{{a.requestKey, f, small, 0}, {a.requestKey, f, large, 0}}
			if fill != "one" {
				growth(b, fmt.Sprintf("many/%s-%s", a.row, f), on, benchJob(structs.JobTypeService, count, a.change...), 1)
			}
			times := singles / 4
			if fill == "one" {
				times = 1 // the next would find nothing
			}
			growth(b, fmt.Sprintf("single/%s-%s", a.row, f), on, benchJob(structs.JobTypeService, 1, a.change...), times)
		}
	}
	racks := [2]worldSpec{{"small", fillHalf, small, -64}, {"small", fillHalf, large, -64}}
	growth(b, "racks-too/plain-half", racks, benchJob(structs.JobTypeService, 1), singles/4)
}

func growth(b *testing.B, name string, on [2]worldSpec, job *structs.Job, times int) {
	want := job.TaskGroups[0].Count
	b.Run(fmt.Sprintf("%s/nodes=%s:%s", name, thousands(on[1].nodes), thousands(on[0].nodes)), func(b *testing.B) {
		d := newDecision(job, want)
		for _, s := range on {
			d.verify(b, worlds.get(s))
		}
		paired(b, "growth", func(side int) float64 {
			return micros(d.round(b, worlds.get(on[side]), times)) / float64(times*want)
		})
	})
}

// paired measures two sides in turn and reports the median of the second's cost
// divided by the first's, and both medians.
func paired(b *testing.B, unit string, side func(int) float64) {
	var cost [2][]float64
	var ratios []float64
	one := func() {
		var got [2]float64
		first := len(ratios) % 2
		got[first] = side(first)
		got[1-first] = side(1 - first)
		cost[0], cost[1] = append(cost[0], got[0]), append(cost[1], got[1])
		ratios = append(ratios, got[1]/got[0])
	}
	for b.Loop() {
		one()
	}
	b.ReportMetric(median(ratios), unit)
	b.ReportMetric(median(cost[0]), "µs/small")
	b.ReportMetric(median(cost[1]), "µs/large")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHard is the worlds that are hard for a search: one node fits, the others
// nearly do. The first placement is an evaluation of one instance; the following
// is what each of a hundred more adds to it.
func BenchmarkHard(b *testing.B) {
	const more = 100
	for _, fill := range []string{hardOne, hardEither, hardGranule} {
		for _, s := range eachSize("small", fill, 0, 100_000) {
			one := newDecision(benchJob(structs.JobTypeService, 1, volume(hardMHz, hardMemoryMB)), 1)
			many := newDecision(benchJob(structs.JobTypeService, 1+more, volume(hardMHz, hardMemoryMB)), 1+more)
			b.Run(s.String(), func(b *testing.B) {
				w := worlds.get(s)
				var first, following []float64
				b.ResetTimer()
				for b.Loop() {
					_, short := one.on(b, w)
					_, long := many.on(b, w)
					first, following = append(first, micros(short)), append(following, micros(long-short)/more)
				}
				b.ReportMetric(median(first), "µs/first")
				b.ReportMetric(median(following), "µs/following")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

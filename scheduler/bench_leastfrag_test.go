package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// benchTypical is a mixture of requests as clusters with GPUs see them: mostly one GPU or a part of
// one, with as much CPU and memory as suits.
func benchTypical() *scheduler.Typical {
	var requests []structs.TypicalRequest
	for i, a := range []struct{ gpus, share, weight int }{
		{1, 0, 40}, {2, 0, 10}, {4, 0, 6}, {8, 0, 4}, {1, 250, 15}, {1, 500, 15}, {1, 800, 10},
	} {
		for k := range 8 {
			job := benchJob(structs.JobTypeBatch, 1, gpus(a.gpus, ""), volume(1000*a.gpus*(k+1), 4096*a.gpus*(1+(i+k)%4)))
			if a.share > 0 {
				job.TaskGroups[0].Tasks[0].Resources.Devices[0].Share = a.share
			}
			requests = append(requests, structs.TypicalRequest{Job: job, Group: job.TaskGroups[0], Weight: int64(a.weight)})
		}
	}
	return scheduler.NewTypical(requests)
}

// BenchmarkLeastFrag is the policy least-fragmentation: many instances of one job, and
// whole evaluations of one instance.
func BenchmarkLeastFrag(b *testing.B) {
	typical := benchTypical()
	least := func(kind string, count int, change ...func(*structs.Job)) *decision {
		d := newDecision(benchJob(kind, count, change...), count)
		d.config.SetNodeOrder(structs.PolicyLeastFragmentation)
		d.typical = typical
		return d
	}
	kinds := []struct {
		name   string
		change []func(*structs.Job)
	}{{"plain", nil}, {"gpu-1", []func(*structs.Job){gpus(1, "")}}, {"gpu-4", []func(*structs.Job){gpus(4, "")}}}
	for _, s := range slices.Concat(eachSize("dgx", fillHalf, 0, 1000, 10_000, 100_000), eachSize("mixed", fillHalf, 0, 1000, 10_000, 100_000)) {
		for _, k := range kinds {
			n := min(manyInstances, s.nodes/20)
			b.Run(fmt.Sprintf("many/%s-%s", k.name, s), func(b *testing.B) {
				least(structs.JobTypeService, n, k.change...).measure(b, worlds.get(s), 1, "placement", n)
			})
			b.Run(fmt.Sprintf("one/%s-%s", k.name, s), func(b *testing.B) {
				least(structs.JobTypeService, 1, k.change...).measure(b, worlds.get(s), singles, "evaluation", 1)
			})
		}
	}
}

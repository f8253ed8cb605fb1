package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkFailing is whole evaluations that find no room, and say why of every node: on a cluster
// of the size of a published trace, and on larger ones. "shared": of each GPU 0.7 is taken, as
// where most requests are for parts of one.
func BenchmarkFailing(b *testing.B) {
	share := func(thousandths int) func(*structs.Job) {
		return func(j *structs.Job) {
			gpus(1, "")(j)
			j.TaskGroups[0].Tasks[0].Resources.Devices[0].Share = thousandths
		}
	}
	model := func(name string) func(*structs.Job) {
		return func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Resources.Devices[0].Name = name }
	}
	for _, nodes := range []int{1213, 10_000} {
		if testing.Short() && nodes > 1213 {
			continue
		}
		spec := worldSpec{"mixed", fillNone, nodes, 0}
		for _, row := range []struct {
			name    string
			request []func(*structs.Job)
		}{
			{"volume", []func(*structs.Job){volume(256_000, 600<<10)}},
			{"gpus-8", []func(*structs.Job){gpus(8, "")}},
			{"gpus-of-a-switch", []func(*structs.Job){gpus(2, structs.LevelPCIe)}},
			{"share", []func(*structs.Job){share(500)}},
			{"share-of-a-model", []func(*structs.Job){share(500), model("nvidia/gpu/A10")}},
		} {
			b.Run(fmt.Sprintf("%s/shared/nodes=%s", row.name, thousands(nodes)), func(b *testing.B) {
				plan, _ := newDecision(benchJob(structs.JobTypeService, 8*nodes, volume(100, 100), share(700)), anyNumber).on(b, worlds.get(spec))
				world := commit(b, worlds.get(spec), plan)
				benchFailing(b, world, benchJob(structs.JobTypeService, 1, append([]func(*structs.Job){volume(200, 200)}, row.request...)...))
			})
		}
	}
}

func benchFailing(b *testing.B, w *scheduler.World, job *structs.Job) {
	d := newDecision(job, 0)
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		plan, t := d.on(b, w)
		took = append(took, t)
		if m := plan.FailedTGAllocs["g"]; m == nil || m.NodesEvaluated == 0 {
			b.Fatalf("nothing is said of why: %+v", m)
		}
	}
	b.ReportMetric(micros(median(took)), "us/decision")
	b.ReportMetric(0, "ns/op")
}

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkExplain is what it costs to say why a job waits on a full cluster, with the
// changes that would place it.
func BenchmarkExplain(b *testing.B) {
	rack := func(j *structs.Job) {
		j.TaskGroups[0].Gang = &structs.Gang{}
		j.TaskGroups[0].Topology = &structs.TopologyConstraint{Level: "rack", Required: true}
	}
	for _, row := range []struct {
		name  string
		world worldSpec
		job   *structs.Job
	}{
		{"no-room", worldSpec{"small", fillFull, 10_000, 0}, benchJob(structs.JobTypeService, 1, volume(1500, 2000))},
		{"no-room-1000", worldSpec{"small", fillFull, 10_000, 0}, benchJob(structs.JobTypeService, 1000, volume(1500, 2000))},
		{"constraint", worldSpec{"small", fillFull, 10_000, 0}, benchJob(structs.JobTypeService, 1, volume(1500, 2000), func(j *structs.Job) {
			j.Constraints = []*structs.Constraint{{LTarget: "${attr.unique.hostname}", Operand: "=", RTarget: "x"}}
		})},
		{"gpus", worldSpec{"dgx", fillFull, 10_000, 0}, benchJob(structs.JobTypeBatch, 2000, gpus(8, structs.LevelNode))},
		{"gang", worldSpec{"dgx", fillFull, 10_000, 100}, benchJob(structs.JobTypeBatch, 64, gpus(8, ""), rack)},
	} {
		w := row.world
		if testing.Short() {
			w.nodes /= 10
		}
		b.Run(fmt.Sprintf("%s/%s", row.name, w), func(b *testing.B) { benchExplain(b, worlds.get(w), row.job) })
	}
}

func benchExplain(b *testing.B, w *scheduler.World, job *structs.Job) {
	in := scheduler.ExplainInput{Input: scheduler.Input{
		Job: job, Config: structs.DefaultSchedulerConfiguration(), Now: time.Unix(1_700_000_000, 0), Seed: 1, SnapshotIndex: 1,
	}}
	in.Config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
	var took []time.Duration
	var g *structs.GroupExplanation
	b.ReportAllocs()
	for b.Loop() {
		minted := uint64(0)
		in.NewID = func() string { minted++; return structs.DeriveID("e", minted) }
		stop := stopwatch()
		x, err := scheduler.Explain(w, in)
		took = append(took, stop())
		if err != nil {
			b.Fatal(err)
		}
		g = x.Group("g")
		if g.Missing == g.PlacedNow || len(g.Reasons) == 0 {
			b.Fatalf("nothing waits: %+v", g.Nodes)
		}
	}
	b.ReportMetric(micros(median(took))/1000, "ms/explanation")
	b.ReportMetric(float64(g.Tries), "tries")
	b.ReportMetric(float64(len(g.Smallest)), "changes")
	b.ReportMetric(0, "ns/op")
}

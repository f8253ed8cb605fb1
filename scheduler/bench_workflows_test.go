package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkWorkflows is, on nodes of 16 cores: ordinary evaluations of one instance each beside reservations of workflows that are posted, that lend to
// the job's namespace or to another, and without any; beside compares these, measured in turn within one run. Then: choosing a reservation, and starting
// a stage: the plan that has borrowers leave and places all of its jobs.
func BenchmarkWorkflows(b *testing.B) {
	nodes, workflows, stageJobs := 10_000, 500, 1000
	if testing.Short() {
		nodes, workflows, stageJobs = 500, 25, 50
	}
	job := newDecision(benchJob(structs.JobTypeBatch, 1), 1)
	ordinary := func(name string, count int, w *scheduler.World) {
		b.Run(fmt.Sprintf("ordinary/%s/workflows=%d/nodes=%d", name, count, nodes), func(b *testing.B) { job.measure(b, w, singles, "evaluation", 1) })
	}
	without := workflowsWorld(nodes, 0, 0, "")
	ordinary("none", 0, without)
	for _, row := range []struct{ name, to string }{{"lend-to-others", "namespace:others"}, {"lend-to-all", "node_pool:default"}} {
		with := workflowsWorld(nodes, workflows, 20, row.to)
		ordinary(row.name, workflows, with)
		b.Run("beside/"+row.name, func(b *testing.B) {
			sides := [2]*scheduler.World{without, with}
			paired(b, "ratio", func(side int) float64 { return micros(job.round(b, sides[side], singles)) / singles })
		})
	}
	benchReserve(b, nodes/10)
	benchStage(b, nodes/10, stageJobs)
}

// workflowsWorld is nodes of 16 cores, of which ordinary jobs use 4, and so many workflows that have reserved 8 of so many nodes each.
func workflowsWorld(nodes, workflows, parts int, to string) *scheduler.World {
	config := structs.DefaultSchedulerConfiguration()
	e := scheduler.NewWorld().Edit()
	e.Configure(&config)
	for i := range nodes {
		e.UpsertNode(slotNodeOf(fmt.Sprintf("node-%06d", i), 16))
		e.UpsertAlloc(&structs.Allocation{
			ID: fmt.Sprintf("a%07d", i), Namespace: "default", JobID: "base", TaskGroup: "g", NodeID: fmt.Sprintf("node-%06d", i),
			DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
			AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu: structs.AllocatedCpuResources{CpuShares: 4000}, Memory: structs.AllocatedMemoryResources{MemoryMB: 4000},
			}}},
		})
	}
	for i := range workflows {
		c := &structs.WorkflowClaim{Namespace: "default", ID: fmt.Sprintf("wf%04d", i), Run: 1, NodePool: structs.DefaultNodePool, Priority: 50, Posted: true, Lend: []*structs.WorkflowLend{{To: to}}}
		for k := range parts {
			c.Parts = append(c.Parts, structs.WorkflowPart{NodeID: fmt.Sprintf("node-%06d", (i*parts+k)%nodes), CPU: 8000, MemoryMB: 8000})
		}
		scheduler.SetWorkflow(e, c)
	}
	return e.World()
}

// workflowJobs are jobs of a stage, each of one instance of so many cores.
func workflowJobs(stage string, count int, cores func(i int) int) (out scheduler.WorkflowStage) {
	for i := range count {
		n := cores(i)
		job := benchJob(structs.JobTypeBatch, 1, requests(50, 1000*n, 1000*n), func(j *structs.Job) {
			j.ID, j.Workflow = fmt.Sprintf("wf/1/%s%04d", stage, i), &structs.JobWorkflow{ID: "wf", Run: 1, Stage: stage}
		})
		job.Canonicalize()
		out = append(out, job)
	}
	return out
}

// benchReserve chooses the reservation for five stages, also with as many gangs of four, for each of which a rack is required.
func benchReserve(b *testing.B, nodes int) {
	w := workflowsWorld(nodes, 0, 0, "")
	e := w.Edit()
	for i := range nodes {
		n := slotNodeOf(fmt.Sprintf("node-%06d", i), 16)
		n.Meta["rack"] = fmt.Sprintf("r%d", i/20)
		n.ComputeClass()
		e.UpsertNode(n)
	}
	w = e.World()
	for _, gang := range []int{1, 4} {
		var stages []scheduler.WorkflowStage
		for s := range 5 {
			stage := workflowJobs(string(rune('a'+s)), nodes/5, func(i int) int { return 1 + (i*7+s)%8 })
			for _, j := range stage {
				if g := j.TaskGroups[0]; gang > 1 {
					g.Count, g.Gang, g.Topology = gang, &structs.Gang{}, &structs.TopologyConstraint{Level: "rack", Required: true}
				}
			}
			stages = append(stages, stage)
		}
		b.Run(fmt.Sprintf("reserve/stages=5/jobs=%d/gang=%d/nodes=%d", nodes/5, gang, nodes), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				stop := stopwatch()
				c := scheduler.ChooseReservation(w, "default/wf", structs.DefaultNodePool, stages, structs.WorkflowReserve{}, false)
				if took = append(took, stop()); !c.Posted {
					b.Fatal(c.Missing)
				}
			}
			b.ReportMetric(micros(median(took))/1000, "ms/reservation")
			b.ReportMetric(0, "ns/op") // the median says more
		})
	}
}

func benchStage(b *testing.B, nodes, jobs int) {
	w := workflowsWorld(nodes, 0, 0, "")
	stage := workflowJobs("a", jobs, func(int) int { return 2 })
	choice := scheduler.ChooseReservation(w, "default/wf", structs.DefaultNodePool, []scheduler.WorkflowStage{stage}, structs.WorkflowReserve{}, false)
	if !choice.Posted {
		b.Fatal(choice.Missing)
	}
	claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: structs.DefaultNodePool, Priority: 50, Posted: true, Parts: choice.Parts, Lend: []*structs.WorkflowLend{{To: "node_pool:default"}}}
	e := w.Edit()
	scheduler.SetWorkflow(e, claim)
	w = e.World()
	flood := newDecision(benchJob(structs.JobTypeBatch, nodes*12, requests(50, 1000, 1000)), nodes*12)
	plan, _ := flood.on(b, w)
	w = commit(b, w, plan)
	b.Run(fmt.Sprintf("stage/jobs=%d/nodes=%d", jobs, len(claim.Parts)), func(b *testing.B) {
		var took []time.Duration
		var start scheduler.StagePlan
		list := make([]scheduler.StageJob, len(stage))
		for i, j := range stage {
			list[i] = scheduler.StageJob{Job: j, EvalID: structs.DeriveID("start", uint64(i))}
		}
		for b.Loop() {
			now, minted := time.Unix(1_700_000_000, 0), uint64(0)
			stop := stopwatch()
			prepared := scheduler.NewPrepared()
			start = scheduler.PlanStage(w, claim.Key(), list, now.UnixNano(), func(j *structs.Job) scheduler.Input {
				return scheduler.Input{
					Job: j, Config: structs.DefaultSchedulerConfiguration(), Now: now, Seed: 1, SnapshotIndex: 1, Prepared: prepared, Brief: true,
					NewID: func() string { minted++; return structs.DeriveID("new", minted) },
				}
			})
			took = append(took, stop())
		}
		if n := countPlaced(&structs.Plan{Place: start.Place}); n != len(stage) {
			b.Fatalf("%d of %d jobs are placed", n, len(stage))
		}
		b.ReportMetric(float64(len(start.Stops)), "leave")
		b.ReportMetric(micros(median(took))/1000, "ms/plan")
		b.ReportMetric(0, "ns/op") // the median says more
	})
}

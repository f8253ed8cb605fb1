package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkSlots decides jobs of one instance on a cluster whose cores are all used, by 200 projects and others: take has one leave for a slot of its
// project, which runs fewer instances than it has slots; wait is the same before its grace is over; none is a job of no project that finds no room.
func BenchmarkSlots(b *testing.B) {
	sizes := []int{1_000, 10_000}
	if testing.Short() {
		sizes = []int{500}
	}
	for _, nodes := range sizes {
		w, runs := slotsWorld(nodes)
		for _, row := range []struct {
			name, project string
			waited        time.Duration
			placed        int
		}{{"take", "p000", time.Hour, 1}, {"wait", "p000", 0, 0}, {"none", "", time.Hour, 0}} {
			b.Run(fmt.Sprintf("%s/nodes=%d", row.name, nodes), func(b *testing.B) {
				ids := 0
				in := inputOf(batchOf("bench", row.project), &ids)
				in.Now = time.Unix(1_700_000_000, 0)
				ev := &structs.Evaluation{ID: "e", Namespace: "default", JobID: "bench", Type: structs.JobTypeBatch, Priority: 50, CreateTime: in.Now.Add(-row.waited).UnixNano()}
				for b.Loop() {
					plan, err := scheduler.Schedule(w, ev, in)
					if err != nil || placed(plan) != row.placed || len(plan.Stop) != row.placed {
						b.Fatalf("%v: %d placed, %d leave", err, placed(plan), len(plan.Stop))
					}
				}
				b.ReportMetric(float64(runs), "running")
			})
		}
	}
}

// slotsWorld is nodes of ten cores that are all used: by 200 projects, each of which runs half of its instances beyond its slots, but the first, which
// runs none and has 100.
func slotsWorld(nodes int) (*scheduler.World, int) {
	config := structs.DefaultSchedulerConfiguration()
	e := scheduler.NewWorld().Edit()
	e.Configure(&config)
	for i := range nodes {
		n := slotNodeOf(fmt.Sprintf("node-%06d", i), 10)
		e.UpsertNode(n)
	}
	const projects = 200
	each := nodes * 10 / projects
	var list []*structs.ProjectNow
	for i := range projects {
		count := each / 2
		if i == 0 {
			count = 100
		}
		name := fmt.Sprintf("p%03d", i)
		list = append(list, &structs.ProjectNow{Name: name, Users: []string{name}, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}}})
	}
	now := time.Unix(1_700_000_000, 0)
	for i := range nodes * 10 {
		project := fmt.Sprintf("p%03d", 1+i%(projects-1))
		terms := &structs.AllocTerms{Priority: 50, Slots: &structs.SlotTerms{Project: project, User: project, Type: structs.SlotBatch, Cost: 1}}
		if i/(projects-1) < each/2-1 {
			terms.Claim = structs.ClaimSlots
		}
		e.UpsertAlloc(&structs.Allocation{
			ID: fmt.Sprintf("a%07d", i), Namespace: "default", JobID: "of-" + project, TaskGroup: "g", NodeID: fmt.Sprintf("node-%06d", i/10),
			DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning, CreateTime: now.Add(-time.Duration(i%86_400) * time.Second).UnixNano(),
			AllocatedResources: &structs.AllocatedResources{
				Tasks: map[string]*structs.AllocatedTaskResources{"t": {
					Cpu: structs.AllocatedCpuResources{CpuShares: 1000}, Memory: structs.AllocatedMemoryResources{MemoryMB: 1000},
				}},
				Shared: structs.AllocatedSharedResources{Terms: terms},
			},
		})
	}
	scheduler.RestoreProjects(e, list)
	return e.World(), nodes * 10
}

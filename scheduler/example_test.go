package scheduler_test

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// One node, one job of two instances: both are placed there.
func ExampleSchedule() {
	edit := scheduler.NewWorld().Edit()
	edit.UpsertNode(&structs.Node{
		ID: "n1", Name: "first", Datacenter: "dc1", Status: structs.NodeStatusReady,
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000},
			Memory: structs.NodeMemoryResources{MemoryMB: 4096},
			Disk:   structs.NodeDiskResources{DiskMB: 10_000},
		},
	})
	job := &structs.Job{
		ID: "hello", Datacenters: []string{"dc*"},
		TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: 2, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}},
		}},
	}
	job.Canonicalize()

	plan, err := scheduler.Schedule(edit.World(), &structs.Evaluation{ID: "e1", JobID: "hello"}, scheduler.Input{
		Job: job, Config: structs.DefaultSchedulerConfiguration(), Now: time.Unix(0, 0),
		NewID: func() string { return "seed" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, batch := range plan.Place {
		for i := range batch.Instances {
			a := batch.Allocation(i)
			fmt.Println(a.Name, "on", a.NodeName)
		}
	}
	fmt.Println(plan.Evals[0].Status)
	// Output:
	// hello.g[0] on first
	// hello.g[1] on first
	// complete
}

package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
)

// Ptr returns a pointer to a value, for the official client's many pointers.
func Ptr[T any](v T) *T { return &v }

// OfficialJob returns a job as a program made for Nomad builds it.
func OfficialJob(id, command string) *nomad.Job {
	job := nomad.NewServiceJob(id, id, "global", 50)
	job.Datacenters = []string{"*"}
	task := nomad.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", command})
	task.Resources = &nomad.Resources{CPU: Ptr(20), MemoryMB: Ptr(16)}
	task.LogConfig = &nomad.LogConfig{MaxFiles: Ptr(2), MaxFileSizeMB: Ptr(1)}
	group := nomad.NewTaskGroup("g", 1)
	group.EphemeralDisk = &nomad.EphemeralDisk{SizeMB: Ptr(10)}
	group.AddTask(task)
	job.AddTaskGroup(group)
	return job
}

// WaitOfficialRunning waits until a job has n running allocations.
func WaitOfficialRunning(t *testing.T, c *nomad.Client, id string, n int) []*nomad.AllocationListStub {
	t.Helper()
	var out []*nomad.AllocationListStub
	Within(t, 30*time.Second, "running allocations of "+id, func(context.Context) error {
		allocs, _, err := c.Jobs().Allocations(id, true, nil)
		if err != nil {
			return err
		}
		out = nil
		for _, a := range allocs {
			if a.ClientStatus == "running" && a.DesiredStatus == "run" {
				out = append(out, a)
			}
		}
		if len(out) != n {
			return fmt.Errorf("%d of %d run", len(out), n)
		}
		return nil
	})
	return out
}

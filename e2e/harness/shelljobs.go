package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/structs"
)

// ShellTask is a task of a shell script, and the user that it runs as.
type ShellTask struct {
	User, Script string
	Config       map[string]any
}

// ShellJob returns a job with one group of tasks, none of which is started twice.
func ShellJob(id, kind string, tasks map[string]ShellTask) *nomad.Job {
	job := OfficialJob(id, "")
	job.Type = &kind
	group := job.TaskGroups[0]
	pattern := group.Tasks[0]
	group.RestartPolicy = &nomad.RestartPolicy{Attempts: Ptr(0), Mode: Ptr("fail")}
	if kind == "batch" {
		group.ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: Ptr(0), Unlimited: Ptr(false)}
	}
	group.Tasks = nil
	for name, t := range tasks {
		task := *pattern
		task.Name, task.User = name, t.User
		task.Config = map[string]any{"command": "/bin/sh", "args": []string{"-c", t.Script}}
		for k, v := range t.Config {
			task.Config[k] = v
		}
		group.Tasks = append(group.Tasks, &task)
	}
	return job
}

// Outcome is how an allocation of RunShellJob ended.
type Outcome struct {
	id, Status string
	Out        map[string]string // standard output by task
	Events     string
}

// RunShellJob runs a batch job to its end.
func RunShellJob(t *testing.T, a *Agent, id string, tasks map[string]ShellTask) Outcome {
	t.Helper()
	if _, _, err := a.Nomad.Jobs().Register(ShellJob(id, "batch", tasks), nil); err != nil {
		t.Fatal(err)
	}
	var o Outcome
	Within(t, 20*time.Second, "the end of "+id, func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, id, true, nil)
		if err != nil {
			return err
		}
		for _, alloc := range allocs {
			if alloc.ClientStatus == structs.AllocClientComplete || alloc.ClientStatus == structs.AllocClientFailed {
				o.id, o.Status = alloc.ID, alloc.ClientStatus
				return nil
			}
		}
		return fmt.Errorf("none of %d allocations has ended", len(allocs))
	})
	alloc, _, err := a.Nomad.Allocations().Info(o.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Out = map[string]string{}
	for name, state := range alloc.TaskStates {
		o.Out[name], _ = a.CLI("alloc", "logs", o.id, name)
		for _, e := range state.Events {
			o.Events += e.Type + ": " + e.DisplayMessage + "\n"
		}
	}
	return o
}

// OpenDataDir lets every user reach the directory of the agent's data_dir, which the tests' own directories do not.
func OpenDataDir(t *testing.T, a *Agent) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(a.Dir), 0o711); err != nil { // that is what it is for
		t.Fatal(err)
	}
}

package alloc

import (
	"context"
	"fmt"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/taskenv"
	"github.com/nomadish/nomadish/structs"
)

// prepare makes a task's directories and everything that its driver needs.
// Called without the lock; slow.
func (r *Runner) prepare(ctx context.Context, name, runID string) (*driver.TaskConfig, error) {
	a := r.Alloc()
	t := taskOf(a, name)
	if t == nil {
		return nil, fmt.Errorf("task %q: not in version %d of the job", name, a.JobVersion)
	}
	groups, err := r.admit(ctx, a, t)
	if err != nil {
		return nil, err
	}
	c := &driver.TaskConfig{
		ID: runID, Name: t.Name, AllocID: a.ID, Namespace: a.Namespace, JobName: a.Job.Name, JobID: a.JobID,
		TaskGroup: a.TaskGroup, Config: t.Config, User: t.User, Groups: groups,
		AllocDir: r.dir.Shared(), TaskDir: r.dir.Task(t.Name), LogDir: r.dir.Logs(),
		Resources: resourcesOf(a, t),
	}
	d, _ := r.c.Drivers.Get(t.Driver)
	if e, ok := d.(driver.Envless); !ok || !e.IgnoresEnv() || taskenv.Refers(t.Config) {
		env := r.env(a, t)
		c.Env, c.Config = env.Vars(), env.ReplaceConfig(t.Config)
	}
	if l := t.LogConfig; l != nil {
		c.Logs = driver.LogConfig{MaxFiles: l.MaxFiles, MaxFileSizeMB: l.MaxFileSizeMB, Disabled: l.Disabled}
	}
	return c, nil
}

func (r *Runner) env(a *structs.Allocation, t *structs.Task) *taskenv.Env {
	return taskenv.Build(taskenv.Input{
		Alloc: a, Task: t, Node: r.c.Host.Node(), Region: r.c.Region,
		AllocDir: r.dir.Shared(), TaskDir: r.dir.Local(t.Name), SecretsDir: r.dir.Secrets(t.Name),
		Base: r.c.BaseEnv,
	})
}

func taskOf(a *structs.Allocation, name string) *structs.Task {
	g := groupOf(a)
	if g == nil {
		return nil
	}
	for _, t := range g.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// resourcesOf is what the servers assigned to the task, or what it requests where an
// allocation does not state it.
func resourcesOf(a *structs.Allocation, t *structs.Task) driver.Resources {
	var out driver.Resources
	if a.AllocatedResources != nil {
		if g := a.AllocatedResources.Tasks[t.Name]; g != nil {
			out.CPUShares = int(g.Cpu.CpuShares)
			out.MemoryMB, out.MemoryMaxMB = int(g.Memory.MemoryMB), int(g.Memory.MemoryMaxMB)
			for _, c := range g.Cpu.ReservedCores {
				out.Cores = append(out.Cores, int(c))
			}
			return out
		}
	}
	if t.Resources != nil {
		out.CPUShares, out.MemoryMB, out.MemoryMaxMB = t.Resources.CPU, t.Resources.MemoryMB, t.Resources.MemoryMaxMB
	}
	return out
}

package rawexec

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/client/cgroup"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/executor"
	"github.com/nomadish/nomadish/structs"
)

// defaultPids is how many processes and threads a task may have unless an operator configures another number. It does not grow with the
// machine, so that a job meets the same limit on each node.
const defaultPids = 1024

// Limits specifies how the driver's tasks are limited.
type Limits struct {
	// Parent is where the agent's control groups are, below the root of each hierarchy; empty: tasks are not limited.
	Parent string
	// Reason states why Parent is empty.
	Reason string
	// Pids is how many processes and threads a task may have; 0: the default, -1: as many as it likes.
	Pids int
}

// limiter finds out once what can be limited here.
type limiter struct {
	Limits
	once    sync.Once
	base    *cgroup.Base // nil: there is none
	limited []string
	missing string
}

// can returns what is limited, and why not everything is.
func (l *limiter) can(exec *executor.Client) (limited []string, missing string) {
	l.once.Do(func() {
		switch {
		case l.Parent != "":
			l.detect()
		case l.Reason != "":
			l.missing = l.Reason
		default:
			l.missing = "no place for control groups is configured"
		}
	})
	if exec != nil && len(l.limited) > 0 && !exec.Limits() {
		return nil, "tasks are run by an executor of an earlier version until its last task has ended"
	}
	return l.limited, l.missing
}

func (l *limiter) detect() {
	system, err := cgroup.Detect(runtime.NumCPU())
	if err == nil {
		l.base, err = system.Open(l.Parent)
	}
	if err != nil {
		l.missing = err.Error()
		return
	}
	l.limited, l.missing = l.base.Limited(), l.base.Missing()
}

// Close removes the place of the tasks' control groups, unless tasks are in it. The driver may be used on.
func (d *Driver) Close() {
	l := d.limits
	l.once.Do(func() {}) // what was not looked at was not made
	if l.base != nil {
		l.base.Close()
	}
}

// attributes are what a node reports about its limits.
func (l *limiter) attributes(exec *executor.Client) map[string]string {
	limited, missing := l.can(exec)
	out := map[string]string{structs.AttrRawExecLimits: structs.NoLimits}
	if len(limited) > 0 {
		out[structs.AttrRawExecLimits] = strings.Join(limited, ",")
	}
	if missing != "" {
		out[structs.AttrRawExecLimitsReason] = missing
	}
	return out
}

// forTask returns the control groups that a task is to have; nil: none.
func (l *limiter) forTask(task *driver.TaskConfig, cfg *config) *executor.Cgroup {
	if l.Parent == "" || cfg.cgroupV2 != "" {
		return nil
	}
	// Also where nothing can be limited: a group serves to find all that a task has started.
	const mb = 1 << 20
	r := task.Resources
	c := &executor.Cgroup{Parent: l.Parent, Limits: cgroup.Limits{Pids: l.pids(cfg), CPU: int64(max(0, r.CPUShares))}}
	switch {
	case r.MemoryMaxMB < 0: // no limit
	case r.MemoryMaxMB > r.MemoryMB:
		c.Limits.Memory, c.Limits.MemoryLow = int64(r.MemoryMaxMB)*mb, int64(max(0, r.MemoryMB))*mb
	default:
		c.Limits.Memory = int64(max(0, r.MemoryMB)) * mb
	}
	return c
}

// pids is how many processes a task may have: what the node allows, or less if the task states it; 0: no limit.
func (l *limiter) pids(cfg *config) int64 {
	node := l.nodePids()
	if node == 0 || cfg.pidsLimit > 0 && cfg.pidsLimit < node {
		return int64(cfg.pidsLimit)
	}
	return int64(node)
}

// nodePids is how many processes the node lets a task have; 0: no limit.
func (l *limiter) nodePids() int { return max(0, cmp.Or(l.Pids, defaultPids)) }

// notes returns what a task requests and does not get.
func (l *limiter) notes(c *executor.Cgroup, cfg *config) []string {
	node := l.nodePids()
	if c == nil || node == 0 || cfg.pidsLimit <= node {
		return nil
	}
	return []string{fmt.Sprintf(`pids_limit: the task requests %d processes and threads, and this node allows %d, which is its limit; `+
		`a node allows more with plugin "raw_exec" { config = { pids_limit = %d } }`, cfg.pidsLimit, node, cfg.pidsLimit)}
}

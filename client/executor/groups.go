package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/cgroup"
)

// endGroupFor bounds how long the processes of an ended task are killed, and how long its control groups are removed.
const endGroupFor = 5 * time.Second

// Cgroup has a task run in control groups of its own.
type Cgroup struct {
	// Parent is where the agent's groups are, below the root of each hierarchy.
	Parent string
	Limits cgroup.Limits
}

func (c *Cgroup) validate() error {
	return errors.Join(cgroup.ValidateParent(c.Parent), c.Limits.Validate())
}

// groups makes and removes the control groups of tasks.
type groups struct {
	mu     sync.Mutex
	system *cgroup.System
	open   map[string]*cgroup.Base // by parent; nil: only tasks of an earlier executor are there
	inUse  map[string]bool         // names of groups of tasks that have not ended
}

// kernel returns what the machine has of control groups, looking for it on first use.
func (g *groups) kernel() (*cgroup.System, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.system == nil {
		s, err := cgroup.Detect(runtime.NumCPU())
		if err != nil {
			return nil, err
		}
		g.system, g.open, g.inUse = s, map[string]*cgroup.Base{}, map[string]bool{}
	}
	return g.system, nil
}

// base opens the place of a task's groups. The first time it also removes what an executor that died has left there.
// g.mu is held.
func (g *groups) base(parent string) (*cgroup.Base, error) {
	b, err := g.system.Open(parent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if g.open[parent] == nil {
		b.Tidy(func(name string) bool { return g.inUse[name] })
	}
	g.open[parent] = b
	return b, nil
}

// adopt takes over the groups of a task that an earlier executor has started.
func (g *groups) adopt(group *cgroup.Group) error {
	if group == nil {
		return nil
	}
	if _, err := g.kernel(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inUse[group.Name] = true
	if _, known := g.open[group.Parent]; !known {
		g.open[group.Parent] = nil
	}
	return nil
}

// plan returns the groups that a task will have, or nil if none are wanted.
func (g *groups) plan(spec *Spec) (*cgroup.Group, error) {
	if spec.Cgroup == nil || spec.CgroupV2 != "" {
		return nil, nil
	}
	if _, err := g.kernel(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b, err := g.base(spec.Cgroup.Parent)
	if err != nil {
		return nil, err
	}
	group := b.Group(spec.ID, spec.Cgroup.Limits)
	g.inUse[group.Name] = true
	return group, nil
}

// create makes a task's groups.
func (g *groups) create(spec *Spec, group *cgroup.Group) error {
	if group == nil {
		return nil
	}
	err := g.system.Create(group)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Somebody has removed the place that they are made in.
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.open[spec.Cgroup.Parent]; b != nil {
		g.system.Forget(b)
	}
	if _, err = g.base(spec.Cgroup.Parent); err != nil {
		return err
	}
	return g.system.Create(group)
}

// watch has a task killed as a whole when it has no memory left.
func (g *groups) watch(t *task) error {
	if t.rec.Cgroup == nil {
		return nil
	}
	system, err := g.kernel()
	if err != nil {
		return err
	}
	t.unwatch, err = system.WatchOOM(t.rec.Cgroup, func() { _ = g.kill(t.rec.Cgroup) })
	return err
}

// fork calls f so that the process that it makes is in the group; f receives a descriptor to have it born into, or -1. It
// is called by cgroup.OnThread.
func (g *groups) fork(group *cgroup.Group, f func(unified int) (int, error)) (pid int, stays bool, err error) {
	if group == nil {
		pid, err = f(-1)
		return pid, true, err
	}
	return g.system.Start(group, f)
}

// kill kills what is in a task's groups.
func (g *groups) kill(group *cgroup.Group) error {
	if group == nil {
		return nil
	}
	system, err := g.kernel()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endGroupFor)
	defer cancel()
	return system.Kill(ctx, group)
}

// judge adds to a task's end what its groups report about it.
func (g *groups) judge(t *task, exit *Exit) {
	if t.rec.Cgroup == nil {
		if exit.Signal == int(unix.SIGKILL) || exit.Unknown {
			exit.OOMKilled = oomKilled(t.rec.CgroupV2)
		}
		return
	}
	if system, err := g.kernel(); err == nil {
		e := system.Events(t.rec.Cgroup)
		exit.OOMKilled, exit.Message = e.OOMKills > 0, t.rec.Cgroup.Text(e)
	}
}

// remove kills what is in a task's groups and removes them. They may be gone.
func (g *groups) remove(group *cgroup.Group) error {
	if err := g.kill(group); err != nil || group == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endGroupFor)
	defer cancel()
	err := g.system.Remove(ctx, group)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inUse, group.Name)
	return err
}

// close removes the places of all groups as far as they are empty.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for parent, b := range g.open {
		if b == nil {
			var err error
			if b, err = g.system.Open(parent); err != nil {
				continue
			}
		}
		b.Close()
	}
}

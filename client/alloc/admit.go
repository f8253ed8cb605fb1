package alloc

import (
	"context"
	"path/filepath"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/structs"
)

// admit checks that a task may run as its user here, makes its directories, and returns the groups that its processes
// need to enter them.
func (r *Runner) admit(ctx context.Context, a *structs.Allocation, t *structs.Task) (groups []int, err error) {
	if r.dir.Path() == "" {
		return nil, nil
	}
	u, err := users.Lookup(t.User)
	if err != nil {
		return nil, err
	}
	if err := r.c.Users.Check(t.Driver, u); err != nil {
		return nil, err
	}
	if err := users.CheckEnter(filepath.Dir(r.dir.Path()), u); err != nil {
		return nil, err
	}
	x, assign, err := r.access(ctx, a)
	if err != nil {
		return nil, err
	}
	r.dirs.Lock()
	defer r.dirs.Unlock()
	if x, err = r.dir.buildTop(x, assign); err != nil {
		return nil, err
	}
	if err := r.dir.buildShared(x); err != nil {
		return nil, err
	}
	if err := r.dir.buildTask(t.Name, u, x); err != nil {
		return nil, err
	}
	if r.c.Groups.has(x.gid) {
		groups = []int{x.gid}
	}
	if p := t.DispatchPayload; p != nil && p.File != "" && len(a.Job.Payload) > 0 {
		return groups, r.dir.WritePayload(t.Name, p.File, a.Job.Payload)
	}
	return groups, nil
}

// access decides who may enter the allocation's directories if they are new, and how they come to a group.
func (r *Runner) access(ctx context.Context, a *structs.Allocation) (access, func(dir string) (int, error), error) {
	x, addsGroups := ownAccess, true
	for _, t := range groupOf(a).Tasks {
		u, err := users.Lookup(t.User)
		if err != nil {
			continue // that task does not start
		}
		if !u.Own() {
			x = x.with(u)
		}
		d, _ := r.c.Drivers.Get(t.Driver)
		g, ok := d.(driver.GroupAdder)
		if ok && addsGroups && !u.Own() {
			if ok, err = g.AddsGroups(ctx); err != nil {
				return x, nil, driver.Recoverable(err)
			}
		}
		addsGroups = addsGroups && (ok || u.Own())
	}
	if !addsGroups {
		return x, noGroup, nil
	}
	return x, r.c.Groups.assign, nil
}

func noGroup(string) (int, error) { return -1, nil }

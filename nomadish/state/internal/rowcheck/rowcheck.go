// Package rowcheck refuses rows that the state cannot have, whether an entry or a snapshot states them. It knows no table, and must
// never change what it is given.
package rowcheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// JobID refuses what cannot be the key of a job.
func JobID(ns, id string) error {
	if err := memtable.CheckKey("namespace", ns); err != nil {
		return err
	}
	return memtable.CheckKey("job ID", id)
}

// Job refuses a job that no table can have: without a key, or with an empty place in a list.
func Job(job *structs.Job) error {
	if err := JobID(job.Namespace, job.ID); err != nil {
		return err
	}
	for i, g := range job.TaskGroups {
		if g == nil {
			return structs.Errorf(structs.CodeBadRequest, "job %q: group %d is missing", job.ID, i)
		}
		for k, t := range g.Tasks {
			if t == nil {
				return structs.Errorf(structs.CodeBadRequest, "job %q: group %q: task %d is missing", job.ID, g.Name, k)
			}
		}
	}
	return nil
}

// Eval refuses an evaluation without a key, or of a status that is not known.
func Eval(e *structs.Evaluation) error {
	if e == nil {
		return structs.Errorf(structs.CodeBadRequest, "evaluation: missing")
	}
	if err := memtable.CheckKey("evaluation ID", e.ID); err != nil {
		return err
	}
	if err := JobID(e.Namespace, e.JobID); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "evaluation %s: %w", e.ID, err)
	}
	switch e.Status {
	case structs.EvalStatusPending, structs.EvalStatusBlocked, structs.EvalStatusComplete,
		structs.EvalStatusFailed, structs.EvalStatusCancelled:
		return nil
	}
	return structs.Errorf(structs.CodeBadRequest, "evaluation %s: status %q is not known", e.ID, e.Status)
}

// NodeParts refuses a node that claims to have something which it does not describe.
func NodeParts(n *structs.Node) error {
	bad := func(what string) error {
		return structs.Errorf(structs.CodeBadRequest, "node %s: a %s is empty", n.ID, what)
	}
	for _, d := range n.Drivers { // order does not matter: the same is recorded for each
		if d == nil {
			return bad("driver")
		}
	}
	for _, v := range n.HostVolumes { // order does not matter: as above
		if v == nil {
			return bad("host volume")
		}
	}
	if n.NodeResources == nil {
		return nil
	}
	for _, d := range n.NodeResources.Devices {
		if d == nil || slices.Contains(d.Instances, nil) {
			return bad("device")
		}
	}
	return nil
}

// Alloc refuses an allocation without a key, or with a task whose resources are missing.
func Alloc(a *structs.Allocation) error {
	if res := a.AllocatedResources; res != nil {
		for _, name := range slices.Sorted(maps.Keys(res.Tasks)) {
			if res.Tasks[name] == nil {
				return fmt.Errorf("import allocation %s: the resources of task %q are missing", a.ID, name)
			}
		}
	}
	return memtable.CheckKey("allocation ID", a.ID)
}

// ProjectUsage refuses what a project used in a week without a key, or with an empty place in its list.
func ProjectUsage(u *structs.ProjectUsage) error {
	if slices.Contains(u.Types, nil) {
		return fmt.Errorf("import the usage of project %q: a type is missing", u.Project)
	}
	return cmp.Or(memtable.CheckKey("project", u.Project), memtable.CheckKey("week", u.Week))
}

// ProjectHistory refuses the last runs of a project without a key, or with an empty place in a list.
func ProjectHistory(h *structs.ProjectHistory) error {
	if slices.Contains(h.Completed, nil) || slices.Contains(h.Others, nil) {
		return fmt.Errorf("import the history of project %q: a run is missing", h.Project)
	}
	return memtable.CheckKey("project", h.Project)
}

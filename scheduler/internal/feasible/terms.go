package feasible

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Terms are by what right the instances of a group will use their resources.
func Terms(job *structs.Job, group *structs.TaskGroup) *structs.AllocTerms {
	t := &structs.AllocTerms{Priority: job.Priority, Submitted: job.CreateIndex, User: job.UserName(), Licenses: group.Licenses()}
	if job.Workflow != nil && !job.PerNode() { // wherever it runs, it uses the licenses that its workflow has reserved
		t.Workflow = structs.OwnLicenses(structs.WorkflowKey(job.Namespace, job.Workflow.ID), t.Licenses)
	}
	if job.Reclaim == structs.ReclaimSuspend {
		t.Reclaim, t.Drivers = structs.ReclaimSuspend, suspendedBy(group)
	}
	if g := GangsOf(job)[group.Name]; g != nil {
		t.Gang = g.Groups[0].Group.Name
		for _, m := range g.Groups {
			if m.Group.Name == group.Name {
				t.GangMin = m.Min
			}
		}
	}
	return t
}

// suspendedBy names the drivers that have to suspend an instance of a group. A task that ends
// before the main ones start, or starts when they have ended, is not there to be suspended.
func suspendedBy(group *structs.TaskGroup) string {
	var drivers []string
	for _, t := range group.Tasks {
		if l := t.Lifecycle; l != nil && (l.Hook == structs.TaskLifecycleHookPoststop || l.Hook == structs.TaskLifecycleHookPrestart && !l.Sidecar) {
			continue
		}
		drivers = append(drivers, t.Driver)
	}
	slices.Sort(drivers)
	return strings.Join(slices.Compact(drivers), ",")
}

// NotSuspended returns why what is used on a node by such terms, with devices or without, is requeued even where its memory could stay;
// "": it can be suspended. A suspended process keeps the memory of its devices, so they are released only with its end (semantics part 4).
func NotSuspended(n *structs.Node, t *structs.AllocTerms, devices bool) string {
	switch {
	case devices:
		return "a suspended process keeps the memory of its devices"
	case !suspends(n, t):
		return "a driver of it cannot suspend tasks"
	}
	return ""
}

// suspends reports whether the drivers of what is used on a node by such terms can suspend their tasks, as far as the node and what
// placed it state.
func suspends(n *structs.Node, t *structs.AllocTerms) bool {
	if n == nil || t.Drivers == "" {
		return true
	}
	for driver := range strings.SplitSeq(t.Drivers, ",") {
		if n.CannotSuspend(driver) {
			return false
		}
	}
	return true
}

package feasible

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Terms are by what right the instances of a group will use their resources.
func Terms(job *structs.Job, group *structs.TaskGroup) *structs.AllocTerms {
	t := &structs.AllocTerms{Priority: job.Priority, Submitted: job.CreateIndex}
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

// Suspends reports whether what is held on a node by such terms can be suspended, as far as the
// node and what placed it state.
func Suspends(n *structs.Node, t *structs.AllocTerms) bool {
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

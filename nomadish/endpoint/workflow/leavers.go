package workflow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// leaversOf returns whose instances leave by some stops, those of the lowest priority first.
func leaversOf(snap *state.Snapshot, stops []*structs.AllocStop) (list []structs.WorkflowLeaver) {
	config, counts := snap.SchedulerConfig(nil), map[structs.WorkflowLeaver]int{}
	for _, s := range stops {
		a := snap.Alloc(nil, s.AllocID)
		if a == nil {
			continue
		}
		l := structs.WorkflowLeaver{Namespace: a.Namespace, JobID: a.JobID, TaskGroup: a.TaskGroup, Suspended: s.DesiredStatus == structs.AllocDesiredSuspend}
		if r := a.AllocatedResources; r != nil && r.Shared.Terms != nil {
			l.Priority = r.Shared.Terms.Priority
		}
		if band := config.PriorityBands()[config.Band(l.Priority)]; l.Priority > 0 {
			l.Band = fmt.Sprintf("%d-%d", band.Low, band.High)
		}
		counts[l]++
	}
	for l, n := range counts { // they are sorted
		l.Instances = n
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b structs.WorkflowLeaver) int {
		suspended := func(l structs.WorkflowLeaver) int {
			if l.Suspended {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.TaskGroup, b.TaskGroup),
			cmp.Compare(suspended(a), suspended(b)))
	})
	return list
}

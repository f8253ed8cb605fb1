package workflowtable

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// Borrowed returns of how many borrowers a plan that places instances of a workflow, or changes what it has reserved, takes back what they borrow from it,
// before it does. Those who leave for the start of a stage are not among them: the entry that starts it states them. alloc returns an allocation.
func Borrowed(p *structs.JudgedPlan, alloc func(id string) *structs.Allocation) map[structs.NamespacedID]int {
	var by map[structs.NamespacedID]int
	for _, s := range p.Stop {
		if s == nil || s.Reclaim == "" || s.KeepRunning || p.Advance != nil {
			continue
		}
		a := alloc(s.AllocID)
		if a == nil || a.Terminal() || a.DesiredStatus == structs.AllocDesiredSuspend || a.AllocatedResources == nil || a.AllocatedResources.Shared.Terms == nil {
			continue
		}
		key := a.AllocatedResources.Shared.Terms.BorrowsFrom()
		id, found := structs.NamespacedID{}, false
		if p.Workflow != nil && p.Workflow.Key() == key {
			id, found = structs.NamespacedID{Namespace: p.Workflow.Namespace, ID: p.Workflow.ID}, true
		}
		for _, b := range p.Place {
			if workflow, _, _, of := structs.SplitWorkflowJobID(b.JobID); of && structs.WorkflowKey(b.Namespace, workflow) == key {
				id, found = structs.NamespacedID{Namespace: b.Namespace, ID: workflow}, true
			}
		}
		if found {
			if by == nil {
				by = map[structs.NamespacedID]int{}
			}
			by[id]++
		}
	}
	return by
}

// TakeBack counts for workflows, with the stages that their runs have come to, how many borrowers were taken back for them. What they have reserved does
// not change with it.
func (x Edit) TakeBack(borrowed map[structs.NamespacedID]int) {
	for _, id := range slices.SortedFunc(maps.Keys(borrowed), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	}) {
		was := x.get(id.Namespace, id.ID)
		if was == nil || !was.Alive() {
			continue
		}
		i := was.Stage
		for i < len(was.Stages) && stages.Over(was.Stages[i].State) {
			i++
		}
		if i < len(was.Stages) {
			now := was.Copy()
			now.EditStage(i).Reclaimed += borrowed[id]
			x.put(was, now)
		}
	}
}

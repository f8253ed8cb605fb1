package judge

import (
	"github.com/nomadish/nomadish/scheduler/internal/slotroom"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// reserveWorkflow changes what a workflow has reserved if that holds: its run is still the same, and, if it is posted, all of it is free.
func (j *judgement) reserveWorkflow() {
	r := j.plan.Workflow
	if r == nil {
		return
	}
	edit := world.WorkflowEdit{E: j.e}
	now, lack := edit.Reserved(r)
	if lack == "" && r.Posted {
		lack = slotroom.Lacks(j.e.World(), now)
	}
	if lack != "" {
		if j.reason == "" {
			j.reason = "workflow " + r.ID + ": " + lack
		}
		return
	}
	edit.Set(now)
	j.workflow = r
}

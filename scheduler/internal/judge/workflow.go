package judge

import (
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// reserveWorkflow changes what a workflow has reserved if that holds: its run is still the same, and, if it is posted, all of it is free.
func (j *judgement) reserveWorkflow() {
	r := j.plan.Workflow
	if r == nil {
		return
	}
	now, lack := reservable.As(j.e, r)
	if lack != "" {
		if j.reason == "" {
			j.reason = "workflow " + r.ID + ": " + lack
		}
		return
	}
	world.WorkflowEdit{E: j.e}.Set(now)
	j.workflow = r
}

package judge

import (
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reserveWorkflow changes what a workflow has reserved if that holds: its run is still the same, and, if it is posted, all of it is free. Who leaves for
// it stays if it does not hold.
func (j *judgement) reserveWorkflow() {
	r := j.plan.Workflow
	if r == nil {
		return
	}
	if j.plan.AllAtOnce && len(j.refusedNodes) > 0 {
		return // nothing holds
	}
	now, lack := reservable.As(j.e, r)
	for _, s := range j.plan.Stop {
		if u := j.freed[s.AllocID]; u != nil && u.Guaranteed() && lack == "" {
			lack = "allocation " + structs.ShortID(s.AllocID) + " is guaranteed"
		}
	}
	if lack != "" {
		if j.plan.AllAtOnce { // nobody leaves for nothing
			j.refusedNodes = append(j.refusedNodes, r.Parts[0].NodeID)
			j.refuseAll()
		}
		if j.reason == "" {
			j.reason = "workflow " + r.ID + ": " + lack
		}
		return
	}
	world.WorkflowEdit{E: j.e}.Set(now)
	j.workflow = r
}

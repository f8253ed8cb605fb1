package simulation

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// onDistinctHosts has the instances of a workflow's job of which there are two run on distinct hosts. The first seeds run as they did before: those among
// them that find what is planted.
func onDistinctHosts(j *structs.Job, w *workflows) {
	if w.seed > 16 && j.Type == structs.JobTypeBatch && j.TaskGroups[0].Count == 2 {
		j.Constraints = append(j.Constraints, &structs.Constraint{Operand: structs.ConstraintDistinctHosts, RTarget: "true"})
	}
}

// checkDistinct looks at what is reserved for jobs whose instances have to be on distinct hosts, and at where these run.
func checkDistinct(snap *state.Snapshot, w *workflows) {
	for r := range snap.Workflows(nil).Alive() {
		whole := r.Posted && r.Missing == "" && !slices.ContainsFunc(r.Parts, func(p structs.WorkflowPart) bool { return p.Lost })
		for _, s := range r.Stages[min(r.Stage, len(r.Stages)):] {
			for i := range s.Jobs {
				job := r.Workflow.Jobs()[s.Jobs[i].Name].Job
				if !slices.ContainsFunc(job.Constraints, func(c *structs.Constraint) bool { return c.Operand == structs.ConstraintDistinctHosts }) {
					continue
				}
				if whole && len(r.Parts) < job.Instances() {
					w.fail("workflow %s: %d instances of job %s have to be on distinct hosts, and are reserved on %d nodes\n    %s", r.ID, job.Instances(),
						s.Jobs[i].JobID, len(r.Parts), history(r))
				}
				on := map[string]string{}
				for _, a := range snap.AllocsByJob(nil, r.Namespace, s.Jobs[i].JobID, true) {
					if a.Terminal() {
						continue
					}
					if other := on[a.NodeID]; other != "" {
						w.fail("workflow %s: allocations %s and %s of job %s are on one node, and have to be on distinct hosts", r.ID, other, a.ID, a.JobID)
					}
					on[a.NodeID] = a.ID
				}
			}
		}
	}
}

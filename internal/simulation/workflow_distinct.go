package simulation

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
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
		if snap.TableIndex(state.TableWorkflows) == snap.Index() && r.ModifyIndex == snap.Index() && r.Posted {
			packedApart(snap, r, w)
		}
		whole := r.Posted && r.Missing == "" && !slices.ContainsFunc(r.Parts, func(p structs.WorkflowPart) bool { return p.Lost })
		for _, s := range r.Stages[min(r.Stage, len(r.Stages)):] {
			for i := range s.Jobs {
				job := r.Workflow.Jobs()[s.Jobs[i].Name].Job
				if !slices.ContainsFunc(job.Constraints, func(c *structs.Constraint) bool { return c.Operand == structs.ConstraintDistinctHosts }) {
					continue
				}
				if n := roomForOne(r.Parts, job); whole && n < job.Instances() {
					w.fail("workflow %s: %d instances of job %s have to be on distinct hosts, and on %d nodes as much is reserved as one needs\n    %s", r.ID, job.Instances(),
						s.Jobs[i].JobID, n, history(r))
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

// roomForOne counts the nodes of which as much is reserved as one instance of a job needs.
func roomForOne(parts []structs.WorkflowPart, job *structs.Job) (n int) {
	need, disk, devices := job.TaskGroups[0].Tasks[0].Resources, 0, 0
	if d := job.TaskGroups[0].EphemeralDisk; d != nil {
		disk = d.SizeMB
	}
	for _, d := range need.Devices {
		devices += d.Count
	}
	for i := range parts {
		p := &parts[i]
		if p.Cores >= need.Cores && (need.Cores > 0 || p.CPU >= int64(need.CPU)) && p.MemoryMB >= int64(need.MemoryMB) && p.DiskMB >= int64(disk) && p.Devices >= devices {
			n++
		}
	}
	return n
}

// packedApart looks at where the jobs of a run's stages, before the first of them starts, are to be placed in what is reserved: no two instances on one node
// that have to be on distinct hosts.
func packedApart(snap *state.Snapshot, r *structs.WorkflowRun, w *workflows) {
	if r.Stage >= len(r.Stages) || r.Stages[r.Stage].State != structs.StageWaiting {
		return
	}
	for i := r.Stage; i < len(r.Stages); i++ {
		stageApart(snap, r, i, w)
	}
}

// stageApart is packedApart of one stage.
func stageApart(snap *state.Snapshot, r *structs.WorkflowRun, i int, w *workflows) {
	stage, at := stages.JobsOf(r, i, nil), 0
	nodes := scheduler.StartStage(snap.World(), structs.WorkflowKey(r.Namespace, r.ID), stage, epoch.Add(w.now).UnixNano()).Nodes
	for _, job := range stage {
		if job.PerNode() {
			continue
		}
		of := nodes[at : at+job.Instances()]
		at += job.Instances()
		if !slices.ContainsFunc(job.Constraints, func(c *structs.Constraint) bool { return c.Operand == structs.ConstraintDistinctHosts }) {
			continue
		}
		for i, id := range of {
			if id != "" && slices.Contains(of[:i], id) {
				w.fail("workflow %s: instances of job %s have to be on distinct hosts, and are to be placed on %v\n    %s", r.ID, job.ID, of, history(r))
			}
		}
	}
}

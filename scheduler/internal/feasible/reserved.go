package feasible

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// OwnWorkflow returns the reservation of the run of a workflow that a job is of; nil: it is of none, or that has no reservation yet.
func OwnWorkflow(w *world.World, job *structs.Job) *structs.WorkflowClaim {
	if job == nil || job.Workflow == nil || job.PerNode() {
		return nil
	}
	c := w.Workflow(structs.WorkflowKey(job.Namespace, job.Workflow.ID))
	if c == nil || !c.Posted || c.Run != job.Workflow.Run {
		return nil
	}
	return c
}

// ofWorkflow adds what groups may use of their workflow's reservation.
func (c *Entitlement) ofWorkflow(w *world.World, job *structs.Job, groups []string) {
	claim := OwnWorkflow(w, job)
	if claim == nil {
		return
	}
	c.workflow = claim.Key()
	for _, name := range groups {
		if g := job.LookupTaskGroup(name); g != nil {
			c.reserved = append(c.reserved, NeedsOf(g))
		}
	}
}

// NeedsOf returns what an instance of a group takes of a reservation, but for the MHz of whole cores, which differ by node.
func NeedsOf(g *structs.TaskGroup) (h world.Resources) {
	if g.EphemeralDisk != nil {
		h.Amount.DiskMB = int64(g.EphemeralDisk.SizeMB)
	}
	for _, t := range g.Tasks {
		r := t.Resources
		if r == nil {
			continue
		}
		if h.Amount.MemoryMB += int64(r.MemoryMB); r.Cores > 0 {
			h.Cores += r.Cores
		} else {
			h.Amount.CPU += int64(r.CPU)
		}
		for _, d := range r.Devices {
			h.Devices += max(1, d.Count)
		}
	}
	return h
}

// reservedFor returns how many more instances that need so much a workflow's reservation holds, up to most, whether or not borrowers have to leave.
func reservedFor(w *world.World, key string, need world.Resources, most int) (n int) {
	claim := w.Workflow(key)
	if claim == nil {
		return 0
	}
	for i := range claim.Parts {
		s, known := w.State(claim.Parts[i].NodeID)
		if !known {
			continue
		}
		part, has := s.Part(key)
		for left := part.Total.Less(part.Used); has && n < most && left.Lacks(need) == ""; n++ {
			left = left.Less(need)
		}
	}
	return n
}

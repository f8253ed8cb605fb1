package scheduler

import "github.com/nomadish/nomadish/structs"

// terms are by what right the instances of a group will hold what they get.
func terms(job *structs.Job, group *structs.TaskGroup) *structs.AllocTerms {
	t := &structs.AllocTerms{Priority: job.Priority, Submitted: job.CreateIndex}
	if job.Reclaim == structs.ReclaimSuspend {
		t.Reclaim = structs.ReclaimSuspend
	}
	if g := gangsOf(job)[group.Name]; g != nil {
		t.Gang = g.groups[0].group.Name
		for _, m := range g.groups {
			if m.group.Name == group.Name {
				t.GangMin = m.min
			}
		}
	}
	return t
}

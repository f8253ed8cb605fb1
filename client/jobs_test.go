package client

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func arrived(id, eval string, mb int64) *structs.Allocation {
	return &structs.Allocation{
		ID: id, Namespace: "default", JobID: "j", TaskGroup: "g", EvalID: eval, DesiredStatus: structs.AllocDesiredRun,
		Metrics: &structs.AllocMetric{NodesEvaluated: 3},
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
			"t": {Memory: structs.AllocatedMemoryResources{MemoryMB: mb}},
		}},
	}
}

// Allocations of one job version have one job and one AllocatedResources, if those are the same.
func TestAdoptedAllocationsShare(t *testing.T) {
	j := newJobs()
	job := func() []*structs.Job {
		return []*structs.Job{{ID: "other", Namespace: "default"}, {ID: "j", Namespace: "default", CreateIndex: 5}}
	}
	a, b, c := arrived("a", "e1", 64), arrived("b", "e2", 64), arrived("c", "e2", 65)
	for _, x := range []*structs.Allocation{a, b, c} {
		j.adopt(x, job())
	}
	if a.Job == nil || a.Job.ID != "j" || b.Job != a.Job || c.Job != a.Job {
		t.Errorf("jobs %p, %p, %p", a.Job, b.Job, c.Job)
	}
	if b.AllocatedResources != a.AllocatedResources {
		t.Error("what is the same is there twice")
	}
	if c.AllocatedResources == a.AllocatedResources || c.AllocatedResources.Tasks["t"].Memory.MemoryMB != 65 {
		t.Errorf("c was given %+v", c.AllocatedResources)
	}
	if a.ID != "a" || a.EvalID != "e1" || b.EvalID != "e2" || b.TaskGroup != "g" || b.DesiredStatus != structs.AllocDesiredRun {
		t.Errorf("%+v, %+v", a, b)
	}
	if a.Metrics != nil {
		t.Error("a client keeps how the node was chosen")
	}
	newer := &structs.Job{ID: "j", Namespace: "default", CreateIndex: 5, Version: 1}
	d := arrived("d", "e3", 64)
	d.JobVersion = 1
	if j.adopt(d, []*structs.Job{newer}); d.Job != newer {
		t.Errorf("d has version %+v", d.Job)
	}
	gone := arrived("x", "e", 1)
	gone.JobID = "unknown"
	if j.adopt(gone, job()); gone.Job != nil {
		t.Error("an allocation got another one's job")
	}
}

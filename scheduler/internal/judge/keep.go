package judge

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// KeepCells keeps the cells bound that placements are to use by their claims, while others of the same owner leave them: a cell that is
// not complete any more could not be bound anew. The function that it returns ends that; it is to be called when all are placed.
func KeepCells(e *world.Edit, place []*structs.PlacementBatch) (end func()) {
	var kept []*world.Usage
	for _, b := range place {
		if b.Resources == nil {
			continue
		}
		common := world.NewUse("", "", world.NewOwner(world.RequestName{Namespace: b.Namespace, Job: b.JobID, Group: b.Group}, b.Resources), b.Resources, b.CreateTime)
		for i := range b.Instances {
			if u := world.InstanceUse(b, i, "", common); world.KeepBound(e, u) {
				kept = append(kept, u)
			}
		}
	}
	return func() {
		for _, u := range kept {
			world.Unclaim(e, u)
		}
	}
}

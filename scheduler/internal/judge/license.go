package judge

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// refuseUnlicensed refuses as many placements as there are licenses too few for, the last of the plan first: what was to leave them for these goes on
// after all.
func (j *judgement) refuseUnlicensed() {
	for _, batch := range slices.Backward(j.plan.Place) {
		of := batch.Resources.Shared.Terms
		if of == nil || of.Licenses == nil || world.Base(j.e).Licenses().Over(of.Licenses) == "" {
			continue
		}
		for i := range slices.Backward(batch.Instances) {
			if node := batch.Nodes[batch.Instances[i].Node].ID; !j.refused[node] {
				j.refuse(node, "license "+world.Base(j.e).Licenses().Over(of.Licenses)+" is used by what goes on")
				return
			}
		}
	}
}

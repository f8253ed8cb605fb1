package reserve

import (
	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/reservable"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// FreeAtMost returns a bound of what a workflow that has reserved nothing, and for which another one keeps what comes free, may reserve of all nodes of a pool
// together: what needs more cannot be packed. false:
// there is none, as others may have to leave for it.
func FreeAtMost(w *world.World, pool string, bands Bands) (sum workflow.Amounts, bounded bool) {
	if w.AnyOwner() || w.Slots() != nil || bands.Config == nil || bands.Config.Preempts(structs.JobTypeBatch) {
		return sum, false
	}
	for _, n := range world.NodeStates(w).All {
		if n.Node != nil && n.Node.Ready() && n.Node.InPool(pool) {
			sum = sum.Plus(amounts(reservable.Free(n, "").Less(reservable.Kept(n, func(*world.Part) bool { return true }))))
		}
	}
	return sum, true
}

package reconcile

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// perNode reconciles a group of a system or sysbatch job: every ready node that
// fits has one holder.
func (r *reconciler) perNode(work *GroupWork, allocs []*structs.Allocation) {
	fit := r.fits.Of(work.Group)
	reserved := map[string]*structs.Allocation{}
	leaving := map[string]*structs.Allocation{}
	wanted := work.Group.Count > 0 && !r.in.Job.IsPeriodic() && !r.in.Job.IsParameterized()
	slices.SortStableFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.NodeID, b.NodeID), r.better(a, b))
	})
	for _, a := range allocs {
		if before := leaving[a.NodeID]; a.Terminal() && (before == nil || before.CreateIndex < a.CreateIndex) {
			leaving[a.NodeID] = a
		}
		r.sortPerNode(work, fit, reserved, wanted, a)
	}
	var old, current []*structs.Allocation
	for _, a := range allocs { // the order of nodes
		if reserved[a.NodeID] != a {
			continue
		}
		if a.ClientTerminal() {
			current = append(current, a) // one that failed keeps an update from going on to further nodes
			continue
		}
		switch r.change(a) {
		case structs.ChangeDestructive:
			if n, known := r.w.Node(a.NodeID); known && !n.Ready() {
				work.Counts.Ignore++ // nothing new may go there
				continue
			}
			old = append(old, a)
			continue
		case structs.ChangeInPlace:
			r.updateInPlace(a)
			work.Counts.InPlaceUpdate++
		case structs.ChangeNone:
			work.Counts.Ignore++
		}
		work.suspended(a)
		current = append(current, a)
	}
	r.roll(work, old, current, func(a *structs.Allocation) Placement {
		p := r.replaceLater(a, 0)
		p.NodeID = a.NodeID
		return p
	})
	if !wanted {
		return
	}
	for id, s := range world.NodeStates(r.w).All {
		if s.Node == nil || !s.Node.Ready() || reserved[id] != nil || !fit.Verdict(s.Node).OK() {
			continue
		}
		p := Placement{NodeID: id}
		if before := leaving[id]; before != nil {
			p.Previous, p.Unwell = before, r.unwell(before)
		}
		work.Place = append(work.Place, p)
		work.Counts.Place++
	}
}

// sortPerNode decides on one allocation.
func (r *reconciler) sortPerNode(work *GroupWork, fit *feasible.Feasibility, reserved map[string]*structs.Allocation, wanted bool, a *structs.Allocation) {
	n, known := r.w.Node(a.NodeID)
	switch {
	case a.ClientTerminal():
		if r.keepsNode(a, n) && reserved[a.NodeID] == nil {
			reserved[a.NodeID] = a
			work.Counts.Ignore++
		}
	case a.ServerTerminal(), r.lost(a):
		if r.drop(a, StopNotNeeded) {
			work.Counts.Stop++
		}
	case !wanted, reserved[a.NodeID] != nil:
		r.drop(a, StopNotNeeded)
		work.Counts.Stop++
	case a.DesiredTransition.ShouldMigrate():
		r.stop(a, StopMigrating, "")
		work.Counts.Migrate++
	case known && !fit.Verdict(n).OK():
		r.stop(a, stopNodeUnfit, "")
		work.Counts.Stop++
	default:
		r.await(a)
		reserved[a.NodeID] = a
	}
}

// keepsNode reports whether an allocation that has ended is not to be replaced on its node n; nil: n is gone. A sysbatch
// instance that completed, or one that reached its time limit, is run again by a new version only. All others would end
// the same way as long as neither the job nor the node changes, so they wait for that or for a forced reschedule.
// What was stopped or lost before it ended is replaced.
func (r *reconciler) keepsNode(a *structs.Allocation, n *structs.Node) bool {
	ended := a.ClientStatus != structs.AllocClientLost && !FailedToSuspend(a) && (!a.ServerTerminal() || endedWell(a))
	if !ended || r.outdated(a) {
		return false
	}
	if feasible.ReachedTimeLimit(a) || r.in.Job.Type == structs.JobTypeSysBatch && a.ClientStatus == structs.AllocClientComplete {
		return true
	}
	return (n == nil || n.ModifyIndex <= a.ModifyIndex) && !a.DesiredTransition.ShouldForceReschedule()
}

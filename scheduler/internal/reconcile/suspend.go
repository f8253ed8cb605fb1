package reconcile

import (
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/structs"
)

// suspended notes an allocation that stays if it is to go on when there is room.
func (work *GroupWork) suspended(a *structs.Allocation) {
	if a.Suspended() && !a.DesiredTransition.ShouldSuspend() {
		work.Resume = append(work.Resume, a)
	}
}

// FailedToSuspend reports whether an allocation was to be suspended and has ended instead: a driver
// could not suspend it, or its processes were lost while they were suspended. Others have its room,
// so it is missing like what was requeued, and its reschedule policy does not apply. One that has had
// all its time is done.
func FailedToSuspend(a *structs.Allocation) bool {
	return a.Suspended() && a.ClientStatus == structs.AllocClientFailed && !feasible.ReachedTimeLimit(a)
}

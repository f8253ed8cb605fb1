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

// Suspended reports whether too few members of a gang that is up run without those that stay suspended: nothing of it goes on, or is placed, alone then.
// Those that were lost are not waited for, so that a gang which goes on without them (on_loss) does so. live are the job's allocations that stay, updates
// those of which the plan lets some go on.
func (gw *GangWork) Suspended(live []*structs.Allocation, updates []*structs.AllocInPlace) bool {
	goesOn := map[string]bool{}
	for _, up := range updates {
		goesOn[up.AllocID] = up.Resume
	}
	for i, work := range gw.Works {
		up, there := len(work.Done), len(work.Done)
		for _, a := range live {
			if a.TaskGroup != work.Group.Name {
				continue
			}
			there++
			if !a.Suspended() || goesOn[a.ID] {
				up++
			}
		}
		if up < min(gw.Spec.Groups[i].Min, there) {
			return true
		}
	}
	return false
}

// FailedToSuspend reports whether an allocation was to be suspended and has ended instead: a driver
// could not suspend it, or its processes were lost while they were suspended. Others have its room,
// so it is missing like what was requeued, and its reschedule policy does not apply. One that has had
// all its time is done.
func FailedToSuspend(a *structs.Allocation) bool {
	return a.Suspended() && a.ClientStatus == structs.AllocClientFailed && !feasible.ReachedTimeLimit(a)
}

package decide

import (
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What others have had suspended for longer than suspend_limit, and finds no room to go on, is requeued (semantics part 4): it may run
// elsewhere. Its job's evaluation, which waits for room, is decided again at that time. What a user suspended has no limit.

// requeue requeues what stays suspended and has been so for too long. A gang goes with the member that was suspended first: it
// comes back as a whole. The evaluation that it makes places what was requeued.
func (x suspends) requeue() {
	s := x.s
	if len(s.suspended) == 0 || s.Input.EntitledOnly {
		return // it goes on at its other position, if there is room
	}
	gangs := map[*reconcile.GangWork]bool{}
	for _, sl := range s.suspended {
		if sl.work.Gang != nil && x.pastLimit(sl.alloc) {
			gangs[sl.work.Gang] = true
		}
	}
	why, some := reconcile.PastLimit(s.Input.Config.SuspendedFor()), false
	for _, sl := range s.suspended {
		if !gangs[sl.work.Gang] && !x.pastLimit(sl.alloc) {
			continue
		}
		some = true
		world.Release(s.Edit, sl.alloc.ID)
		s.plan.Stop = append(s.plan.Stop, &structs.AllocStop{
			AllocID: sl.alloc.ID, DesiredStatus: structs.AllocDesiredEvict, DesiredDescription: "requeued: " + why,
			Reclaim: structs.ReclaimRequeue, RequeueReason: why,
		})
	}
	if some {
		ev := s.newEval(structs.EvalTriggerSuspendLimit, structs.EvalStatusPending)
		ev.StatusDescription = "created because instances of the job were " + why
		s.plan.Evals = append(s.plan.Evals, ev)
	}
}

// limitOf is when a suspended allocation is to be requeued; zero: never.
func (x suspends) limitOf(a *structs.Allocation) time.Time {
	if a.SuspendedAt <= 0 {
		return time.Time{}
	}
	return time.Unix(0, a.SuspendedAt).Add(x.s.Input.Config.SuspendedFor()).UTC()
}

func (x suspends) pastLimit(a *structs.Allocation) bool {
	at := x.limitOf(a)
	return !at.IsZero() && !at.After(x.s.Input.Now.Add(feasible.RescheduleSlack))
}

// until is when the first of what stays suspended is to be requeued; zero: never.
func (x suspends) until() (first time.Time) {
	for _, sl := range x.s.suspended {
		if x.s.Input.EntitledOnly || !x.pastLimit(sl.alloc) { // else it has been
			first = earlier(first, x.limitOf(sl.alloc))
		}
	}
	return first
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

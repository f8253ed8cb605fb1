package decide

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/resume"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What others have had suspended for longer than suspend_limit, and finds no room to go on, is requeued (semantics part 4): it may run
// elsewhere. Its job's evaluation, which waits for room, is decided again at that time. What a user suspended has no limit.

// requeue requeues what stays suspended and has been so for too long, and with it the rest of a gang that is too small without it. The
// evaluation that it makes places what was requeued.
func (x suspends) requeue() {
	s := x.s
	if len(s.suspended) == 0 || s.Input.EntitledOnly {
		return // it goes on at its other position, if there is room
	}
	stays := map[string]bool{} // suspended
	var goes []*structs.Allocation
	for _, sl := range s.suspended {
		stays[sl.alloc.ID] = true
		if sl.work.Gang == nil && resume.PastLimit(x.s.Input.Now, &x.s.Input.Config, sl.alloc) {
			goes = append(goes, sl.alloc)
		}
	}
	gangs := x.gangsPastLimit()
	for _, a := range s.Live {
		if gw := gangs[a.TaskGroup]; gw != nil && (stays[a.ID] || !x.enough(gw, stays)) {
			goes = append(goes, a)
		}
	}
	if len(goes) == 0 {
		return
	}
	why := reconcile.PastLimit(s.Input.Config.SuspendedFor())
	for _, a := range goes {
		world.Release(s.Edit, a.ID)
		s.plan.Update = slices.DeleteFunc(s.plan.Update, func(up *structs.AllocInPlace) bool { return up.AllocID == a.ID })
		s.plan.Stop = append(s.plan.Stop, &structs.AllocStop{
			AllocID: a.ID, DesiredStatus: structs.AllocDesiredEvict, DesiredDescription: "requeued: " + why,
			Reclaim: structs.ReclaimRequeue, RequeueReason: why,
		})
	}
	ev := s.newEval(structs.EvalTriggerSuspendLimit, structs.EvalStatusPending)
	ev.StatusDescription = "created because instances of the job were " + why
	s.plan.Evals = append(s.plan.Evals, ev)
}

// gangsPastLimit are the gangs of which a member has been suspended for too long, by the names of their groups. Nothing is placed for
// them by the evaluation that requeues it.
func (x suspends) gangsPastLimit() map[string]*reconcile.GangWork {
	var gangs map[string]*reconcile.GangWork
	for _, sl := range x.s.suspended {
		if gw := sl.work.Gang; gw != nil && !x.s.Input.EntitledOnly && resume.PastLimit(x.s.Input.Now, &x.s.Input.Config, sl.alloc) {
			for _, work := range gw.Works {
				world.PutInto(&gangs, work.Group.Name, gw)
			}
		}
	}
	return gangs
}

// enough reports whether enough of each group of a gang run on without those that stay suspended.
func (x suspends) enough(gw *reconcile.GangWork, stays map[string]bool) bool {
	for i, work := range gw.Works {
		up := len(work.Done)
		for _, a := range x.s.Live {
			if a.TaskGroup == work.Group.Name && !stays[a.ID] {
				up++
			}
		}
		if up < gw.Spec.Groups[i].Min {
			return false
		}
	}
	return true
}

// until is when the first of what stays suspended is to be requeued; zero: never.
func (x suspends) until() (first time.Time) {
	for _, sl := range x.s.suspended {
		if x.s.Input.EntitledOnly || !resume.PastLimit(x.s.Input.Now, &x.s.Input.Config, sl.alloc) { // else it has been
			first = earlier(first, resume.LimitOf(sl.alloc, &x.s.Input.Config))
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

package alloc

import (
	"time"

	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/structs"
)

// Descriptions of a suspended allocation.
const (
	descSuspended = "Tasks are suspended"
	// DescCannotSuspend is the description of an allocation that was to be suspended
	// and was ended instead, since not all its tasks can be suspended; its status is failed.
	DescCannotSuspend = "stopped: not all its tasks can be suspended"
)

// Phase is where an allocation stands between running and being suspended, as far as
// its node reserves or releases resources for it.
type Phase int

// The phases of an allocation.
const (
	PhaseActive    Phase = iota
	PhaseSuspended       // its tasks are suspended: all but memory and disk is free
	PhaseResuming        // it is resumed once its node has granted what it needs
	PhaseEnded           // it has ended: everything is free
)

// Phase returns where the allocation stands.
func (r *Runner) Phase() Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.state.EndedAt.IsZero():
		return PhaseEnded
	case r.state.SuspendedAt.IsZero():
		return PhaseActive
	case r.suspendWanted():
		return PhaseSuspended
	}
	return PhaseResuming
}

// Wait records what an allocation that has not been granted waits for.
func (r *Runner) Wait(text string) {
	r.Do(func() {
		if r.granted || r.waits == text || !r.state.EndedAt.IsZero() {
			return
		}
		r.waits, r.changed, r.urgent = text, true, true
		for _, t := range r.tasks {
			t.AddIdleEvent(task.NewEvent(structs.TaskWaitingForRoom, time.Now(), text))
		}
	})
}

// StaySuspended makes an allocation that is new on this node, and is to be suspended, wait.
func (r *Runner) StaySuspended() { r.Do(func() { r.changed = true }) }

// suspendWanted reports whether the allocation is to be suspended.
func (r *Runner) suspendWanted() bool {
	return r.alloc.Suspended() && r.halt == haltNone && !r.state.Expired
}

// updateSuspension suspends and resumes the tasks as the servers want it. An allocation whose tasks are
// all suspended releases what it does not keep, and is resumed only when it has that again. One
// that is to end needs nothing for that.
func (r *Runner) updateSuspension(now time.Time) {
	suspended := !r.state.SuspendedAt.IsZero()
	switch {
	case r.suspendWanted():
		r.suspendTasks()
		switch {
		case !suspended && r.tasksQuiescent():
			r.enterSuspended(now)
		case suspended && (r.granted || r.resuming): // to be suspended again before it was resumed
			r.granted, r.resuming = false, false
			r.c.Host.Room(r.id)
		}
	case !suspended: // it may have been about to be
		r.resumeTasks()
	case r.halt != haltNone || r.state.Expired || r.granted:
		r.leaveSuspended(now)
	case !r.resuming:
		r.resuming = true
		r.c.Host.Room(r.id)
		r.suspendTasks() // what an earlier life of the agent suspended stays so until then
	}
}

// tasksQuiescent reports whether nothing of the allocation runs, and something is left of it.
func (r *Runner) tasksQuiescent() bool {
	alive := false
	for _, t := range r.tasks {
		if t.CannotSuspend() {
			r.state.Unfit, r.halt, r.changed = true, haltStop, true
			return false
		}
		if !t.Quiescent() {
			return false
		}
		alive = alive || !t.Dead()
	}
	return alive
}

func (r *Runner) suspendTasks() {
	for _, t := range r.tasks {
		t.Suspend()
	}
}

func (r *Runner) resumeTasks() {
	for _, t := range r.tasks {
		t.Resume()
	}
}

// enterSuspended records that all tasks are suspended. Its time limit stands still.
func (r *Runner) enterSuspended(now time.Time) {
	r.state.SuspendedAt = now
	r.granted, r.resuming, r.waits, r.changed = false, false, "", true
	if r.limit != nil {
		r.limit.Stop()
		r.limit = nil
	}
	r.save(nil)
	r.c.Host.Room(r.id)
}

// leaveSuspended resumes the tasks. Nothing delays the allocation any more.
func (r *Runner) leaveSuspended(now time.Time) {
	r.state.SuspendedFor += max(0, now.Sub(r.state.SuspendedAt))
	r.state.SuspendedAt = time.Time{}
	r.granted, r.resuming, r.waits, r.changed = true, false, "", true
	r.resumeTasks()
	r.save(nil)
	r.health.reset(r)
}

// statusNow sums the tasks up, as clientStatus does, for an allocation that may be
// suspended or wait for its node.
func (r *Runner) statusNow(states []*structs.TaskState, dead bool) (status, description string) {
	status, description = clientStatus(states, r.state.Expired)
	switch {
	case dead && r.state.Unfit:
		return structs.AllocClientFailed, DescCannotSuspend
	case dead:
	case !r.state.SuspendedAt.IsZero():
		status, description = structs.AllocClientSuspended, descSuspended
	}
	if !dead && r.waits != "" && !r.granted {
		description = r.waits
	}
	return status, description
}

// refuseSuspended refuses an operation that suspended tasks do not take.
func (r *Runner) refuseSuspended(what string, errs *[]error) bool {
	if !r.suspendWanted() && r.state.SuspendedAt.IsZero() {
		return false
	}
	*errs = append(*errs, structs.Errorf(structs.CodeBadRequest, "%s allocation %s: it is suspended; resume it first", what, structs.ShortID(r.id)))
	return true
}

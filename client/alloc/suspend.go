package alloc

import (
	"time"

	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/structs"
)

// Descriptions of a suspended allocation.
const (
	descSuspended = "Tasks are frozen"
	// DescCannotSuspend is the description of an allocation that was to be suspended
	// and was ended instead, since not all its tasks can be frozen; its status is failed.
	DescCannotSuspend = "stopped: not all its tasks can be frozen"
)

// Place is where an allocation stands between running and being suspended, as far as
// its node has to give or take room for it.
type Place int

// The places of an allocation.
const (
	PlaceAwake  Place = iota
	PlaceAsleep       // its tasks are frozen: all but memory and disk is free
	PlaceWaking       // it goes on once its node has granted what it needs
	PlaceEnded        // it has ended: everything is free
)

// Place tells where the allocation stands.
func (r *Runner) Place() Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.state.EndedAt.IsZero():
		return PlaceEnded
	case r.state.SuspendedAt.IsZero():
		return PlaceAwake
	case r.toSleep():
		return PlaceAsleep
	}
	return PlaceWaking
}

// Wait tells the allocation, which has not been granted, what it waits for.
func (r *Runner) Wait(text string) {
	r.Do(func() {
		if r.granted || r.waits == text || !r.state.EndedAt.IsZero() {
			return
		}
		r.waits, r.changed, r.urgent = text, true, true
		for _, t := range r.tasks {
			t.Note(task.NewEvent(structs.TaskWaitingForRoom, time.Now(), text))
		}
	})
}

// Rest has an allocation that is new on this node, and is to be suspended, wait.
func (r *Runner) Rest() { r.Do(func() { r.changed = true }) }

// toSleep tells whether the allocation shall be suspended.
func (r *Runner) toSleep() bool {
	return r.alloc.Suspended() && r.halt == haltNone && !r.state.Expired
}

// rest freezes and thaws the tasks as the servers want it. An allocation whose tasks are
// all frozen gives back what it does not keep, and goes on only when it has it again. One
// that is to end needs nothing for that.
func (r *Runner) rest(now time.Time) {
	asleep := !r.state.SuspendedAt.IsZero()
	switch {
	case r.toSleep():
		r.freezeAll()
		switch {
		case !asleep && r.still():
			r.fallAsleep(now)
		case asleep && (r.granted || r.waking): // wanted frozen again before it went on
			r.granted, r.waking = false, false
			r.c.Host.Room(r.id)
		}
	case !asleep: // it may have been about to be
		r.thawAll()
	case r.halt != haltNone || r.state.Expired || r.granted:
		r.wakeUp(now)
	case !r.waking:
		r.waking = true
		r.c.Host.Room(r.id)
		r.freezeAll() // what an earlier life of the agent froze stays so until then
	}
}

// still tells whether nothing of the allocation runs, and something is left of it.
func (r *Runner) still() bool {
	alive := false
	for _, t := range r.tasks {
		if t.CannotFreeze() {
			r.state.Unfit, r.halt, r.changed = true, haltStop, true
			return false
		}
		if !t.Still() {
			return false
		}
		alive = alive || !t.Dead()
	}
	return alive
}

func (r *Runner) freezeAll() {
	for _, t := range r.tasks {
		t.Freeze()
	}
}

func (r *Runner) thawAll() {
	for _, t := range r.tasks {
		t.Thaw()
	}
}

// fallAsleep notes that all is frozen. Its time limit stands still.
func (r *Runner) fallAsleep(now time.Time) {
	r.state.SuspendedAt = now
	r.granted, r.waking, r.waits, r.changed = false, false, "", true
	if r.limit != nil {
		r.limit.Stop()
		r.limit = nil
	}
	r.save(nil)
	r.c.Host.Room(r.id)
}

// wakeUp thaws it. Nothing holds it back any more.
func (r *Runner) wakeUp(now time.Time) {
	r.state.Frozen += max(0, now.Sub(r.state.SuspendedAt))
	r.state.SuspendedAt = time.Time{}
	r.granted, r.waking, r.waits, r.changed = true, false, "", true
	r.thawAll()
	r.save(nil)
	r.health.reset(r)
}

// statusNow sums the tasks up, as clientStatus does, for an allocation that may be
// suspended or held back.
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

// suspended refuses what cannot be done to frozen tasks.
func (r *Runner) suspended(what string, errs *[]error) bool {
	if !r.toSleep() && r.state.SuspendedAt.IsZero() {
		return false
	}
	*errs = append(*errs, structs.Errorf(structs.CodeBadRequest, "%s allocation %s: it is suspended; resume it first", what, structs.ShortID(r.id)))
	return true
}

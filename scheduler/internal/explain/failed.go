package explain

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/structs"
)

// What has failed of a group, how often it was tried, and when it is tried again.

// failed is allocations that have failed in the same way.
type failed struct {
	list  []string
	until int64 // when the first of them is tried again, in Unix nanoseconds; 0: it is not
	last  structs.LastFailure
	tries string // of that first one
}

func (f *failed) add(a *structs.Allocation, until int64, tries string) {
	f.list = append(f.list, a.ID)
	f.last.Add(a)
	if len(f.list) == 1 || until < f.until {
		f.until, f.tries = until, tries
	}
}

// wait adds the allocations to what a group waits for, if there are any.
func (f *failed) wait(out *structs.GroupExplanation, kind, text string) {
	if len(f.list) == 0 {
		return
	}
	if text += f.tries; f.last.Text() != "" {
		text += "; the last failure: " + f.last.Text()
	}
	if f.until != 0 {
		text += "; the next try is due" // the time follows
	}
	out.Waits = append(out.Waits, structs.Wait{
		Kind: kind, Instances: len(f.list), Text: text, Until: f.until,
		Allocs: f.list[:min(len(f.list), allocsNamed)], AllocCount: len(f.list),
	})
}

// restarts reports the instances of which a task has ended and is started again on its node.
func (x *explainer) restarts(out *structs.GroupExplanation) {
	var f failed
	for _, a := range x.allocs {
		if a.TaskGroup != out.Group || a.Terminal() {
			continue
		}
		at, restarts := int64(0), 0
		for _, t := range a.TaskStates { // order does not matter: the first of some times, and the most of some numbers
			if due, waits := t.RestartsAt(); waits {
				restarts = max(restarts, int(t.Restarts))
				if at == 0 || due < at {
					at = due
				}
			}
		}
		if at == 0 {
			continue
		}
		tries := fmt.Sprintf(" (restart %d", max(1, restarts))
		if p := x.in.Job.LookupTaskGroup(out.Group).RestartPolicy; p != nil {
			tries += fmt.Sprintf("; %d within %s at most", feasible.Value(p.Attempts), feasible.Value(p.Interval))
		}
		f.add(a, at, tries+")")
	}
	f.wait(out, structs.ReasonRestart, "a task has ended, and is started again in place after the delay of the restart policy")
}

// failures reports which failed instances are rescheduled, and when, and which are not.
func (x *explainer) failures(out *structs.GroupExplanation) {
	var later, never failed
	policy := x.in.Job.LookupTaskGroup(out.Group).ReschedulePolicy
	for _, a := range x.allocs {
		if a.TaskGroup != out.Group || a.ClientStatus != structs.AllocClientFailed || a.ServerTerminal() || a.NextAllocation != "" || reconcile.FailedToSuspend(a) {
			continue
		}
		delay, may := feasible.MayReschedule(a, policy)
		if !may {
			never.add(a, 0, "")
			continue
		}
		at := feasible.FailedAt(a).Add(delay).UnixNano()
		for _, ev := range x.in.Evals {
			if ev.ID == a.FollowupEvalID && !ev.WaitUntil.IsZero() {
				at = ev.WaitUntil.UnixNano()
			}
		}
		tries := ""
		if n, of := feasible.Attempt(a, policy); of > 0 {
			tries = fmt.Sprintf(" (try %d of %d)", n, of)
		} else {
			tries = fmt.Sprintf(" (try %d)", n)
		}
		later.add(a, at, tries)
	}
	later.wait(out, structs.ReasonReschedule, "failed; placed again after the delay of the reschedule policy")
	never.wait(out, structs.ReasonGaveUp, "failed, and not placed again: the attempts of the reschedule policy are used up")
}

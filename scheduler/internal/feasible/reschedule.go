package feasible

import (
	"math"
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

const (
	// RescheduleSlack is how early something may be due: an allocation due within this is due now, so that a timer
	// that fires a little early does not need another round.
	RescheduleSlack = time.Second
	// KeptRescheduleEvents bounds the history of an unlimited policy, as in Nomad.
	KeptRescheduleEvents = 5
)

// FailedAt is when an allocation failed: the end of its last task.
func FailedAt(a *structs.Allocation) time.Time {
	var last time.Time
	for _, s := range a.TaskStates { // a maximum: the order cannot show
		if s.FinishedAt.After(last) {
			last = s.FinishedAt
		}
	}
	if last.IsZero() {
		return time.Unix(0, a.ModifyTime).UTC()
	}
	return last
}

// ReachedTimeLimit reports whether an allocation was ended by its group's max_run_duration. It has had its time, so it is
// never replaced. Clients of earlier versions report it as failed.
func ReachedTimeLimit(a *structs.Allocation) bool {
	return a.ClientTerminal() && a.ClientDescription == structs.DescMaxRunDuration
}

// MayReschedule reports whether a failed allocation is to be replaced, and with which delay after
// its failure.
func MayReschedule(a *structs.Allocation, p *structs.ReschedulePolicy) (time.Duration, bool) {
	if a.DesiredTransition.ShouldForceReschedule() {
		return 0, true
	}
	if p == nil || ReachedTimeLimit(a) {
		return 0, false
	}
	if !Value(p.Unlimited) {
		since := FailedAt(a).Add(-Value(p.Interval)).UnixNano()
		if countEvents(a.RescheduleTracker, since) >= Value(p.Attempts) {
			return 0, false
		}
	}
	return rescheduleDelay(a, p), true
}

// Attempt returns the how manieth replacement within the policy's interval it would be that takes the place of a failed allocation, and how many there may be; of
// is 0 if their number is not bounded.
func Attempt(a *structs.Allocation, p *structs.ReschedulePolicy) (n, of int) {
	if Value(p.Unlimited) {
		return countEvents(a.RescheduleTracker, 0) + 1, 0
	}
	return countEvents(a.RescheduleTracker, FailedAt(a).Add(-Value(p.Interval)).UnixNano()) + 1, Value(p.Attempts)
}

// Value is what a pointer points to; nil: the zero value.
func Value[T any](p *T) (v T) {
	if p != nil {
		return *p
	}
	return v
}

func countEvents(t *structs.RescheduleTracker, since int64) (n int) {
	if t == nil {
		return 0
	}
	for _, e := range t.Events {
		if e.RescheduleTime > since {
			n++
		}
	}
	return n
}

// rescheduleDelay grows from one replacement to the next by the policy's
// function, up to max_delay; it starts again once an instance has lived longer
// than that.
func rescheduleDelay(a *structs.Allocation, p *structs.ReschedulePolicy) time.Duration {
	base, limit := Value(p.Delay), Value(p.MaxDelay)
	var events []*structs.RescheduleEvent
	if a.RescheduleTracker != nil {
		events = a.RescheduleTracker.Events
	}
	if len(events) == 0 {
		return base
	}
	last := events[len(events)-1]
	delay := base
	switch Value(p.DelayFunction) {
	case structs.DelayFunctionExponential:
		delay = saturatingAdd(last.Delay, last.Delay)
	case structs.DelayFunctionFibonacci:
		if len(events) > 1 {
			delay = saturatingAdd(last.Delay, events[len(events)-2].Delay)
		}
	default:
		return base
	}
	if limit > 0 && delay > limit {
		delay = limit
		if FailedAt(a).UnixNano()-last.RescheduleTime > int64(limit) {
			delay = base
		}
	}
	return max(delay, base)
}

func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Rescheduled is the history that the replacement of a failed allocation carries.
func Rescheduled(a *structs.Allocation, p *structs.ReschedulePolicy, delay time.Duration, now time.Time) *structs.RescheduleTracker {
	t := &structs.RescheduleTracker{LastReschedule: "ok"}
	if a.RescheduleTracker != nil {
		t.Events = slices.Clone(a.RescheduleTracker.Events)
	}
	if p != nil && !Value(p.Unlimited) {
		since := now.Add(-Value(p.Interval)).UnixNano()
		t.Events = slices.DeleteFunc(t.Events, func(e *structs.RescheduleEvent) bool { return e.RescheduleTime <= since })
	} else if over := len(t.Events) - KeptRescheduleEvents + 1; over > 0 {
		t.Events = t.Events[over:]
	}
	t.Events = append(t.Events, &structs.RescheduleEvent{
		RescheduleTime: now.UnixNano(), PrevAllocID: a.ID, PrevNodeID: a.NodeID, Delay: delay,
	})
	return t
}

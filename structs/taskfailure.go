package structs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxFailureText is how long the text of a failure is at most, in bytes, where it stands with a job: the allocation has all of it.
const MaxFailureText = 240

// LastFailure is what failed last of some allocations. Its zero value is ready to use.
type LastFailure struct {
	time        int64 // Unix nanoseconds
	text, alloc string
}

// Text is what has failed, in short; "": nothing has.
func (f *LastFailure) Text() string { return f.text }

// AllocID is the ID of the allocation of which it has failed.
func (f *LastFailure) AllocID() string { return f.alloc }

// Add adds an allocation, in any order. What was killed has not failed by itself, whatever its exit code.
func (f *LastFailure) Add(a *Allocation) {
	known := false
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) { // of what failed at the same time the first is stated
		if e := a.TaskStates[name].failure(); e != nil {
			text := strings.Join(strings.Fields(cmp.Or(e.DisplayMessage, e.Message, e.DriverError, e.Type)), " ")
			f.note(a, e.Time, fmt.Sprintf("task %q: %s", name, text))
			known = true
		}
	}
	if !known && a.ClientStatus == AllocClientFailed && a.ClientDescription != "" {
		f.note(a, a.ModifyTime, a.ClientDescription)
	}
}

func (f *LastFailure) note(a *Allocation, time int64, text string) {
	if f.text == "" || time > f.time || time == f.time && a.ID < f.alloc {
		f.time, f.text, f.alloc = time, Clip(text, MaxFailureText), a.ID
	}
}

// failure returns the event of a task's last failure; nil: it has none.
func (t *TaskState) failure() (last *TaskEvent) {
	if t == nil {
		return nil
	}
	killed := false
	for _, e := range t.Events {
		if e == nil {
			continue
		}
		switch e.Type {
		case TaskKilling, TaskRestartSignal:
			killed = true
		case TaskStarted:
			killed = false
		case TaskDriverFailure, TaskSetupFailure, TaskFailedValidation, TaskRestoreFailed:
			last = e
		case TaskTerminated:
			if !killed && (e.ExitCode != 0 || e.Signal != 0 || e.Details["unknown"] == "true") {
				last = e
			}
		}
	}
	return last
}

// RestartsAt returns when a task that has failed is started again on its node, as Unix nanoseconds; false: it does not wait for that.
func (t *TaskState) RestartsAt() (int64, bool) {
	if t == nil || len(t.Events) == 0 {
		return 0, false
	}
	last := t.Events[len(t.Events)-1]
	if last == nil || last.Type != TaskRestarting {
		return 0, false
	}
	return last.Time + last.StartDelay, true
}

package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// failureText is how long the text of a failure is at most, in bytes: `alloc status` has all of it.
const failureText = 240

// lastFailure is what failed last of a job, of the allocations that were added.
type lastFailure struct {
	time        int64 // Unix nanoseconds
	text, alloc string
}

// add adds an allocation. What was killed has not failed by itself, whatever its exit code.
func (f *lastFailure) add(a *structs.Allocation) {
	known := false
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) { // of what failed at the same time the first is stated
		if e := failedLast(a.TaskStates[name]); e != nil {
			text := strings.Join(strings.Fields(cmp.Or(e.DisplayMessage, e.Message, e.DriverError, e.Type)), " ")
			f.note(a, e.Time, fmt.Sprintf("task %q: %s", name, text))
			known = true
		}
	}
	if !known && a.ClientStatus == structs.AllocClientFailed && a.ClientDescription != "" {
		f.note(a, a.ModifyTime, a.ClientDescription)
	}
}

func (f *lastFailure) note(a *structs.Allocation, time int64, text string) {
	if f.text == "" || time > f.time {
		f.time, f.text, f.alloc = time, structs.Clip(text, failureText), a.ID
	}
}

// failedLast returns the event of a task's last failure; nil: it has none.
func failedLast(t *structs.TaskState) (last *structs.TaskEvent) {
	if t == nil {
		return nil
	}
	killed := false
	for _, e := range t.Events {
		if e == nil {
			continue
		}
		switch e.Type {
		case structs.TaskKilling, structs.TaskRestartSignal:
			killed = true
		case structs.TaskStarted:
			killed = false
		case structs.TaskDriverFailure, structs.TaskSetupFailure, structs.TaskFailedValidation, structs.TaskRestoreFailed:
			last = e
		case structs.TaskTerminated:
			if !killed && (e.ExitCode != 0 || e.Signal != 0 || e.Details["unknown"] == "true") {
				last = e
			}
		}
	}
	return last
}

package task

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// State is what a later life of the agent must know of a task.
type State struct {
	// Task is what the servers are told.
	Task *structs.TaskState
	// RunID names the current start of the task to its driver.
	RunID string
	// Handle is what the driver needs to find the started task again; nil while
	// there is none. It stays after the task's end until the driver released it.
	Handle []byte
	// Restarts counts against the restart policy.
	Restarts Restarts
	// RestartAt is when a task that waits for its restart is due; zero: it does not.
	RestartAt time.Time
	// Ran says that the task was running at least once.
	Ran bool
	// Frozen says that the running task was frozen, or was about to be, and was not
	// thawed since.
	Frozen bool
}

// Copy shares only what never changes.
func (s *State) Copy() *State {
	c := *s
	c.Task = s.Task.Copy()
	return &c
}

// addEvent appends to the task's history, of which the newest are kept.
func (s *State) addEvent(e *structs.TaskEvent) {
	events := s.Task.Events
	// Two at once may come in the other order, and a clock may be set back: the history is
	// in the order of its times all the same.
	if n := len(events); n > 0 {
		e.Time = max(e.Time, events[n-1].Time)
	}
	if len(events) >= structs.MaxTaskEvents {
		events = events[len(events)-structs.MaxTaskEvents+1:]
	}
	// A new array: copies that were handed out keep theirs.
	s.Task.Events = append(append(make([]*structs.TaskEvent, 0, len(events)+1), events...), e)
}

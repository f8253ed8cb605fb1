package task

import (
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// State is what a later life of the agent must know of a task.
type State struct {
	// Task is what is reported to the servers. A Runner keeps its events in history.
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
	// Ran is true if the task was running at least once.
	Ran bool
	// Suspended is true if the running task was suspended, or was about to be, and was not
	// resumed since. It is stored under its first name.
	Suspended bool `codec:"Frozen"`

	history []past
}

// past is one event of a history. Most of the events of a task that just runs differ from other tasks' in their time only,
// and nodes have many tasks: what is the same for all is there once.
type past struct {
	at   int64 // Unix nanoseconds
	what *structs.TaskEvent
}

// event is the event by itself; not to be changed.
func (p past) event() *structs.TaskEvent {
	if p.what.Time == p.at {
		return p.what
	}
	e := *p.what
	e.Time = p.at
	return &e
}

// Copy shares only what never changes.
func (s *State) Copy() *State {
	c := *s
	c.Task, c.history = s.taskState(), nil
	return &c
}

// taskState returns a copy of what is reported to the servers.
func (s *State) taskState() *structs.TaskState {
	c := *s.Task
	c.Events = make([]*structs.TaskEvent, len(s.history))
	for i, p := range s.history {
		c.Events[i] = p.event()
	}
	return &c
}

// recall takes over the history of an earlier life of the agent.
func (s *State) recall() {
	for _, e := range s.Task.Events {
		if e == nil {
			continue // what was read need not be well
		}
		s.history = append(s.history, past{e.Time, e})
	}
	s.Task.Events = nil
}

// addEvent appends to the task's history, of which the newest are kept.
func (s *State) addEvent(at int64, what *structs.TaskEvent) {
	// Two at once may come in the other order, and a clock may be set back: the history is
	// in the order of its times all the same.
	if n := len(s.history); n > 0 {
		at = max(at, s.history[n-1].at)
	}
	if over := len(s.history) - structs.MaxTaskEvents + 1; over > 0 {
		s.history = slices.Delete(s.history, 0, over)
	}
	if s.history == nil {
		s.history = make([]past, 0, usualEvents)
	}
	s.history = append(s.history, past{at, what})
}

// usualEvents is how many events a task has that just runs.
const usualEvents = 3

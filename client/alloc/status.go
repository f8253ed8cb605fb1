package alloc

import (
	"time"

	"github.com/nomadish/nomadish/client/task"
	"github.com/nomadish/nomadish/structs"
)

// State is what a later life of the agent must know of an allocation.
type State struct {
	Tasks             map[string]*task.State
	ClientStatus      string
	ClientDescription string
	Deployment        *structs.AllocDeploymentStatus
	StartedAt         time.Time     // when its first task ran; zero: none did
	EndedAt           time.Time     // when its last task was dead; zero: not yet
	Expired           bool          // it ran as long as it may
	SuspendedAt       time.Time     // since when all is suspended; zero: it is not
	SuspendedFor      time.Duration `codec:"Frozen"` // how long it was so before; stored under its first name
	Unfit             bool          // it was to be suspended, and cannot be
}

// Descriptions of a client status.
const (
	descPending  = "No tasks have started"
	descRunning  = "Tasks are running"
	descFailed   = "Failed tasks"
	descComplete = "All tasks have completed"
	// DescExpired is the description of an allocation that was ended by its
	// group's max_run_duration; its status is complete.
	DescExpired = structs.DescMaxRunDuration
)

// clientStatus sums the tasks up. An allocation has ended only when each of them
// has: what was reserved for it is free then.
func clientStatus(states []*structs.TaskState, expired bool) (status, description string) {
	running, pending, failed := false, false, false
	for _, s := range states {
		switch s.State {
		case structs.TaskStateRunning:
			running = true
		case structs.TaskStatePending:
			pending = true
		case structs.TaskStateDead:
			failed = failed || s.Failed
		}
	}
	switch {
	case running:
		return structs.AllocClientRunning, descRunning
	case pending && failed:
		// Another task failed and this one is about to be ended.
		return structs.AllocClientRunning, descRunning
	case pending:
		return structs.AllocClientPending, descPending
	case expired:
		return structs.AllocClientComplete, DescExpired
	case failed:
		return structs.AllocClientFailed, descFailed
	}
	return structs.AllocClientComplete, descComplete
}

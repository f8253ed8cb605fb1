package driver

import "context"

// Freezer is a Driver whose Handles are Pausers. One that is none cannot freeze its tasks:
// the servers know, and refuse a user who wants one of its allocations suspended.
type Freezer interface {
	// Freezes tells whether tasks can be frozen on this node. It does not change while the
	// agent lives.
	Freezes() bool
}

// Pauser is a Handle whose task can be frozen where it is: none of its processes runs,
// all keep their memory, files and connections, and time passes without them. A task
// outlives the agent frozen too. State may change with each call of Pause and Resume, and
// Recover then finds the task as it was.
//
// Stop ends a frozen task as it ends any other: it is thawed, so that it can act on the
// signal.
type Pauser interface {
	// Pause freezes the task and all that it started, and returns once nothing of it runs.
	// Freezing a frozen task does nothing. ErrTaskNotRunning if it has ended.
	Pause(ctx context.Context) error
	// Resume lets it go on. Resuming one that is not frozen does nothing.
	// ErrTaskNotRunning if it has ended.
	Resume(ctx context.Context) error
}

package driver

import "context"

// SuspendCapable is a Driver whose Handles are Suspenders. Any other cannot suspend its tasks:
// the servers know, and refuse a user who wants one of its allocations suspended.
type SuspendCapable interface {
	// CanSuspend reports whether tasks can be suspended on this node. It does not change while the
	// agent lives.
	CanSuspend() bool
}

// Suspender is a Handle whose task can be suspended where it is: none of its processes runs,
// all keep their memory, files and connections, and time passes without them. A task
// outlives the agent while suspended too. State may change with each call of Suspend and Resume, and
// Recover then finds the task as it was.
//
// Stop ends a suspended task as it ends any other: it is resumed, so that it can act on the
// signal.
type Suspender interface {
	// Suspend suspends the task and all that it started, and returns once nothing of it runs.
	// Suspending a suspended task does nothing. ErrTaskNotRunning if it has ended.
	Suspend(ctx context.Context) error
	// Resume lets it go on. Resuming one that is not suspended does nothing.
	// ErrTaskNotRunning if it has ended.
	Resume(ctx context.Context) error
}

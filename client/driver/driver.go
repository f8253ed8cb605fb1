package driver

import (
	"context"
	"errors"
	"time"
)

// Driver starts tasks of one kind on this node. All methods may be called from
// many goroutines at once.
type Driver interface {
	// Name is the word that a job's task writes after "driver =".
	Name() string

	// Fingerprint reports whether the driver can work here now and which node
	// attributes it stands for. It is called at start and then now and again, so
	// it must be cheap (a few milliseconds) and free of side effects.
	Fingerprint(ctx context.Context) Fingerprint

	// Validate checks a task's config block without starting anything. The error
	// names the field and what is allowed in it. Values that still contain an
	// interpolation ("${...}") are accepted where a string is.
	Validate(config map[string]any) error

	// Start starts the task and returns once it runs. The task outlives ctx, which
	// bounds only the start. An error for which IsRecoverable is true may be
	// tried again under the task's restart policy; any other will not get better.
	Start(ctx context.Context, task *TaskConfig) (Handle, error)

	// Recover finds a task that an earlier life of the agent started, from what
	// Handle.State returned. A task that ended meanwhile is recovered too: its Wait
	// returns at once. ErrTaskNotFound means that nothing is known of the task;
	// any other error may be temporary and Recover may be called again.
	Recover(ctx context.Context, state []byte) (Handle, error)
}

// Handle is one started task. All methods may be called from many goroutines at
// once, also after the task has ended.
type Handle interface {
	// Wait blocks until the task has ended and all of its output is in its log
	// files, then returns how it ended; every later call returns the same. An error
	// means that nobody waits any more (ctx's, or that the driver was closed) and
	// is not about the task: whatever went wrong with that is in the result.
	Wait(ctx context.Context) (ExitResult, error)

	// Signal sends the named signal ("SIGHUP" or "HUP") to the task.
	// ErrTaskNotRunning if it has ended.
	Signal(ctx context.Context, signal string) error

	// Stop sends signal (SIGINT where it is empty), and after timeout kills the
	// task and everything that it started. It returns once the task has ended, or
	// when ctx ends: what was begun goes on then. Stopping an ended task is not an
	// error.
	Stop(ctx context.Context, timeout time.Duration, signal string) error

	// Stats measures the task now. ErrTaskNotRunning if it has ended.
	Stats(ctx context.Context) (Stats, error)

	// State is what Recover needs to find this task again. It is constant over
	// the life of the handle and at most a few kilobytes.
	State() []byte
}

// Releaser is a Handle that keeps something of an ended task (its exit status on
// disk, for an agent that comes back). Release drops it; call it through the
// function Release once the exit is durable elsewhere.
type Releaser interface {
	Release(ctx context.Context) error
}

// Release frees what the driver keeps of an ended task; it does nothing for a
// handle that keeps nothing. The handle must not be used afterwards.
func Release(ctx context.Context, h Handle) error {
	if r, ok := h.(Releaser); ok {
		return r.Release(ctx)
	}
	return nil
}

// Noter is a Handle that can report what the user of its task should know of the start, such as a limit that the node has lowered.
type Noter interface {
	// Notes are sentences for people. They do not change; the handle of a recovered task has none.
	Notes() []string
}

// Notes returns what a handle reports about the start of its task.
func Notes(h Handle) []string {
	if n, ok := h.(Noter); ok {
		return n.Notes()
	}
	return nil
}

// Notifier is a Handle that can report the task's end by a call, so that its
// user needs no goroutine per waiting task (simulated nodes have tens of
// thousands).
type Notifier interface {
	// OnExit calls fn once, on a goroutine of the driver's, when the task has
	// ended; at once if it has already. fn must not block. The returned function
	// cancels the notification; fn may still be running when it returns.
	OnExit(fn func(ExitResult)) (cancel func())
}

// Envless is a Driver whose tasks have no use for an environment: TaskConfig.Env may be nil, and need not be made for each
// of tens of thousands of simulated tasks.
type Envless interface {
	// IgnoresEnv does not change while the agent lives.
	IgnoresEnv() bool
}

// GroupAdder is a Driver whose tasks may have groups beside those of their user (TaskConfig.Groups).
type GroupAdder interface {
	// AddsGroups reports whether tasks that are started now get them.
	AddsGroups(ctx context.Context) (bool, error)
}

// The errors that users of this package distinguish.
var (
	// ErrTaskNotFound is returned by Recover for a task of which nothing is known.
	ErrTaskNotFound = errors.New("task not found")
	// ErrTaskNotRunning is returned for a task that has ended.
	ErrTaskNotRunning = errors.New("task is not running")
)

// TaskConfig is everything that a driver needs to start one task. The driver
// must not change it nor keep it after Start.
type TaskConfig struct {
	// ID names this start of the task on this node: the allocation's ID, the
	// task's name and a part that differs between restarts. It is unique among
	// the tasks that have not been released.
	ID string
	// Name is the task's name in its group; log files are named after it.
	Name      string
	AllocID   string
	Namespace string
	JobName   string
	JobID     string
	TaskGroup string

	// Env is the task's whole environment, interpolated. Nothing is inherited
	// from the agent.
	Env map[string]string
	// Config is the task's config block, interpolated, as decoded from HCL or
	// JSON: strings, numbers, bools, lists and maps of them.
	Config map[string]any
	// User is the user to run as; empty means the agent's.
	User string
	// Groups are group IDs that a task which runs as another user than the agent's has beside that user's.
	Groups []int

	Resources Resources

	// AllocDir is shared by the tasks of the allocation, TaskDir is the task's own
	// (its working directory by default, above local, secrets and tmp), LogDir
	// takes the log files. All are absolute and exist.
	AllocDir string
	TaskDir  string
	LogDir   string
	Logs     LogConfig
}

// Resources is what the task was given on this node.
type Resources struct {
	// CPUShares is in MHz.
	CPUShares int
	// Cores are the reserved CPU cores' numbers, ascending; empty: none reserved.
	Cores []int
	// MemoryMB is the guaranteed memory, MemoryMaxMB the limit (0: MemoryMB), in MiB.
	MemoryMB    int
	MemoryMaxMB int
}

// LogConfig specifies how the task's output is kept.
type LogConfig struct {
	// MaxFiles is how many files each stream keeps; 0 means DefaultMaxFiles.
	MaxFiles int
	// MaxFileSizeMB is the size of one in MiB; 0 means DefaultMaxFileSizeMB.
	MaxFileSizeMB int
	// Disabled throws the output away.
	Disabled bool
}

// The log limits of a task that sets none, as the jobs documentation has them.
const (
	DefaultMaxFiles      = 10
	DefaultMaxFileSizeMB = 10
)

// ExitResult is how a task ended.
type ExitResult struct {
	// ExitCode is the exit code; of a process that a signal ended it is 128 and the
	// signal's number, as shells and Nomad have it.
	ExitCode int
	// Signal is the number of the signal that ended the task, or 0.
	Signal int
	// OOMKilled is true if the kernel ended the task for want of memory.
	OOMKilled bool
	// Unknown is true if the task has ended but nobody was there to see how;
	// ExitCode and Signal mean nothing then and Err states why.
	Unknown bool
	// Message states what else is known of the end, such as a limit that was reached; it makes no failure of it.
	Message string
	// Err is a failure of the driver's own while the task ran, or nil.
	Err error
	// FinishedAt is when the task ended; for an Unknown end when that was found.
	FinishedAt time.Time
}

// Successful reports whether the task ended by itself and well.
func (r ExitResult) Successful() bool {
	return r.ExitCode == 0 && r.Signal == 0 && !r.OOMKilled && !r.Unknown && r.Err == nil
}

// Stats is one measurement of a running task and all its processes.
type Stats struct {
	Timestamp time.Time
	// Pids are the task's processes, the one that was started first.
	Pids []int
	// CPUTime is used by all of them so far, split into user and system.
	CPUUser, CPUSystem time.Duration
	// MemoryRSS is the resident memory and MemorySwap the swapped, in bytes.
	MemoryRSS, MemorySwap uint64
}

// Health is the state of a driver on this node.
type Health string

// The states of a driver.
const (
	// HealthUndetected: what the driver needs is not on this node, or it is
	// switched off.
	HealthUndetected Health = "undetected"
	// HealthUnhealthy: it is there, but tasks cannot be started now.
	HealthUnhealthy Health = "unhealthy"
	// HealthHealthy: tasks can be started.
	HealthHealthy Health = "healthy"
)

// Fingerprint is a driver's state on this node.
type Fingerprint struct {
	Health Health
	// Description states in one line why the health is what it is.
	Description string
	// Attributes are the node attributes that the driver stands for
	// ("driver.raw_exec" = "1"); empty unless detected.
	Attributes map[string]string
}

// Detected reports whether the driver is there at all.
func (f Fingerprint) Detected() bool {
	return f.Health == HealthHealthy || f.Health == HealthUnhealthy
}

// recoverableError marks an error that may go away by itself.
type recoverableError struct{ err error }

func (e *recoverableError) Error() string { return e.err.Error() }
func (e *recoverableError) Unwrap() error { return e.err }

// Recoverable marks err as one that trying again may cure. nil stays nil.
func Recoverable(err error) error {
	if err == nil {
		return nil
	}
	return &recoverableError{err}
}

// IsRecoverable reports whether err or one that it wraps was marked by Recoverable.
func IsRecoverable(err error) bool {
	var r *recoverableError
	return errors.As(err, &r)
}

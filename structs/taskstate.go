package structs

import (
	"maps"
	"slices"
	"time"
)

// Task states.
const (
	TaskStatePending = "pending"
	TaskStateRunning = "running"
	TaskStateDead    = "dead"
)

// Task event types, as Nomad names them.
const (
	TaskReceived            = "Received"
	TaskSetup               = "Task Setup"
	TaskBuildingTaskDir     = "Building Task Directory"
	TaskDriverMessage       = "Driver"
	TaskStarted             = "Started"
	TaskTerminated          = "Terminated"
	TaskRestarting          = "Restarting"
	TaskNotRestarting       = "Not Restarting"
	TaskKilling             = "Killing"
	TaskKilled              = "Killed"
	TaskSetupFailure        = "Setup Failure"
	TaskDriverFailure       = "Driver Failure"
	TaskFailedValidation    = "Failed Validation"
	TaskRestartSignal       = "Restart Signaled"
	TaskSignaling           = "Signaling"
	TaskSiblingFailed       = "Sibling Task Failed"
	TaskLeaderDead          = "Leader Task Dead"
	TaskMainDead            = "Main Tasks Dead"
	TaskRestoreFailed       = "Failed Restoring Task"
	TaskReattached          = "Reattached"
	TaskWaitingShutDelay    = "Waiting for shutdown delay"
	TaskSkippingShutDelay   = "Skipping shutdown delay"
	TaskMaxRunDurationEnded = "Max Run Duration Exceeded"
	// Ours: what Nomad's tasks never are.
	TaskSuspended      = "Suspended"
	TaskResumed        = "Resumed"
	TaskSuspendFailure = "Suspend Failure"
	TaskWaitingForRoom = "Waiting for Room"
	TaskDiskFull       = "Disk Full"
	TaskDiskHasRoom    = "Disk Has Room"
)

// MaxTaskEvents bounds the events kept of a task.
const MaxTaskEvents = 10

// TaskState is what a client reports about a task.
type TaskState struct {
	State       string
	Failed      bool      `wire:",omitempty"`
	Restarts    uint64    `wire:",omitempty"`
	LastRestart time.Time `wire:",omitempty"`
	StartedAt   time.Time `wire:",omitempty"`
	FinishedAt  time.Time `wire:",omitempty"`
	Events      []*TaskEvent
}

// Successful reports whether the task ended without failing.
func (t *TaskState) Successful() bool { return t.State == TaskStateDead && !t.Failed }

// EndedByThemselves reports whether an allocation's tasks all ended without failing, and none
// because it was killed: their work is done, whatever was meant to become of them. Without tasks
// nothing was done.
func EndedByThemselves(tasks map[string]*TaskState) bool {
	killed := func(e *TaskEvent) bool { return e.Type == TaskKilling || e.Type == TaskKilled }
	for _, t := range tasks { // all must hold: the order cannot show
		if t == nil || !t.Successful() || slices.ContainsFunc(t.Events, killed) {
			return false
		}
	}
	return len(tasks) > 0
}

// Copy is deep but for the events themselves, which never change.
func (t *TaskState) Copy() *TaskState {
	if t == nil {
		return nil
	}
	c := *t
	c.Events = slices.Clone(t.Events)
	return &c
}

// ExitCode is the exit code of the task's last end; false if it has not ended.
func (t *TaskState) ExitCode() (int, bool) {
	for i := len(t.Events) - 1; i >= 0; i-- {
		if t.Events[i].Type == TaskTerminated {
			return t.Events[i].ExitCode, true
		}
	}
	return 0, false
}

// TaskEvent is one line of a task's history.
type TaskEvent struct {
	Type           string
	Time           int64  // Unix nanoseconds
	DisplayMessage string `wire:",omitempty"`
	Message        string `wire:",omitempty"`
	Details        map[string]string
	FailsTask      bool          `wire:",omitempty"`
	RestartReason  string        `wire:",omitempty"`
	DriverError    string        `wire:",omitempty"`
	ExitCode       int           `wire:",omitempty"`
	Signal         int           `wire:",omitempty"`
	KillReason     string        `wire:",omitempty"`
	KillTimeout    time.Duration `wire:",omitempty"`
	KillError      string        `wire:",omitempty"`
	StartDelay     int64         `wire:",omitempty"` // nanoseconds
	FailedSibling  string        `wire:",omitempty"`
	TaskSignal     string        `wire:",omitempty"`
}

// Copy is deep.
func (e *TaskEvent) Copy() *TaskEvent {
	c := *e
	c.Details = maps.Clone(e.Details)
	return &c
}

package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// NewEvent makes an event of a task's history with a message for people.
func NewEvent(kind string, now time.Time, display string) *structs.TaskEvent {
	return &structs.TaskEvent{Type: kind, Time: now.UnixNano(), DisplayMessage: cutMessage(display), Details: map[string]string{}}
}

// cutMessage returns a message as it is kept: an error may have quoted as much as it liked.
func cutMessage(message string) string { return structs.CutText(message, structs.MaxTaskText) }

// Events of a kind whose message is always the same: all but their time, once for all tasks. They are never changed.
var fixedEvents = func() map[string]*structs.TaskEvent {
	out := map[string]*structs.TaskEvent{}
	for kind, text := range map[string]string{
		structs.TaskReceived:   "Task received by client",
		structs.TaskSetup:      "Building Task Directory",
		structs.TaskStarted:    "Task started by client",
		structs.TaskReattached: "Agent restarted; the task was found running",
		structs.TaskKilled:     "Task successfully killed",
		structs.TaskLeaderDead: "Leader Task in Group dead",
		structs.TaskMainDead:   "Main tasks in the group died",
	} {
		out[kind] = NewEvent(kind, time.Time{}, text)
		out[kind].Time = 0
	}
	return out
}()

func fixedEvent(kind string, now time.Time) *structs.TaskEvent {
	e := *fixedEvents[kind]
	e.Time = now.UnixNano()
	return &e
}

// terminatedEvent returns how a run of the task ended.
func terminatedEvent(res driver.ExitResult, now time.Time) *structs.TaskEvent {
	display := fmt.Sprintf("Exit Code: %d", res.ExitCode)
	e := NewEvent(structs.TaskTerminated, now, "")
	if !res.FinishedAt.IsZero() {
		e.Time = res.FinishedAt.UnixNano()
	}
	e.ExitCode, e.Signal = res.ExitCode, res.Signal
	e.Details["exit_code"] = strconv.Itoa(res.ExitCode)
	e.Details["signal"] = strconv.Itoa(res.Signal)
	e.Details["oom_killed"] = strconv.FormatBool(res.OOMKilled)
	if res.Signal != 0 {
		display += fmt.Sprintf(", Signal: %d", res.Signal)
	}
	if res.OOMKilled {
		display += ", OOM Killed"
	}
	if res.Unknown {
		display = "How the task ended is not known"
		e.Details["unknown"] = "true"
	}
	if res.Err != nil {
		e.Message = cutMessage(res.Err.Error())
	}
	if res.Message != "" {
		e.Message = strings.TrimPrefix(e.Message+"; "+res.Message, "; ")
	}
	if e.Message != "" {
		e.Details["exit_message"] = e.Message
		display += fmt.Sprintf(", Exit Message: %q", e.Message)
	}
	e.DisplayMessage = cutMessage(display)
	return e
}

func restartingEvent(d Decision, now time.Time) *structs.TaskEvent {
	e := NewEvent(structs.TaskRestarting, now, fmt.Sprintf("Task restarting in %v", d.Delay.Round(time.Millisecond)))
	if d.Reason != "" && d.Reason != "Restart within policy" {
		e.DisplayMessage = d.Reason + " - " + e.DisplayMessage
	}
	e.RestartReason, e.StartDelay = d.Reason, int64(d.Delay)
	e.Details["restart_reason"] = d.Reason
	e.Details["start_delay"] = strconv.FormatInt(int64(d.Delay), 10)
	return e
}

func notRestartingEvent(d Decision, now time.Time) *structs.TaskEvent {
	e := NewEvent(structs.TaskNotRestarting, now, d.Reason)
	e.RestartReason, e.FailsTask = d.Reason, d.Failed
	e.Details["restart_reason"] = d.Reason
	e.Details["fails_task"] = strconv.FormatBool(d.Failed)
	return e
}

func killingEvent(reason string, timeout time.Duration, now time.Time) *structs.TaskEvent {
	e := NewEvent(structs.TaskKilling, now, fmt.Sprintf("Sent interrupt. Waiting %v before force killing", timeout))
	e.KillTimeout, e.KillReason = timeout, reason
	e.Details["kill_timeout"] = timeout.String()
	if reason != "" {
		e.Details["kill_reason"] = reason
	}
	return e
}

func failureEvent(kind string, err error, now time.Time) *structs.TaskEvent {
	e := NewEvent(kind, now, err.Error())
	if kind == structs.TaskDriverFailure {
		e.DriverError = cutMessage(err.Error())
		e.Details["driver_error"] = e.DriverError
	} else {
		e.Message = cutMessage(err.Error())
		e.Details["message"] = e.Message
	}
	return e
}

// SiblingFailed is the event of a task that is ended because another one failed.
func SiblingFailed(sibling string, now time.Time) *structs.TaskEvent {
	e := NewEvent(structs.TaskSiblingFailed, now, fmt.Sprintf("Task's sibling %q failed", sibling))
	e.FailedSibling = sibling
	e.Details["failed_sibling"] = sibling
	return e
}

// LeaderDead is the event of a task that is ended because its group's leader ended.
func LeaderDead(now time.Time) *structs.TaskEvent { return fixedEvent(structs.TaskLeaderDead, now) }

// MainDead is the event of a sidecar that is ended because the main tasks have.
func MainDead(now time.Time) *structs.TaskEvent { return fixedEvent(structs.TaskMainDead, now) }

// MaxRunDuration is the event of a task whose allocation ran as long as it may.
func MaxRunDuration(limit time.Duration, now time.Time) *structs.TaskEvent {
	e := NewEvent(structs.TaskMaxRunDurationEnded, now, fmt.Sprintf("max_run_duration of %v exceeded", limit))
	e.Details["max_run_duration"] = limit.String()
	return e
}

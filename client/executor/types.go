package executor

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/client/logs"
)

// Limits on what one task may bring with it.
const (
	maxIDLen = 200
	// The kernel's own limit on arguments and environment together is about 2 MiB.
	maxArgsBytes = 2 << 20
)

// Spec is everything needed to start a task's process.
type Spec struct {
	// ID names the task among those not yet forgotten; 1 to 200 bytes.
	ID string
	// Command is the absolute path of the program, Args what follows its name.
	Command string
	Args    []string
	// Env is the whole environment as KEY=VALUE; the executor adds only Marker.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// User is a user's name or number; empty means the executor's own.
	User string
	// Groups are group IDs that the process has beside those of a User other than the executor's own.
	Groups []int `json:",omitempty"`
	// AllowNewPrivs lets the process and its descendants gain privileges by executing programs that have more
	// (set-user-ID, file capabilities); else no_new_privs is set.
	AllowNewPrivs bool `json:",omitempty"`
	// OOMScoreAdj is written to the process's oom_score_adj unless it is 0.
	OOMScoreAdj int
	// CgroupV2 is the absolute path of an existing cgroup of the unified hierarchy
	// that the process is born into; empty means the executor's own.
	CgroupV2 string
	// Cgroup, unless it is nil or CgroupV2 is set, has the task run in control groups of its own, with limits.
	// Executors of protocol versions before versionLimits do not know it.
	Cgroup *Cgroup `json:",omitempty"`
	Logs   LogSpec
}

// LogSpec specifies where a task's output goes.
type LogSpec struct {
	// Disabled throws the output away; the rest is not looked at then.
	Disabled bool
	// Dir is the log directory, absolute; Task is how the files' names begin.
	Dir  string
	Task string
	// MaxFiles is how many files each stream keeps, MaxFileBytes how long one gets.
	MaxFiles     int
	MaxFileBytes int64
}

// Validate names the first field that is not usable.
func (s *Spec) Validate() error {
	switch {
	case s.ID == "" || len(s.ID) > maxIDLen || strings.ContainsRune(s.ID, 0):
		return fmt.Errorf("ID of %d bytes: must have 1 to %d, none of them 0", len(s.ID), maxIDLen)
	case !filepath.IsAbs(s.Command):
		return fmt.Errorf("command %q: must be an absolute path", s.Command)
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("working directory %q: must be an absolute path", s.Dir)
	case s.CgroupV2 != "" && !filepath.IsAbs(s.CgroupV2):
		return fmt.Errorf("cgroup %q: must be an absolute path", s.CgroupV2)
	case slices.ContainsFunc(s.Groups, func(g int) bool { return g < 0 || g >= math.MaxUint32 }):
		return fmt.Errorf("groups %v: must be group IDs", s.Groups)
	case s.Cgroup != nil && s.Cgroup.validate() != nil:
		return s.Cgroup.validate()
	case s.OOMScoreAdj < -1000 || s.OOMScoreAdj > 1000:
		return fmt.Errorf("oom_score_adj %d: must be -1000 to 1000", s.OOMScoreAdj)
	}
	total := 0
	for _, list := range [][]string{s.Args, s.Env} {
		for _, v := range list {
			if strings.ContainsRune(v, 0) {
				return fmt.Errorf("argument or environment variable %q: must not contain a zero byte", v)
			}
			total += len(v) + 1
		}
	}
	if total > maxArgsBytes {
		return fmt.Errorf("arguments and environment: %d bytes, at most %d", total, maxArgsBytes)
	}
	return s.Logs.validate()
}

func (l LogSpec) validate() error {
	if l.Disabled {
		return nil
	}
	if l.MaxFiles < 1 || l.MaxFileBytes < 1 {
		return fmt.Errorf("log limits: %d files of %d bytes; both must be at least 1", l.MaxFiles, l.MaxFileBytes)
	}
	return logs.Source{Dir: l.Dir, Task: l.Task, Stream: logs.Stdout}.Validate()
}

// State is where a task stands.
type State string

// The states of a task, in their order.
const (
	// StateStarting: written down, but no process is known. It is seen only in the
	// records of an executor that died in that moment.
	StateStarting State = "starting"
	// StateRunning: there is a process.
	StateRunning State = "running"
	// StateExited: the process has ended and its output is in the files.
	StateExited State = "exited"
)

// Status is what is known of one task.
type Status struct {
	ID    string
	State State
	Pid   int
	// StartTicks is the kernel's start time of the process (clock ticks since
	// boot): Pid and StartTicks together are never used twice in one boot.
	StartTicks uint64
	StartedAt  time.Time
	// Adopted is true if an earlier executor started the process, so that its exit
	// code may not be to be had.
	Adopted bool
	// Dropped counts the bytes of output that could not be written to the files.
	Dropped int64
	// Exit is how it ended, or nil while it has not.
	Exit *Exit
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, Signal the signal that ended it; one of them is 0.
	Code, Signal int
	// OOMKilled: the kernel reported that the process's cgroup ran out of memory.
	OOMKilled bool
	// Message states which of its limits the task has reached; empty: none.
	Message string `json:",omitempty"`
	// Unknown: it has ended, but nobody saw how; Reason states why nobody did.
	Unknown    bool
	Reason     string
	FinishedAt time.Time
}

// Stats is one measurement of a task's processes.
type Stats struct {
	// Pids begins with the process that was started.
	Pids []int
	// CPUUser and CPUSystem are what all of them have used so far.
	CPUUser, CPUSystem time.Duration
	// RSS and Swap are in bytes.
	RSS, Swap uint64
	At        time.Time
}

// The errors that callers distinguish; they survive the socket.
var (
	// ErrNotFound: no task of that ID.
	ErrNotFound = errors.New("no such task in the executor")
	// ErrNotRunning: the task has ended.
	ErrNotRunning = errors.New("task has ended")
	// ErrRunning: the task, or some task, still runs.
	ErrRunning = errors.New("task is still running")
	// ErrInvalid: the request makes no sense, and never will.
	ErrInvalid = errors.New("invalid request")
	// ErrStart: the process could not be started.
	ErrStart = errors.New("start process")
	// ErrBusy: more requests at once than the executor takes.
	ErrBusy = errors.New("executor is busy")
	// ErrVersion: agent and executor do not speak the same protocol.
	ErrVersion = errors.New("executor speaks another protocol version")
)

// Marker is the environment variable that every process of a task inherits; its
// value is the task's ID. It finds processes that have left the task's session.
const Marker = "NOMADISH_EXECUTOR_TASK"

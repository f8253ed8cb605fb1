package task

import (
	"errors"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// The event of a task's end says which limits it reached.
func TestTerminatedEvent(t *testing.T) {
	for _, c := range []struct {
		res               driver.ExitResult
		display, msg, oom string
	}{
		{driver.ExitResult{ExitCode: 3}, "Exit Code: 3", "", "false"},
		{
			driver.ExitResult{ExitCode: 137, Signal: 9, OOMKilled: true, Message: "limit of 20 MiB"},
			`Exit Code: 137, Signal: 9, OOM Killed, Exit Message: "limit of 20 MiB"`, "limit of 20 MiB", "true",
		},
		{
			driver.ExitResult{Unknown: true, Err: errors.New("not seen"), Message: "limit of 5 processes"},
			`How the task ended is not known, Exit Message: "not seen; limit of 5 processes"`, "not seen; limit of 5 processes", "false",
		},
	} {
		e := terminatedEvent(c.res, time.Unix(1, 0))
		if e.DisplayMessage != c.display || e.Message != c.msg || e.Details["exit_message"] != c.msg || e.Details["oom_killed"] != c.oom {
			t.Errorf("%+v:\n %+v", c.res, e)
		}
	}
	if r := (driver.ExitResult{Message: "said"}); !r.Successful() {
		t.Error("a message makes a failure")
	}
}

package command

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// told is an error output, and tells when something was written to it.
type told struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // has room for one
}

func (w *told) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return n, err
}

func (w *told) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestWaitingIsTold: who waits for an answer is told for what before it comes.
func TestWaitingIsTold(t *testing.T) {
	defer func(was time.Duration) { progressAfter = was }(progressAfter)
	progressAfter = time.Millisecond
	job := exampleFile(t)
	for _, c := range []struct {
		line, route string
		answer      any
		want        string
	}{
		{"alloc restart 5f3a9c01", "PUT /v1/client/allocation/" + allocA + "/restart", "{}", "restarting: tasks that run end first"},
		{"job plan " + job, "PUT /v1/job/example/plan", refusal{500, "no"}, "waiting for the server to plan the job"},
		{"server join 10.0.0.2", "PUT /v1/agent/join", refusal{500, "no"}, "waiting for servers at these addresses"},
		{"operator debug check", "GET /v1/operator/check", refusal{500, "no"}, "waiting for the server to count its state"},
		{"operator raft transfer-leadership -peer-id s1", "PUT /v1/operator/raft/transfer-leadership", refusal{500, "no"}, "waiting for the leader"},
		{"operator debug -duration 1ms -output " + t.TempDir(), "GET /v1/jobs", refusal{500, "no"}, "gathering for 1ms"},
	} {
		reported := &told{wrote: make(chan struct{}, 1)}
		f := cluster(t)
		f.answers[c.route] = []any{func() any {
			for late := time.After(10 * time.Second); !strings.Contains(reported.String(), c.want); {
				select {
				case <-reported.wrote:
				case <-late: // the test fails
					return c.answer
				}
			}
			return c.answer
		}}
		f.runTo(t, reported, "", strings.Fields(c.line)...)
		if !strings.Contains(reported.String(), c.want) {
			t.Errorf("%s: %q", c.line, reported)
		}
	}
}

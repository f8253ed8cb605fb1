package mock

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/driver"
)

// handle is one mock task.
type handle struct {
	clock Clock
	s     *state

	mu          sync.Mutex
	over        bool
	killed      bool                      // it ends as if killed, and not as its plan states
	endAt       time.Time                 // when it will end, or did
	stopEnd     func() bool               // takes back the timer of the end
	stopTalk    []func() bool             // those of the streams' next words
	suspensions int                       // how often it was suspended: older timers are void
	done        chan struct{}             // made when somebody waits
	watchers    []func(driver.ExitResult) // nil where one is not interested any more
}

// endBy makes the task end at that time, unless it ends earlier anyway. h.mu is
// held.
func (h *handle) endBy(at time.Time, killed bool) {
	if h.over || h.stopEnd != nil && !at.Before(h.endAt) {
		return
	}
	if h.stopEnd != nil {
		h.stopEnd()
	}
	h.endAt, h.killed = at, killed
	left := at.Sub(h.clock.Now())
	if left <= 0 {
		h.end()
		return
	}
	h.stopEnd = h.clock.AfterFunc(left, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		// A timer that was taken back too late finds another time set.
		if !h.over && h.endAt.Equal(at) {
			h.end()
		}
	})
}

// end notifies that the task has ended. h.mu is held.
func (h *handle) end() {
	h.over = true
	for _, stop := range h.stopTalk {
		if stop != nil {
			stop()
		}
	}
	h.stopTalk = nil
	if h.done != nil {
		close(h.done)
	}
	if len(h.watchers) > 0 {
		watchers, result := h.watchers, h.result()
		h.watchers = nil
		go func() {
			for _, fn := range watchers {
				if fn != nil {
					fn(result)
				}
			}
		}()
	}
}

// result is how the task ended, or will as things stand. h.mu is held.
func (h *handle) result() driver.ExitResult {
	r := h.s.Plan.result()
	if h.killed {
		r = driver.ExitResult{Signal: int(unix.SIGKILL)}
	}
	r.FinishedAt = h.endAt
	return r
}

// Wait blocks until the task has ended.
func (h *handle) Wait(ctx context.Context) (driver.ExitResult, error) {
	h.mu.Lock()
	if h.over {
		defer h.mu.Unlock()
		return h.result(), nil
	}
	if h.done == nil {
		h.done = make(chan struct{})
	}
	done := h.done
	h.mu.Unlock()
	select {
	case <-done:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.result(), nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}

// OnExit implements driver.Notifier.
func (h *handle) OnExit(fn func(driver.ExitResult)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		go fn(h.result())
		return func() {}
	}
	i := len(h.watchers)
	h.watchers = append(h.watchers, fn)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if i < len(h.watchers) { // else it is over
			h.watchers[i] = nil
		}
	}
}

// Signal does nothing, or fails, as the config states.
func (h *handle) Signal(_ context.Context, name string) error {
	if _, err := driver.ParseSignal(name); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return driver.ErrTaskNotRunning
	}
	if msg := h.s.Plan.SignalError; msg != "" {
		return errors.New(msg)
	}
	return nil
}

// Stop ends the task after its kill_after with its own result, or after timeout
// as if killed.
func (h *handle) Stop(ctx context.Context, timeout time.Duration, name string) error {
	if _, err := driver.ParseSignal(name); err != nil {
		return err
	}
	h.mu.Lock()
	now := h.clock.Now()
	h.resumeAt(now)
	if after := h.s.Plan.KillAfter; after <= timeout {
		h.endBy(now.Add(after), false)
	} else {
		h.endBy(now.Add(max(0, timeout)), true)
	}
	h.mu.Unlock()
	_, err := h.Wait(ctx)
	return err
}

// Stats returns zeros: a mock uses nothing.
func (h *handle) Stats(context.Context) (driver.Stats, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return driver.Stats{}, driver.ErrTaskNotRunning
	}
	return driver.Stats{Timestamp: h.clock.Now()}, nil
}

// State is the plan and its beginning.
func (h *handle) State() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A struct of texts and numbers cannot fail to be encoded.
	data, _ := json.Marshal(h.s)
	return data
}

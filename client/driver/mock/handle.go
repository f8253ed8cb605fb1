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

	mu       sync.Mutex
	over     bool
	endAt    time.Time // when it will end, or did
	result   driver.ExitResult
	stopEnd  func() bool   // takes back the timer of the end
	stopTalk []func() bool // those of the streams' next words
	pauses   int           // how often time stood still: older timers are void
	done     chan struct{} // made when somebody waits
	watchers map[int]func(driver.ExitResult)
	nextID   int
}

// endBy makes the task end at that time, unless it ends earlier anyway. h.mu is
// held.
func (h *handle) endBy(at time.Time, result driver.ExitResult) {
	if h.over || h.stopEnd != nil && !at.Before(h.endAt) {
		return
	}
	if h.stopEnd != nil {
		h.stopEnd()
	}
	h.endAt, h.result = at, result
	h.result.FinishedAt = at
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

// end tells that the task has ended. h.mu is held.
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
		watchers, result := h.watchers, h.result
		h.watchers = nil
		go func() {
			for _, fn := range watchers {
				fn(result)
			}
		}()
	}
}

// Wait blocks until the task has ended.
func (h *handle) Wait(ctx context.Context) (driver.ExitResult, error) {
	h.mu.Lock()
	if h.over {
		defer h.mu.Unlock()
		return h.result, nil
	}
	if h.done == nil {
		h.done = make(chan struct{})
	}
	done := h.done
	h.mu.Unlock()
	select {
	case <-done:
		return h.result, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}

// OnExit implements driver.Notifier.
func (h *handle) OnExit(fn func(driver.ExitResult)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		go fn(h.result)
		return func() {}
	}
	if h.watchers == nil {
		h.watchers = map[int]func(driver.ExitResult){}
	}
	h.nextID++
	id := h.nextID
	h.watchers[id] = fn
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, id)
	}
}

// Signal does nothing, or fails as the config says.
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
	h.thaw(now)
	if after := h.s.Plan.KillAfter; after <= timeout {
		h.endBy(now.Add(after), h.s.Plan.result())
	} else {
		h.endBy(now.Add(max(0, timeout)), driver.ExitResult{Signal: int(unix.SIGKILL)})
	}
	h.mu.Unlock()
	_, err := h.Wait(ctx)
	return err
}

// Stats gives zeros: a mock uses nothing.
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

// Package mock is the driver mock_driver: tasks that do nothing but take time,
// end as their config states and print what it states. It serves tests and
// simulated nodes, so a task must cost next to nothing: a timer and a few hundred
// bytes, and no goroutine unless somebody calls Wait.
//
// It must never start a process. Its time comes from a Clock.
package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// Name is the word that a job's task writes after "driver =".
const Name = "mock_driver"

// Clock is the time that the tasks live in.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own in d. stop takes that back and
	// reports whether it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// WallClock is the machine's time.
type WallClock struct{}

// Now is time.Now.
func (WallClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (WallClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// Driver is the mock driver.
type Driver struct {
	clock Clock
	last  atomic.Pointer[plan] // that was begun; never changed
}

// New makes the driver; a nil clock means WallClock.
func New(clock Clock) *Driver {
	if clock == nil {
		clock = WallClock{}
	}
	return &Driver{clock: clock}
}

// Name is "mock_driver".
func (d *Driver) Name() string { return Name }

// IgnoresEnv is true (driver.Envless).
func (d *Driver) IgnoresEnv() bool { return true }

// Fingerprint is always healthy.
func (d *Driver) Fingerprint(context.Context) driver.Fingerprint {
	return driver.Fingerprint{
		Health: driver.HealthHealthy, Description: "Healthy",
		Attributes: map[string]string{"driver.mock_driver": "1"},
	}
}

// plan is a task's config block: what will happen, and when.
type plan struct {
	StartError            string        `json:",omitempty"`
	StartErrorRecoverable bool          `json:",omitempty"`
	StartBlockFor         time.Duration `json:",omitempty"`
	RunFor                time.Duration `json:",omitempty"`
	ExitCode              int           `json:",omitempty"`
	ExitSignal            int           `json:",omitempty"`
	ExitErrMsg            string        `json:",omitempty"`
	SignalError           string        `json:",omitempty"`
	// KillAfter is how long the task takes to end once it is stopped.
	KillAfter time.Duration `json:",omitempty"`
	Stdout    speech
	Stderr    speech
}

// speech is what a task writes to one stream: Text at its start, and then
// Repeat times more, Every so often.
type speech struct {
	Text   string        `json:",omitempty"`
	Repeat int           `json:",omitempty"`
	Every  time.Duration `json:",omitempty"`
}

func parse(values map[string]any) (*plan, error) {
	c := driver.ReadConfig(values)
	p := &plan{
		StartError:            c.String("start_error"),
		StartErrorRecoverable: c.Bool("start_error_recoverable"),
		StartBlockFor:         c.Duration("start_block_for"),
		RunFor:                c.Duration("run_for"),
		ExitCode:              c.Int("exit_code"),
		ExitSignal:            c.Int("exit_signal"),
		ExitErrMsg:            c.String("exit_err_msg"),
		SignalError:           c.String("signal_error"),
		KillAfter:             c.Duration("kill_after"),
		Stdout:                speech{c.String("stdout_string"), c.Int("stdout_repeat"), c.Duration("stdout_repeat_duration")},
		Stderr:                speech{c.String("stderr_string"), c.Int("stderr_repeat"), c.Duration("stderr_repeat_duration")},
	}
	// They concern a plugin process, a network or a shell that is not there.
	c.Ignore("plugin_exit_after", "driver_ip", "driver_advertise", "driver_port_map", "exec_command")
	if p.ExitSignal < 0 || p.ExitSignal > 64 {
		c.Fail("exit_signal", "must be 0 to 64, not %d", p.ExitSignal)
	}
	for _, s := range []struct {
		name string
		speech
	}{{"stdout_repeat", p.Stdout}, {"stderr_repeat", p.Stderr}} {
		if s.Repeat < 0 {
			c.Fail(s.name, "must not be negative")
		}
		if s.Repeat > 0 && s.Every == 0 && c.Err() == nil {
			c.Fail(s.name, "needs %s_duration as well", s.name)
		}
	}
	return p, c.Err()
}

// Validate checks a task's config block.
func (d *Driver) Validate(values map[string]any) error {
	_, err := parse(values)
	return err
}

// state is what Recover needs: the plan and when it began.
type state struct {
	Version   int
	ID        string
	StartedAt time.Time
	Plan      *plan
	Logs      logDest
	// SuspendedAt is since when the task's time stands still; zero: it does not.
	SuspendedAt time.Time `json:"PausedAt,omitzero"`
}

// Start begins the task's plan.
func (d *Driver) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	p, err := parse(task.Config)
	if err != nil {
		return nil, err
	}
	if p.StartBlockFor > 0 {
		over := make(chan struct{})
		stop := d.clock.AfterFunc(p.StartBlockFor, func() { close(over) })
		select {
		case <-over:
		case <-ctx.Done():
			stop()
			return nil, driver.Recoverable(ctx.Err())
		}
	}
	if p.StartError != "" {
		err := errors.New(p.StartError)
		if p.StartErrorRecoverable {
			err = driver.Recoverable(err)
		}
		return nil, err
	}
	// The tasks of a job have the same plan: what is the same is there once.
	if last := d.last.Load(); last != nil && *last == *p {
		p = last
	} else {
		d.last.Store(p)
	}
	s := &state{Version: 1, ID: task.ID, StartedAt: d.clock.Now(), Plan: p, Logs: logDestOf(task)}
	return d.begin(s, true)
}

// Recover goes on with a plan as if it had never stopped: a task whose time was
// over meanwhile ended at its time.
func (d *Driver) Recover(_ context.Context, data []byte) (driver.Handle, error) {
	s := &state{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%w: state: %w", driver.ErrTaskNotFound, err)
	}
	if s.Version != 1 || s.ID == "" || s.Plan == nil {
		return nil, fmt.Errorf("%w: state of version %d, this agent knows version 1", driver.ErrTaskNotFound, s.Version)
	}
	return d.begin(s, false)
}

// begin sets a plan's timers.
func (d *Driver) begin(s *state, fresh bool) (*handle, error) {
	h := &handle{clock: d.clock, s: s}
	if err := h.speak(fresh); err != nil {
		return nil, driver.Recoverable(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setTimers()
	return h, nil
}

// result is how the task ends if it is left alone.
func (p *plan) result() driver.ExitResult {
	r := driver.ExitResult{ExitCode: p.ExitCode, Signal: p.ExitSignal}
	if p.ExitErrMsg != "" {
		r.Err = errors.New(p.ExitErrMsg)
	}
	return r
}

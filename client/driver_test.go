package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// world is a machine on which fake tasks run. It outlives the clients that start
// tasks on it, as processes do.
type world struct {
	mu      sync.Mutex
	tasks   map[string]*fakeTask
	configs map[string]*driver.TaskConfig // by allocation and task, the latest
	starts  int
	stops   int
}

func newWorld() *world {
	return &world{tasks: map[string]*fakeTask{}, configs: map[string]*driver.TaskConfig{}}
}

// fakeTask is a task of the fake driver.
type fakeTask struct {
	w       *world
	id      string
	pid     int
	stopFor time.Duration // how long it takes to stop
	once    sync.Once
	done    chan struct{}
	result  driver.ExitResult
	signals []string
	gone    bool // released
}

// fakeDriver runs tasks in a world. Config: run_for (else for ever), exit_code,
// start_error, recoverable, stop_for.
type fakeDriver struct {
	name string
	w    *world
}

func (d fakeDriver) Name() string { return d.name }

func (d fakeDriver) Fingerprint(context.Context) driver.Fingerprint {
	return driver.Fingerprint{Health: driver.HealthHealthy, Description: "Healthy", Attributes: map[string]string{"driver." + d.name: "1"}}
}

func (d fakeDriver) Validate(config map[string]any) error {
	if _, bad := config["invalid"]; bad {
		return fmt.Errorf("config invalid: not known")
	}
	return nil
}

func duration(config map[string]any, key string) time.Duration {
	s, _ := config[key].(string)
	d, _ := time.ParseDuration(s)
	return d
}

func number(config map[string]any, key string) int {
	switch v := config[key].(type) {
	case int:
		return v
	case int64:
		return int(v)
	case uint64:
		return int(v) // small
	}
	return 0
}

func (d fakeDriver) Start(_ context.Context, c *driver.TaskConfig) (driver.Handle, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.starts++
	d.w.configs[c.AllocID+"/"+c.Name] = c
	if msg, ok := c.Config["start_error"].(string); ok {
		err := fmt.Errorf("%s", msg)
		if yes, _ := c.Config["recoverable"].(bool); yes {
			err = driver.Recoverable(err)
		}
		return nil, err
	}
	t := &fakeTask{w: d.w, id: c.ID, pid: 1000 + d.w.starts, stopFor: duration(c.Config, "stop_for"), done: make(chan struct{})}
	d.w.tasks[c.ID] = t
	if run := duration(c.Config, "run_for"); run > 0 {
		code := number(c.Config, "exit_code")
		time.AfterFunc(run, func() { t.end(driver.ExitResult{ExitCode: code}) })
	}
	return t, nil
}

func (d fakeDriver) Recover(_ context.Context, state []byte) (driver.Handle, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	t := d.w.tasks[string(state)]
	if t == nil || t.gone {
		return nil, driver.ErrTaskNotFound
	}
	return t, nil
}

func (t *fakeTask) end(res driver.ExitResult) {
	t.once.Do(func() {
		res.FinishedAt = time.Now()
		t.result = res
		close(t.done)
	})
}

func (t *fakeTask) Wait(ctx context.Context) (driver.ExitResult, error) {
	select {
	case <-t.done:
		return t.result, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}

func (t *fakeTask) Signal(_ context.Context, signal string) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.signals = append(t.signals, signal)
	return nil
}

func (t *fakeTask) Stop(ctx context.Context, _ time.Duration, _ string) error {
	t.w.mu.Lock()
	t.w.stops++
	t.w.mu.Unlock()
	if t.stopFor > 0 {
		time.AfterFunc(t.stopFor, func() { t.end(driver.ExitResult{Signal: 2}) })
	} else {
		t.end(driver.ExitResult{Signal: 2})
	}
	_, err := t.Wait(ctx)
	return err
}

func (t *fakeTask) Stats(context.Context) (driver.Stats, error) {
	select {
	case <-t.done:
		return driver.Stats{}, driver.ErrTaskNotRunning
	default:
	}
	now := time.Now()
	return driver.Stats{Timestamp: now, Pids: []int{t.pid}, CPUUser: time.Duration(now.UnixNano()) / 2, MemoryRSS: 1 << 20}, nil
}

func (t *fakeTask) State() []byte { return []byte(t.id) }

func (t *fakeTask) Release(context.Context) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.gone = true
	return nil
}

// notifying is a fake driver whose handles tell of their end by a call.
type notifying struct{ fakeDriver }

type notifyingTask struct{ *fakeTask }

func (d notifying) Start(ctx context.Context, c *driver.TaskConfig) (driver.Handle, error) {
	h, err := d.fakeDriver.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return notifyingTask{h.(*fakeTask)}, nil // it is ours
}

// OnExit polls nothing: a timer of the task's end calls.
func (t notifyingTask) OnExit(fn func(driver.ExitResult)) func() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if res, err := t.Wait(ctx); err == nil {
			fn(res)
		}
	}()
	return cancel
}

package task

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// host is a Host of one task.
type host struct {
	mu     sync.Mutex
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
	saves  int
}

func newHost() *host {
	ctx, cancel := context.WithCancel(context.Background())
	return &host{ctx: ctx, cancel: cancel}
}

func (h *host) Do(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn()
}
func (h *host) Go(fn func(context.Context)) { h.wg.Go(func() { fn(h.ctx) }) }
func (h *host) Changed(*Runner, bool)       {}
func (h *host) Save(done func(error)) {
	h.saves++
	if done != nil {
		done(nil)
	}
}
func (h *host) StartSlot(context.Context) (func(), error) { return func() {}, nil }

// script is a driver whose starts go as written: a nil error runs until run passes.
type script struct {
	starts  []error
	run     time.Duration
	code    int
	stop    time.Duration // how long stopping takes
	at      []time.Time
	stopped int
	killed  []time.Duration // the timeouts given to Stop
	notes   []string
}

func (s *script) Name() string { return "script" }
func (s *script) Fingerprint(context.Context) driver.Fingerprint {
	return driver.Fingerprint{Health: driver.HealthHealthy}
}
func (s *script) Validate(map[string]any) error { return nil }
func (s *script) Recover(context.Context, []byte) (driver.Handle, error) {
	return nil, driver.ErrTaskNotFound
}
func (s *script) Start(context.Context, *driver.TaskConfig) (driver.Handle, error) {
	i := len(s.at)
	s.at = append(s.at, time.Now())
	if i < len(s.starts) && s.starts[i] != nil {
		return nil, s.starts[i]
	}
	h := &scriptHandle{s: s, done: make(chan struct{})}
	if s.run > 0 {
		time.AfterFunc(s.run, func() { h.end(driver.ExitResult{ExitCode: s.code}) })
	}
	return h, nil
}

type scriptHandle struct {
	s    *script
	once sync.Once
	done chan struct{}
	res  driver.ExitResult
}

func (h *scriptHandle) end(r driver.ExitResult) { h.once.Do(func() { h.res = r; close(h.done) }) }
func (h *scriptHandle) Wait(ctx context.Context) (driver.ExitResult, error) {
	select {
	case <-h.done:
		return h.res, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}
func (h *scriptHandle) Signal(context.Context, string) error { return nil }
func (h *scriptHandle) Stop(ctx context.Context, timeout time.Duration, _ string) error {
	h.s.stopped++
	h.s.killed = append(h.s.killed, timeout)
	time.AfterFunc(h.s.stop, func() { h.end(driver.ExitResult{Signal: 15}) })
	_, err := h.Wait(ctx)
	return err
}
func (h *scriptHandle) Stats(context.Context) (driver.Stats, error) { return driver.Stats{}, nil }
func (h *scriptHandle) Notes() []string                             { return h.s.notes }
func (h *scriptHandle) State() []byte                               { return []byte("state") }

func runner(h *host, d driver.Driver, spec *structs.Task, p Policy) *Runner {
	if spec.Name == "" {
		spec.Name = "t"
	}
	return New(Config{
		AllocID: "a", Task: spec, Policy: p, Driver: d, MaxKillTimeout: 30 * time.Second, Host: h,
		Prepare: func(_ context.Context, id string) (*driver.TaskConfig, error) { return &driver.TaskConfig{ID: id}, nil },
	})
}

func (h *host) dead(t *Runner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Dead()
}

func types(s *State) []string {
	var out []string
	for _, e := range s.Task.Events {
		out = append(out, e.Type)
	}
	return out
}

func TestRunnerRestartsWithItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{run: time.Second, code: 1}
		r := runner(h, s, &structs.Task{}, Policy{Attempts: 2, Interval: time.Hour, Delay: 10 * time.Second, Mode: structs.RestartPolicyModeFail})
		h.Do(r.Start)
		time.Sleep(time.Minute)
		if !h.dead(r) || !r.Failed() || len(s.at) != 3 {
			t.Fatalf("dead %v, failed %v, %d starts; want a failed task after 3", r.Dead(), r.Failed(), len(s.at))
		}
		for i := 1; i < 3; i++ {
			if d := s.at[i].Sub(s.at[i-1]); d < 11*time.Second || d > 14*time.Second {
				t.Errorf("start %d came %v after the one before", i, d)
			}
		}
		h.cancel()
		h.wg.Wait()
	})
}

// What the driver has to say of a start is told once, not at each restart.
func TestRunnerTellsOfItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{run: time.Second, code: 1, notes: []string{"less than was asked for"}}
		r := runner(h, s, &structs.Task{}, Policy{Attempts: 1, Interval: time.Hour, Delay: time.Second, Mode: structs.RestartPolicyModeFail})
		h.Do(r.Start)
		time.Sleep(time.Minute)
		var told []string
		h.Do(func() {
			events := r.State().Task.Events
			for i, e := range events {
				if e.Type == structs.TaskDriverMessage {
					told = append(told, e.DisplayMessage+", then "+events[i+1].Type)
				}
			}
		})
		if want := []string{"less than was asked for, then " + structs.TaskStarted}; !h.dead(r) || len(s.at) != 2 || !slices.Equal(told, want) {
			t.Errorf("dead %v, %d starts, told %q, want %q once", r.Dead(), len(s.at), told, want)
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerModeDelayGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{run: time.Second, code: 1}
		r := runner(h, s, &structs.Task{}, Policy{Attempts: 1, Interval: time.Minute, Delay: time.Second, Mode: structs.RestartPolicyModeDelay})
		h.Do(r.Start)
		time.Sleep(10 * time.Minute)
		if h.dead(r) || len(s.at) < 10 || len(s.at) > 30 {
			t.Errorf("dead %v, %d starts in ten minutes", r.Dead(), len(s.at))
		}
		h.Do(func() { r.Kill(nil, true) })
		synctest.Wait()
		if !h.dead(r) || r.Failed() {
			t.Errorf("killed: dead %v, failed %v", r.Dead(), r.Failed())
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerStartErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		p := Policy{Attempts: 3, Interval: time.Hour, Delay: time.Second, Mode: structs.RestartPolicyModeFail}
		s := &script{starts: []error{driver.Recoverable(errors.New("busy")), nil}, run: time.Second}
		r := runner(h, s, &structs.Task{}, p)
		h.Do(r.Start)
		time.Sleep(time.Minute)
		if !h.dead(r) || r.Failed() || len(s.at) != 2 {
			t.Errorf("curable: dead %v, failed %v, %d starts", r.Dead(), r.Failed(), len(s.at))
		}
		s = &script{starts: []error{errors.New("no such file")}}
		r = runner(h, s, &structs.Task{}, p)
		h.Do(r.Start)
		time.Sleep(time.Minute)
		if !h.dead(r) || !r.Failed() || len(s.at) != 1 {
			t.Errorf("incurable: dead %v, failed %v, %d starts", r.Dead(), r.Failed(), len(s.at))
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerKillWaitsShutdownDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{stop: time.Second}
		r := runner(h, s, &structs.Task{ShutdownDelay: 10 * time.Second, KillTimeout: time.Hour}, Policy{})
		h.Do(r.Start)
		synctest.Wait()
		begun := time.Now()
		h.Do(func() { r.Kill(nil, false) })
		time.Sleep(5 * time.Second)
		if s.stopped != 0 {
			t.Error("stopped before its shutdown delay")
		}
		h.Do(func() { r.Kill(nil, false) }) // again: changes nothing
		time.Sleep(time.Minute)
		if !h.dead(r) || s.stopped != 1 {
			t.Fatalf("dead %v after %d stops", r.Dead(), s.stopped)
		}
		if d := r.TaskState().FinishedAt.Sub(begun.UTC()); d != 11*time.Second {
			t.Errorf("dead after %v, want 11 s", d)
		}
		if s.killed[0] != 30*time.Second {
			t.Errorf("kill timeout %v, want the bound of 30 s", s.killed[0])
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerKillSkipsShutdownDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{}
		r := runner(h, s, &structs.Task{ShutdownDelay: time.Hour}, Policy{})
		h.Do(r.Start)
		synctest.Wait()
		h.Do(func() { r.Kill(nil, false) })
		h.Do(func() { r.Kill(nil, true) })
		synctest.Wait()
		if !h.dead(r) || !slices.Contains(types(r.State()), structs.TaskSkippingShutDelay) {
			t.Errorf("dead %v, events %q", r.Dead(), types(r.State()))
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerExitDuringShutdownDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{run: 5 * time.Second, code: 1}
		r := runner(h, s, &structs.Task{ShutdownDelay: time.Hour}, Policy{Attempts: 5, Interval: time.Hour})
		h.Do(r.Start)
		synctest.Wait()
		h.Do(func() { r.Kill(nil, false) })
		time.Sleep(10 * time.Second)
		if !h.dead(r) || r.Failed() || s.stopped != 0 {
			t.Errorf("dead %v, failed %v, %d stops", r.Dead(), r.Failed(), s.stopped)
		}
		h.cancel()
		h.wg.Wait()
	})
}

func TestRunnerRestartOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{}
		r := runner(h, s, &structs.Task{}, Policy{Mode: structs.RestartPolicyModeFail})
		h.Do(r.Start)
		synctest.Wait()
		h.Do(func() {
			if err := r.Restart("asked", false); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		h.Do(func() {
			if !r.Running() || len(s.at) != 2 || r.TaskState().Restarts != 1 {
				t.Errorf("running %v, %d starts, %d restarts", r.Running(), len(s.at), r.TaskState().Restarts)
			}
			r.Kill(nil, true)
		})
		synctest.Wait()
		h.Do(func() {
			if err := r.Restart("asked", false); err == nil {
				t.Error("a dead task was restarted")
			}
		})
		h.cancel()
		h.wg.Wait()
	})
}

// undone: a task that was killed before it ran has not done its work, and says so.
func (h *host) undone(t *testing.T, when string, r *Runner) {
	t.Helper()
	h.Do(func() {
		if state := r.TaskState(); structs.EndedByThemselves(map[string]*structs.TaskState{"t": state}) {
			t.Errorf("%s: it looks as if it had done its work: %+v", when, state.Events)
		}
	})
}

func TestRunnerKillWhileWaitingAndStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newHost(), &script{}
		r := runner(h, s, &structs.Task{}, Policy{})
		h.Do(func() { r.Kill(nil, false) })
		if !h.dead(r) || r.Failed() {
			t.Errorf("waiting: dead %v, failed %v", r.Dead(), r.Failed())
		}
		h.undone(t, "waiting", r)
		r = runner(h, s, &structs.Task{}, Policy{})
		r.c.Prepare = func(ctx context.Context, _ string) (*driver.TaskConfig, error) { <-ctx.Done(); return nil, ctx.Err() }
		h.Do(r.Start)
		synctest.Wait()
		h.Do(func() { r.Kill(nil, false) })
		synctest.Wait()
		if !h.dead(r) || r.Failed() || len(s.at) != 0 {
			t.Errorf("starting: dead %v, failed %v, %d starts", r.Dead(), r.Failed(), len(s.at))
		}
		h.undone(t, "starting", r)
		h.cancel()
		h.wg.Wait()
	})
}

func TestEventsAreBounded(t *testing.T) {
	s := &State{Task: &structs.TaskState{}}
	for i := range 3 * structs.MaxTaskEvents {
		s.addEvent(int64(i), fixedEvents[structs.TaskStarted])
	}
	events := s.taskState().Events
	if n := len(events); n != structs.MaxTaskEvents {
		t.Errorf("%d events kept", n)
	}
	if last := events[len(events)-1].Time; last != 3*structs.MaxTaskEvents-1 {
		t.Errorf("the last is %d", last)
	}
}

// Events that come in another order than their times stand in the order of times.
func TestEventsAreInOrder(t *testing.T) {
	s := &State{Task: &structs.TaskState{}}
	for _, at := range []int64{5, 9, 7, 9, 12, 1} {
		s.addEvent(at, &structs.TaskEvent{Time: at})
	}
	events := s.taskState().Events
	if !slices.IsSortedFunc(events, func(a, b *structs.TaskEvent) int { return int(a.Time - b.Time) }) || events[1].Time != 9 {
		t.Errorf("%+v", events)
	}
}

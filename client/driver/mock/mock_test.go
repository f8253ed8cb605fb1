package mock

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

func start(t *testing.T, config map[string]any) driver.Handle {
	t.Helper()
	h, err := New(nil).Start(t.Context(), &driver.TaskConfig{ID: "a", Name: "web", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestEnds(t *testing.T) {
	f := func(config map[string]any, after time.Duration, want driver.ExitResult, errText string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			r, err := start(t, config).Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != after || !r.FinishedAt.Equal(begin.Add(after)) {
				t.Errorf("%v: ended after %v", config, took)
			}
			if r.ExitCode != want.ExitCode || r.Signal != want.Signal || (r.Err != nil) != (errText != "") || r.Err != nil && r.Err.Error() != errText {
				t.Errorf("%v: %+v", config, r)
			}
		})
	}
	f(nil, 0, driver.ExitResult{}, "")
	f(map[string]any{"run_for": "10s"}, 10*time.Second, driver.ExitResult{}, "")
	f(map[string]any{"run_for": "1h", "exit_code": 3}, time.Hour, driver.ExitResult{ExitCode: 3}, "")
	f(map[string]any{"run_for": "1s", "exit_signal": 9, "exit_err_msg": "broken"}, time.Second, driver.ExitResult{Signal: 9}, "broken")
	f(map[string]any{"start_block_for": "5s", "run_for": "1s"}, 6*time.Second, driver.ExitResult{}, "")
}

func TestStop(t *testing.T) {
	f := func(config map[string]any, timeout, after time.Duration, signal, code int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := start(t, config)
			time.Sleep(time.Second)
			begin := time.Now()
			if err := h.Stop(t.Context(), timeout, "SIGTERM"); err != nil {
				t.Fatal(err)
			}
			r, err := h.Wait(t.Context())
			if err != nil || time.Since(begin) != after || r.Signal != signal || r.ExitCode != code {
				t.Errorf("%v: %v after %v, %+v", config, err, time.Since(begin), r)
			}
			if err := h.Stop(t.Context(), timeout, ""); err != nil {
				t.Error(err)
			}
			if err := h.Signal(t.Context(), "HUP"); !errors.Is(err, driver.ErrTaskNotRunning) {
				t.Error(err)
			}
		})
	}
	f(map[string]any{"run_for": "1h"}, 5*time.Second, 0, 0, 0)
	f(map[string]any{"run_for": "1h", "kill_after": "3s", "exit_code": 2}, 5*time.Second, 3*time.Second, 0, 2)
	f(map[string]any{"run_for": "1h", "kill_after": "30s"}, 5*time.Second, 5*time.Second, 9, 0)
	f(map[string]any{"run_for": "3s", "kill_after": "30s", "exit_code": 4}, 50*time.Second, 2*time.Second, 0, 4)
}

func TestStopGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, map[string]any{"run_for": "1h", "kill_after": "10s"})
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Stop(ctx, time.Minute, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); err != nil || time.Since(begin) != 10*time.Second {
			t.Fatal(err, time.Since(begin))
		}
	})
}

func TestStartErrors(t *testing.T) {
	f := func(config map[string]any, want string, recoverable bool) {
		t.Helper()
		_, err := New(nil).Start(t.Context(), &driver.TaskConfig{Config: config})
		if err == nil || !strings.Contains(err.Error(), want) || driver.IsRecoverable(err) != recoverable {
			t.Errorf("%v: %v", config, err)
		}
	}
	f(map[string]any{"start_error": "no luck"}, "no luck", false)
	f(map[string]any{"start_error": "no luck", "start_error_recoverable": true}, "no luck", true)
	f(map[string]any{"run_for": "soon"}, "run_for: must be a duration", false)
	f(map[string]any{"exit_signal": 65}, "exit_signal: must be 0 to 64", false)
	f(map[string]any{"stdout_repeat": 2}, "needs stdout_repeat_duration", false)
	f(map[string]any{"stderr_repeat": -2}, "must not be negative", false)
	f(map[string]any{"runfor": "1s"}, `"runfor" is not a field`, false)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := New(nil).Start(ctx, &driver.TaskConfig{Config: map[string]any{"start_block_for": "1h"}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	if err := New(nil).Validate(map[string]any{"plugin_exit_after": "1s", "exec_command": []any{map[string]any{"run_for": "1s"}}}); err != nil {
		t.Error(err)
	}
}

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, map[string]any{"run_for": "1h", "signal_error": "deaf"})
		if err := h.Signal(t.Context(), "HUP"); err == nil || err.Error() != "deaf" {
			t.Error(err)
		}
		if err := h.Signal(t.Context(), "NOPE"); err == nil || err.Error() == "deaf" {
			t.Error(err)
		}
		if err := h.Stop(t.Context(), 0, ""); err != nil {
			t.Error(err)
		}
	})
}

// A task ends at its moment, whatever lives of the agent lie in between.
func TestRecover(t *testing.T) {
	f := func(away, after time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			data := start(t, map[string]any{"run_for": "10s", "exit_code": 5}).State()
			time.Sleep(away)
			h, err := New(nil).Recover(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			r, err := h.Wait(t.Context())
			if err != nil || r.ExitCode != 5 || time.Since(back) != after || !r.FinishedAt.Equal(begin.Add(10*time.Second)) {
				t.Errorf("away %v: %v, %+v after %v", away, err, r, time.Since(back))
			}
		})
	}
	f(3*time.Second, 7*time.Second)
	f(time.Hour, 0)
	for _, bad := range []string{"", "{}", `{"Version":2,"ID":"a","Plan":{}}`} {
		if _, err := New(nil).Recover(t.Context(), []byte(bad)); !errors.Is(err, driver.ErrTaskNotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := New(nil).Start(t.Context(), &driver.TaskConfig{ID: "a", Name: "web", LogDir: dir, Config: map[string]any{
			"run_for": "10s", "stdout_string": "hi\n", "stdout_repeat": 3, "stdout_repeat_duration": "2s",
			"stderr_string": "oh\n", "stderr_repeat": 100, "stderr_repeat_duration": "4s",
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
	})
	for file, want := range map[string]string{"web.stdout.0": "hi\nhi\nhi\nhi\n", "web.stderr.0": "oh\noh\noh\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", file, got, err)
		}
	}
}

// Tens of thousands of tasks cost no goroutine each, and tell of their end.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50_000
		before := runtime.NumGoroutine()
		var ended atomic.Int64
		for range n {
			h := start(t, map[string]any{"run_for": "10s"})
			cancel := h.(driver.Notifier).OnExit(func(r driver.ExitResult) {
				if r.Successful() {
					ended.Add(1)
				}
			})
			_ = cancel
		}
		if now := runtime.NumGoroutine(); now > before+10 {
			t.Errorf("%d goroutines, %d before", now, before)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if ended.Load() != n {
			t.Errorf("%d of %d told of their end", ended.Load(), n)
		}
	})
}

func TestOnExitTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, map[string]any{"run_for": "10s"}).(driver.Notifier)
		cancel := h.OnExit(func(driver.ExitResult) { t.Error("called though taken back") })
		cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		late := make(chan driver.ExitResult, 1)
		h.OnExit(func(r driver.ExitResult) { late <- r })
		if r := <-late; r.FinishedAt.IsZero() {
			t.Error("no result")
		}
	})
}

func FuzzRecover(f *testing.F) {
	f.Add([]byte(`{"Version":1,"ID":"a","StartedAt":"2024-01-01T00:00:00Z","Plan":{"Stdout":{"Text":"x","Repeat":1}}}`))
	dir, _ := json.Marshal(f.TempDir())
	f.Add([]byte(`{"Version":1,"ID":"a","Plan":{"Stdout":{"Text":"x","Repeat":1}},"Logs":{"Task":"a","Dir":` + string(dir) + `}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := New(stoppedClock{}).Recover(t.Context(), data)
		if err == nil && h.State() == nil {
			t.Fatal("no state")
		}
	})
}

// stoppedClock is a clock on which nothing ever happens.
type stoppedClock struct{}

func (stoppedClock) Now() time.Time                              { return time.Unix(0, 0) }
func (stoppedClock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

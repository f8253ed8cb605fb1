package mock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/driver"
)

// A suspended task goes on where it was, once or often suspended, in one life of the agent
// or over several.
func TestSuspend(t *testing.T) {
	f := func(name string, again func(t *testing.T, h driver.Handle) driver.Handle) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			h := start(t, map[string]any{"run_for": "10s", "exit_code": 3})
			for range 2 {
				time.Sleep(3 * time.Second)
				for range 2 { // the second changes nothing
					if err := h.(driver.Suspender).Suspend(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Hour)
				h = again(t, h)
				for range 2 {
					if err := h.(driver.Suspender).Resume(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				h = again(t, h)
			}
			r, err := h.Wait(t.Context())
			if took := time.Since(begin); err != nil || took != 2*time.Hour+10*time.Second || r.ExitCode != 3 {
				t.Errorf("%s: %v, %+v after %v", name, err, r, took)
			}
			p := h.(driver.Suspender)
			if a, b := p.Suspend(t.Context()), p.Resume(t.Context()); !errors.Is(a, driver.ErrTaskNotRunning) || !errors.Is(b, driver.ErrTaskNotRunning) {
				t.Errorf("%s: after its end: %v, %v", name, a, b)
			}
		})
	}
	f("one life", func(_ *testing.T, h driver.Handle) driver.Handle { return h })
	f("many lives", func(t *testing.T, h driver.Handle) driver.Handle {
		next, err := New(nil).Recover(t.Context(), h.State())
		if err != nil {
			t.Fatal(err)
		}
		return next
	})
}

func TestStopOfSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, map[string]any{"run_for": "1h", "kill_after": "3s", "exit_code": 2})
		if err := h.(driver.Suspender).Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begin := time.Now()
		if err := h.Stop(t.Context(), time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		if r, err := h.Wait(t.Context()); err != nil || r.ExitCode != 2 || time.Since(begin) != 3*time.Second {
			t.Errorf("%v, %+v after %v", err, r, time.Since(begin))
		}
	})
}

func TestSuspendedTaskPrintsNothing(t *testing.T) {
	dir := t.TempDir()
	reported := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "web.stdout.0"))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	synctest.Test(t, func(t *testing.T) {
		h, err := New(nil).Start(t.Context(), &driver.TaskConfig{ID: "a", Name: "web", LogDir: dir, Config: map[string]any{
			"run_for": "1h", "stdout_string": "x", "stdout_repeat": 5, "stdout_repeat_duration": "2s",
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := h.(driver.Suspender)
		time.Sleep(5 * time.Second)
		if err := p.Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := reported(); got != "xxx" {
			t.Errorf("while suspended: %q", got)
		}
		if err := p.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if got := reported(); got != "xxxx" {
			t.Errorf("a second after: %q", got)
		}
		time.Sleep(time.Minute)
		if got := reported(); got != "xxxxxx" {
			t.Errorf("at the end: %q", got)
		}
		if err := h.Stop(t.Context(), 0, ""); err != nil {
			t.Fatal(err)
		}
	})
}

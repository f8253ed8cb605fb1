package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestEnd: an agent that does not end is ended, and says what it was at; a second signal ends it at once.
func TestEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hangs  bool
		fails  error
		signal os.Signal
		code   int
		within time.Duration
		says   string
	}{
		"it ends":            {},
		"it ends with error": {fails: errors.New("disk gone"), code: 1, says: "did not end cleanly: disk gone"},
		"it hangs":           {hangs: true, code: 1, within: time.Minute, says: "waitsForGodot"},
		"a second signal":    {hangs: true, signal: syscall.SIGTERM, code: 1, says: "Second signal"},
		"a reload":           {hangs: true, signal: syscall.SIGHUP, code: 1, within: time.Minute, says: "waitsForGodot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals, godot := make(chan os.Signal, 1), make(chan struct{})
				defer close(godot)
				if c.signal != nil {
					signals <- c.signal
				}
				var stderr strings.Builder
				began := time.Now()
				code := end(t.Context(), func(context.Context) error {
					if c.hangs {
						waitsForGodot(godot)
					}
					return c.fails
				}, 0, signals, &stderr)
				if took := time.Since(began); code != c.code || took > c.within || !strings.Contains(stderr.String(), c.says) {
					t.Errorf("exit code %d after %v: %s", code, took, stderr.String())
				}
			})
		})
	}
}

func waitsForGodot(godot <-chan struct{}) { <-godot }

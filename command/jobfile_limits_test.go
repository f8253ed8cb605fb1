package command

import (
	"context"
	"strings"
	"testing"
	"time"
)

// What reads a job file without end is given up when it has taken too much, or when the user gives it up.
func TestReadingAJobFileHasAnEnd(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for want, c := range map[string]struct {
		ctx  context.Context // of one row
		most costs
	}{
		"MiB of memory":          {t.Context(), costs{1, time.Hour}},
		"CPU time":               {t.Context(), costs{parseCosts.memory, -1}},
		context.Canceled.Error(): {stopped, parseCosts},
	} {
		release, done := make(chan struct{}), make(chan struct{})
		_, err := within(c.ctx, c.most, func() int { defer close(done); <-release; return 1 })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have %v, want %q", err, want)
		}
		close(release)
		<-done
	}
	if n, err := within(t.Context(), parseCosts, func() int { return 7 }); n != 7 || err != nil {
		t.Errorf("work that ends: %d, %v", n, err)
	}
	if used := memoryInUse(); used < 1<<20 || used > parseCosts.memory {
		t.Errorf("%d bytes in use", used)
	}
}

package command

import (
	"context"
	"strings"
	"testing"
)

// What reads a job file without end is given up when it has too much memory, or when the user is.
func TestReadingAJobFileHasAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		limit uint64
		stop  bool
		want  string
	}{
		"memory":      {limit: 1, want: "MiB of memory"},
		"interrupted": {limit: maxParseMemory, stop: true, want: context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			release, done := make(chan struct{}), make(chan struct{})
			if c.stop {
				cancel()
			}
			_, err := withinMemory(ctx, c.limit, func() int { defer close(done); <-release; return 1 })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %v, want %q", err, c.want)
			}
			close(release)
			<-done
		})
	}
	if n, err := withinMemory(t.Context(), maxParseMemory, func() int { return 7 }); n != 7 || err != nil {
		t.Errorf("work that ends: %d, %v", n, err)
	}
	if used := memoryInUse(); used < 1<<20 || used > maxParseMemory {
		t.Errorf("%d bytes in use", used)
	}
}

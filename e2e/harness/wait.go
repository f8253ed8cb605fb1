package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Within tries f until it succeeds, for as long as Scaled allows of the stated limit. That is the product's own guarantee where there is
// one, and else what the thing takes, with some room, where nothing else runs.
func Within(t testing.TB, stated time.Duration, what string, f func(ctx context.Context) error) {
	t.Helper()
	limit := Scaled(stated)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // it serves cleaning up as well
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		now := f(ctx)
		if now == nil {
			return
		}
		if err == nil || ctx.Err() == nil { // a call that only our own limit broke off means nothing
			err = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s, which is %s times %v for a slow machine: %v", what, limit, stated, Slowness(), err)
		}
	}
}

// slow is how many times slower than stated the machine may be on which tests run: other tests run beside each, and the machine of
// the checks has two processors. Nothing but Scaled looks at it, so that a limit means the same in all tests, and -slow=1 shows on
// a machine at rest whether the stated limits are true.
var slow = flag.Float64("slow", 4, "how many times longer than stated a test waits, as the machine may be slow or busy (doubled under the race detector)")

// raceCost is by how much the race detector, with which the agent is built too then, makes everything slower.
const raceCost = 2

// Slowness is what stated limits are multiplied by.
func Slowness() float64 {
	if Raced {
		return *slow * raceCost
	}
	return *slow
}

// Scaled returns how long to wait for what takes d at most on a machine that does nothing else, without the race detector.
func Scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * Slowness()) }

// LostWithin is the product's guaranteed time until a client that is dead is known to be, and its work runs elsewhere (docs/guides/clients.md):
// it is missed after 6 s by its heartbeats alone, and after 5 s where it gossips; the rest is for placing and starting the work.
// A client that gossip alone hears is disconnected by then too.
const LostWithin = 10 * time.Second

// WaitFileLines waits until a file has so many lines, and returns the last one.
func WaitFileLines(t *testing.T, path string, n int) (last string) {
	t.Helper()
	Within(t, 30*time.Second, fmt.Sprintf("%d lines in %s", n, path), func(context.Context) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(all) != n {
			return fmt.Errorf("%q", all)
		}
		last = all[n-1]
		return nil
	})
	return last
}

package wire

import (
	"strings"
	"testing"
	"time"
)

func TestLogLimiter(t *testing.T) {
	var o LogLimiter
	now := time.Now()
	f := func(key string, after time.Duration, want bool) {
		t.Helper()
		if o.Allow(key, now.Add(after)) != want {
			t.Errorf("%s after %s: not %v", key, after, want)
		}
	}
	f("a", 0, true)
	f("a", time.Minute, false)
	f("b", time.Minute, true)
	f("a", logInterval, true)
	for i := range maxLogged {
		o.Allow(strings.Repeat("x", i+1), now)
	}
	f("new", 2*time.Minute, false)
	if !o.AllowOf("another kind", "new", now) || o.AllowOf("another kind", "new", now) {
		t.Error("of another kind, it is not told, or twice")
	}
	f("new", 2*logInterval, true)
	if len(o.logged[""]) > maxLogged {
		t.Errorf("%d are remembered", len(o.logged[""]))
	}
}

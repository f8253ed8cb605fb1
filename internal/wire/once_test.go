package wire

import (
	"strings"
	"testing"
	"time"
)

func TestOnce(t *testing.T) {
	var o Once
	now := time.Now()
	f := func(key string, after time.Duration, want bool) {
		t.Helper()
		if o.First(key, now.Add(after)) != want {
			t.Errorf("%s after %s: not %v", key, after, want)
		}
	}
	f("a", 0, true)
	f("a", time.Minute, false)
	f("b", time.Minute, true)
	f("a", onceAgain, true)
	for i := range onceMax {
		o.First(strings.Repeat("x", i+1), now)
	}
	f("new", 2*time.Minute, false)
	if !o.FirstOf("another kind", "new", now) || o.FirstOf("another kind", "new", now) {
		t.Error("of another kind, it is not told, or twice")
	}
	f("new", 2*onceAgain, true)
	if len(o.said[""]) > onceMax {
		t.Errorf("%d are remembered", len(o.said[""]))
	}
}

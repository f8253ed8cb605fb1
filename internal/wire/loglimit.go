package wire

import (
	"maps"
	"sync"
	"time"
)

const (
	logInterval = time.Hour // after which a thing is logged again
	maxLogged   = 4096      // things of a kind remembered
)

// LogLimiter reports which of many like messages are the first of their kind within an hour, so that
// a log shows each peer's fault once, not once a connection. The zero value is ready; it
// is safe for use by many goroutines.
type LogLimiter struct {
	mu     sync.Mutex
	logged map[string]map[string]time.Time
}

// Allow is AllowOf for callers with one kind of messages.
func (o *LogLimiter) Allow(key string, now time.Time) bool { return o.AllowOf("", key, now) }

// AllowOf reports whether key was not logged within the last hour. When very many keys of a kind are remembered, new ones count as
// logged. Where a sender chooses the keys, the kind is its own: others are logged nevertheless.
func (o *LogLimiter) AllowOf(kind, key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	logged := o.logged[kind]
	if at, ok := logged[key]; ok && now.Sub(at) < logInterval {
		return false
	}
	if len(logged) >= maxLogged {
		maps.DeleteFunc(logged, func(_ string, at time.Time) bool { return now.Sub(at) >= logInterval })
		if len(logged) >= maxLogged {
			return false
		}
	}
	if o.logged == nil {
		o.logged = map[string]map[string]time.Time{}
	}
	if logged == nil {
		logged = map[string]time.Time{}
		o.logged[kind] = logged
	}
	logged[key] = now
	return true
}

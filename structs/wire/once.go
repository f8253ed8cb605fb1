package wire

import (
	"sync"
	"time"
)

const (
	onceAgain = time.Hour // after which a thing is said again
	onceMax   = 4096      // things remembered
)

// Once tells which of many like messages are the first of their kind within an hour, so that
// a log shows each peer's fault once, not once a connection. The zero value is ready; it
// is safe for use by many goroutines.
type Once struct {
	mu   sync.Mutex
	said map[string]time.Time
}

// First tells whether key was not said within the last hour. When very many keys are
// remembered, new ones count as said.
func (o *Once) First(key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, ok := o.said[key]; ok && now.Sub(at) < onceAgain {
		return false
	}
	if len(o.said) >= onceMax {
		for k, at := range o.said {
			if now.Sub(at) >= onceAgain {
				delete(o.said, k)
			}
		}
		if len(o.said) >= onceMax {
			return false
		}
	}
	if o.said == nil {
		o.said = map[string]time.Time{}
	}
	o.said[key] = now
	return true
}

package wire

import (
	"maps"
	"sync"
	"time"
)

const (
	onceAgain = time.Hour // after which a thing is logged again
	onceMax   = 4096      // things of a kind remembered
)

// Once reports which of many like messages are the first of their kind within an hour, so that
// a log shows each peer's fault once, not once a connection. The zero value is ready; it
// is safe for use by many goroutines.
type Once struct {
	mu   sync.Mutex
	said map[string]map[string]time.Time
}

// First is FirstOf for callers with one kind of messages.
func (o *Once) First(key string, now time.Time) bool { return o.FirstOf("", key, now) }

// FirstOf reports whether key was not logged within the last hour. When very many keys of a kind are remembered, new ones count as
// logged. Where a sender chooses the keys, the kind is its own: others are logged nevertheless.
func (o *Once) FirstOf(kind, key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	said := o.said[kind]
	if at, ok := said[key]; ok && now.Sub(at) < onceAgain {
		return false
	}
	if len(said) >= onceMax {
		maps.DeleteFunc(said, func(_ string, at time.Time) bool { return now.Sub(at) >= onceAgain })
		if len(said) >= onceMax {
			return false
		}
	}
	if o.said == nil {
		o.said = map[string]map[string]time.Time{}
	}
	if said == nil {
		said = map[string]time.Time{}
		o.said[kind] = said
	}
	said[key] = now
	return true
}

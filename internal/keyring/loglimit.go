package keyring

import (
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
)

// linesPerMinute bounds the warnings and errors of one pool's libraries that are logged in a minute. Whoever can send packets causes
// them, with any address as their source.
const linesPerMinute = 5

// LogLimiter decides which warnings and errors of a pool's libraries are logged: each kind once an hour from each address, and a few a minute of
// all. The zero value is ready; it is safe for use by many goroutines.
type LogLimiter struct {
	// AllowOf reports whether a warning is the first of its kind for a while; nil: by a memory of its own.
	AllowOf func(kind, key string, now time.Time) bool

	limiter wire.LogLimiter
	mu      sync.Mutex
	since   time.Time // when the minute began
	lines   int       // that were logged in it
	dropped int       // that were not, since the last that was
}

// Allow reports whether a warning is to be logged, and returns how many were not because there were too many, since the last that was.
// One that there is no room for does not count as logged: it is when it comes again.
func (n *LogLimiter) Allow(kind, key string, now time.Time) (dropped int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.since) >= time.Minute {
		n.since, n.lines = now, 0
	}
	if n.lines >= linesPerMinute {
		n.dropped++
		return 0, false
	}
	first := n.AllowOf
	if first == nil {
		first = n.limiter.AllowOf
	}
	if !first(kind, key, now) {
		return 0, false
	}
	n.lines++
	dropped, n.dropped = n.dropped, 0
	return dropped, true
}

// Full reports whether nothing more is logged in this minute, and counts a line that is not. It costs less than finding out what the
// line is about.
func (n *LogLimiter) Full(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.since) >= time.Minute || n.lines < linesPerMinute {
		return false
	}
	n.dropped++
	return true
}

// passing is what differs between lines with the same content: ports, numbers, durations.
var passing = compiled(`:\d+|\d+(\.\d+)?(ms|µs|s)\b|\(\d+\)`)

// unsourced is what is logged about a packet without its source, and with its content.
var unsourced = compiled(`invalid checksum|rror decoding|unknown type|ailed to decode|parse address|ailed to compile|unrecognized filter`)

// KindOf returns what lines have in common with the same content about the same machine. Of one that came from an address, that and its first
// words: the rest may be the sender's.
func KindOf(line string) string {
	line = passing().ReplaceAllString(line, "")
	if at := fromAddress().FindStringIndex(line); at != nil {
		from := line[at[0]:at[1]]
		return line[:min(len(line), 30)] + " from " + from[:min(len(from), 60)]
	}
	if unsourced().MatchString(line) {
		return line[:min(len(line), 40)]
	}
	return line[:min(len(line), 200)]
}

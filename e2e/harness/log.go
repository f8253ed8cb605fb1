package harness

import (
	"bytes"
	"strings"
	"sync"
)

// LogBuffer keeps an agent's output for when a test fails.
type LogBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the log, and drops its older half when it is long.
func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 8<<20 {
		l.b.Next(l.b.Len() / 2)
	}
	return l.b.Write(p)
}

// Tail returns the last n lines.
func (l *LogBuffer) Tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(l.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// LogCount returns how often an agent's log has a text.
func (a *Agent) LogCount(text string) int {
	a.Log.mu.Lock()
	defer a.Log.mu.Unlock()
	return bytes.Count(a.Log.b.Bytes(), []byte(text))
}

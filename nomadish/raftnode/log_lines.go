package raftnode

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// raftLog is what Raft logs with. Raft logs several times a second that a server does not answer, and calls errors what
// belongs to handing over, restoring and the like.
type raftLog struct {
	hclog.Logger
	repeats *repeats
}

func newRaftLog(to hclog.Logger) hclog.Logger {
	return raftLog{to, &repeats{every: time.Minute, now: time.Now, logged: map[string]*repeat{}}}
}

// Warn implements hclog.Logger.
func (l raftLog) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error implements hclog.Logger.
func (l raftLog) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// Log implements hclog.Logger. What repeats is logged once, then once a minute with how often it came.
func (l raftLog) Log(level hclog.Level, msg string, args ...any) {
	if level >= hclog.Warn && ordinary(msg, args) {
		level = hclog.Debug
	}
	if level >= hclog.Warn {
		again, allow := l.repeats.allow(msg, args)
		if !allow {
			return
		}
		if again > 0 {
			args = append(append([]any{}, args...), "repeated", again)
		}
	}
	l.Logger.Log(level, msg, args...)
}

// With implements hclog.Logger.
func (l raftLog) With(args ...any) hclog.Logger { return raftLog{l.Logger.With(args...), l.repeats} }

// Named implements hclog.Logger.
func (l raftLog) Named(name string) hclog.Logger { return raftLog{l.Logger.Named(name), l.repeats} }

// ResetNamed implements hclog.Logger.
func (l raftLog) ResetNamed(name string) hclog.Logger {
	return raftLog{l.Logger.ResetNamed(name), l.repeats}
}

// ordinary reports whether what Raft logs as an error, or warns of, is nothing of the kind.
func ordinary(msg string, args []any) bool {
	var err error
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "error" {
			err, _ = args[i+1].(error)
		}
	}
	switch msg {
	case "peer has newer term, stopping replication": // it handed over, or lost an election
		return true
	case "no known peers, aborting election": // nobody has bootstrapped the cluster yet: the bootstrapper logs it, and why
		return true
	case "failed to get log", // a follower that gets a snapshot instead: the log begins later, after a restore
		"failed to get previous log": // a follower that has less than a new leader thought
		return errors.Is(err, raft.ErrLogNotFound)
	case "failed to take snapshot":
		return errors.Is(err, raft.ErrNothingNewToSnapshot)
	case "failed to decode incoming command", "failed to flush response": // the other server has ended the connection
		return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	}
	return false
}

// repeats remembers what was logged.
type repeats struct {
	every time.Duration
	now   func() time.Time

	mu     sync.Mutex
	logged map[string]*repeat
}

type repeat struct {
	at    time.Time // when it was logged last
	again int       // how often it was not, since
}

// maxRepeats bounds what is remembered.
const maxRepeats = 1000

// about are the arguments that distinguish one thing from another; times, terms and the words of an error do not.
var about = map[string]bool{"peer": true, "server-id": true, "target": true, "id": true, "name": true, "from": true, "candidate": true, "last-leader-id": true}

// allow reports whether a line is to be logged now, and how often it was left out since it was logged last.
func (r *repeats) allow(msg string, args []any) (again int, ok bool) {
	var key strings.Builder
	key.WriteString(msg)
	for i := 0; i+1 < len(args); i += 2 {
		if name, ok := args[i].(string); ok && about[name] {
			fmt.Fprintf(&key, "\x00%v", args[i+1])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if last := r.logged[key.String()]; last != nil {
		if now.Sub(last.at) < r.every {
			last.again++
			return 0, false
		}
		again = last.again
	}
	if len(r.logged) >= maxRepeats {
		maps.DeleteFunc(r.logged, func(_ string, last *repeat) bool { return now.Sub(last.at) >= r.every })
	}
	if len(r.logged) >= maxRepeats {
		clear(r.logged)
	}
	r.logged[key.String()] = &repeat{at: now}
	return again, true
}

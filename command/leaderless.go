package command

import (
	"context"
	"flag"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
)

// leaderPatience is how long an answer is waited for before the command checks whether there is
// a leader at all: servers wait longer for one than people like to look at nothing.
const leaderPatience = 2 * time.Second

// leaderWatch prints, to a user who waits for an answer, that there is no leader to answer.
type leaderWatch struct {
	after  time.Duration
	leader func(context.Context) (string, error)
	notify func() // at most once

	mu       sync.Mutex
	notified bool
	stop     func() // ends the watch over the request that was sent last, and waits for that end
}

// watchLeader returns a context whose requests are watched until end is called.
func (e *env) watchLeader(ctx context.Context, after time.Duration) (watched context.Context, end func()) {
	w := &leaderWatch{
		after: after, leader: e.client.Status().Leader, stop: func() {},
		notify: func() { e.eprintf("waiting for a leader …\n") },
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { w.sent(ctx) },
		GotFirstResponseByte: w.answered, // before anybody sees the answer: nothing is printed after it
	}), w.answered
}

func (w *leaderWatch) sent(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	within, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	w.stop = func() { cancel(); <-done }
	notified := w.notified
	go func() {
		defer close(done)
		select {
		case <-within.Done():
			return
		case <-time.After(w.after):
		}
		if _, err := w.leader(within); api.IsNoLeader(err) && !notified {
			w.notify()
			w.notified = true // seen by the next one, which waits for done
		}
	}()
}

func (w *leaderWatch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

// staleHint is what to add to an error of a command for want of a leader that could do without: it has -stale.
func staleHint(fs *flag.FlagSet) string {
	if fs.Lookup("stale") == nil || stale(fs) {
		return ""
	}
	return "\nWith -stale the server at -address answers by itself, without a leader; the answer may be out of date."
}

// unfounded reports whether the server that was called belongs to no cluster yet, as its error states: it knows nothing, however old.
func unfounded(err error) bool {
	return strings.Contains(err.Error(), "not bootstrapped yet") || strings.Contains(err.Error(), "belongs to no cluster yet")
}

// stale reports whether a command was given -stale.
func stale(fs *flag.FlagSet) bool {
	f := fs.Lookup("stale")
	return f != nil && f.Value.String() == "true"
}

// staleFrom is from when on a server that has not heard its leader is reported to show what may be old. Heartbeats come every
// half second at most.
const staleFrom = 2 * time.Second

// staleness is how old the last answer may be that a server returned by itself.
type staleness struct {
	mu   sync.Mutex
	last *api.Meta // nil: there was none
}

func (s *staleness) see(m api.Meta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &m
}

// warn prints, beside the answer, that it may be old. A server that hears its leader has what is shown from just now.
func (s *staleness) warn(e *env) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last == nil:
	case s.last.LastContact > staleFrom:
		e.eprintf("The server has had no contact with a leader for %s: this output may be that old.\n", ui.Short(s.last.LastContact))
	case !s.last.KnownLeader && s.last.LastContact == 0:
		e.eprintf("The server knows no leader, and does not know since when: this output may be out of date.\n")
	case !s.last.KnownLeader:
		e.eprintf("The server knows no leader at present.\n")
	}
}

package wire

import (
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// To open and close a stream takes three packets and a dozen of yamux's allocations on each side, more than most calls cost
// besides. So a caller that expects exactly one answer requests with its header that the stream is kept (header.Keep), and a callee that
// does so states it with the answer (status.Kept): then both wait for the next call on it. A version that does not know of this
// neither requests nor keeps.
//
// Only the caller closes a stream that is kept, and soon: in the callee it takes up a call's place and the memory of one.
const (
	keptFor = 2 * time.Second
	maxKept = 256 // streams of a session that wait for their next call
)

// kept are a session's streams that wait for their next call.
type kept struct {
	mu    sync.Mutex
	idle  []idleStream // by the time they began to be idle
	sweep *time.Timer  // nil: nothing is swept
}

type idleStream struct {
	conn  *yamux.Stream
	since time.Time
}

// openStream returns a stream for a call: one that was kept, or a fresh one.
func (s *Session) openStream() (*yamux.Stream, error) {
	if conn := s.kept.take(); conn != nil {
		return conn, nil
	}
	conn, err := s.mux.OpenStream()
	if err != nil {
		return nil, err
	}
	s.open.add(conn)
	return conn, nil
}

// closeStream ends a stream, and with it the call that may go on there.
func (s *Session) closeStream(conn *yamux.Stream) {
	_ = conn.Close() // it cannot fail
	s.open.remove(conn)
}

// keep has a stream wait for the next call.
func (s *Session) keep(conn *yamux.Stream) {
	conn.Shrink() // the next answer may be long in coming, and needs no room for what was read
	if !s.kept.put(conn, time.Now(), s.sweep) {
		s.closeStream(conn)
	}
}

// sweep closes the streams that have waited for long.
func (s *Session) sweep() {
	for _, conn := range s.kept.old(time.Now()) {
		s.closeStream(conn)
	}
}

// take returns the stream that has waited for the shortest time, so that the others become superfluous; nil: there is none.
func (k *kept) take() *yamux.Stream {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.idle) - 1
	if last < 0 {
		return nil
	}
	conn := k.idle[last].conn
	k.idle[last] = idleStream{}
	k.idle = k.idle[:last]
	return conn
}

// put takes a stream; false: there are enough. Sweep is called when one has waited for long.
func (k *kept) put(conn *yamux.Stream, now time.Time, sweep func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) >= maxKept {
		return false
	}
	k.idle = append(k.idle, idleStream{conn, now})
	if k.sweep == nil {
		k.sweep = time.AfterFunc(keptFor, sweep)
	}
	return true
}

// old takes out what has waited for long, and sees to it that the rest is looked at again.
func (k *kept) old(now time.Time) (out []*yamux.Stream) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(out) < len(k.idle) && now.Sub(k.idle[len(out)].since) >= keptFor {
		out = append(out, k.idle[len(out)].conn)
	}
	k.idle = append(make([]idleStream, 0, len(k.idle)-len(out)), k.idle[len(out):]...)
	if len(k.idle) == 0 {
		k.sweep = nil
	} else {
		k.sweep.Reset(keptFor - now.Sub(k.idle[0].since))
	}
	return out
}

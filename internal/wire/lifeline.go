package wire

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// lifeline is the connection under a session. Before the session ends because of it, all reads of its streams are called off.
//
// yamux ends the streams of a session one by one, and until its turn comes, who reads one goes round there without waiting. Of
// thousands of waiting calls all did, and left no processor to the one that was to end them, for minutes.
//
// It also writes at once what belongs together. yamux writes the opening of a stream, the header of its first frame and the
// frame's body each by itself, which costs the system three times as much, and three records where there is TLS.
type lifeline struct {
	net.Conn
	open    *streams
	suspect *atomic.Bool // see Session

	// Of the next two yamux's one writer has the use.
	buffered []byte // headers that something follows in a moment
	body     bool   // a header was written whose body comes next
}

// Read implements net.Conn.
func (l *lifeline) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 && l.suspect.Load() && b[0] == 0 { // the version that each of yamux's frames begins with
		l.suspect.Store(false)
	}
	if err != nil {
		l.open.callOff()
	}
	return n, err
}

// Write implements net.Conn.
func (l *lifeline) Write(b []byte) (int, error) {
	buffer := false
	if l.body {
		l.body = false
	} else {
		buffer, l.body = goesOn(b)
	}
	if buffer && len(l.buffered) < maxBuffered {
		l.buffered = append(l.buffered, b...)
		return len(b), nil
	}
	if err := l.send(b); err != nil {
		l.open.callOff()
		return 0, err
	}
	return len(b), nil
}

// yamux's header of a frame, as its specification has it: version, type, flags (2 bytes), stream (4), length (4).
const (
	headerSize  = 12
	typeData    = 0
	typeWindow  = 1
	flagOpens   = 1
	maxBuffered = 4 * headerSize
	maxJoined   = 4096
	flagsAt     = 3 // the lower half
	lengthAt    = 8
)

// goesOn reports whether b is a header that something follows: that of a frame with a body, or what opens a stream, in which
// calls state at once what they want.
func goesOn(b []byte) (goes, body bool) {
	if len(b) != headerSize || b[0] != 0 {
		return false, false
	}
	body = b[1] == typeData && binary.BigEndian.Uint32(b[lengthAt:]) > 0
	return body || b[1] == typeWindow && b[flagsAt]&flagOpens != 0, body
}

var joined = sync.Pool{New: func() any { return new([maxBuffered + maxJoined]byte) }}

// send writes what is buffered, and b.
func (l *lifeline) send(b []byte) error {
	buffered := l.buffered
	l.buffered = l.buffered[:0]
	switch {
	case len(buffered) == 0:
	case len(b) > maxJoined: // another write is less than a copy
		if _, err := l.Conn.Write(buffered); err != nil {
			return err
		}
	default:
		buf := joined.Get().(*[maxBuffered + maxJoined]byte) // nothing else is put there
		defer joined.Put(buf)
		b = buf[:copy(buf[:], buffered)+copy(buf[len(buffered):], b)]
	}
	_, err := l.Conn.Write(b)
	return err
}

// Close ends the session and all its calls.
func (s *Session) Close() error {
	s.suspect.Store(false) // it is not the other side that ends it
	return s.end()
}

func (s *Session) end() error {
	s.open.callOff()
	return s.mux.Close()
}

// keepAlive ends the session when the other side does not answer any more. yamux would do that itself, but without calling
// reads off.
func (s *Session) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := s.mux.Ping(); err != nil {
				_ = s.end() // it is lost
				return
			}
		case <-s.mux.CloseChan():
			return
		}
	}
}

// streams are those of a session that somebody reads.
type streams struct {
	mu    sync.Mutex
	all   map[*yamux.Stream]struct{}
	ended bool
}

func (s *streams) add(one *yamux.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		callOff(one)
		return
	}
	if s.all == nil {
		s.all = map[*yamux.Stream]struct{}{}
	}
	s.all[one] = struct{}{}
}

func (s *streams) remove(one *yamux.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, one)
}

func (s *streams) callOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for one := range s.all { // order does not matter
		callOff(one)
	}
	s.all = nil
}

// callOff has whoever reads a stream return at once.
func callOff(one *yamux.Stream) {
	_ = one.SetReadDeadline(time.Unix(1, 0)) // it cannot fail
}

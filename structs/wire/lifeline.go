package wire

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// lifeline is the connection under a session. Before the session ends because of it, all reads of its streams are called off.
//
// yamux ends the streams of a session one by one, and until its turn comes, who reads one goes round there without waiting. Of
// thousands of waiting calls all did, and left no processor to the one that was to end them, for minutes.
type lifeline struct {
	net.Conn
	open *streams
}

// Read implements net.Conn.
func (l lifeline) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil {
		l.open.callOff()
	}
	return n, err
}

// Write implements net.Conn.
func (l lifeline) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	if err != nil {
		l.open.callOff()
	}
	return n, err
}

// Close ends the session and all its calls.
func (s *Session) Close() error {
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
				_ = s.Close() // it is lost
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

package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// TestReadsAreCalledOff: when the connection under a session is closed, whoever reads one of its streams returns at once, before
// yamux comes to that stream: here it never does, as the session stands. Later calls end as well, and nothing is kept.
func TestReadsAreCalledOff(t *testing.T) {
	s, err := Dial(t.Context(), "", serve(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it has served
	const calls = 3 // the server takes four at once
	var waiting sync.WaitGroup
	for range calls {
		st, err := s.Stream(t.Context(), "wait", &echo{})
		if err != nil {
			t.Fatal(err)
		}
		waiting.Go(func() {
			defer st.Close()
			if err := st.Recv(&echo{}); !errors.Is(err, ErrSessionClosed) {
				t.Errorf("a call whose connection was closed: %v", err)
			}
		})
	}
	s.open.mu.Lock()
	if n := len(s.open.all); n != calls {
		t.Errorf("%d streams are known, want %d", n, calls)
	}
	s.open.mu.Unlock()
	s.open.callOff()
	waiting.Wait()
	if err := s.Call(t.Context(), "wait", &echo{}, &echo{}); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("a call after that: %v", err)
	}
	if s.open.all != nil {
		t.Errorf("kept: %v", s.open.all)
	}
}

// TestSessionsEndCallsReadsOff: however a session ends, its reads are called off; on the side that calls and on that which serves.
func TestSessionsEndCallsReadsOff(t *testing.T) {
	s, err := Dial(t.Context(), "", serve(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Stream(t.Context(), "wait", &echo{})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	if !s.open.ended {
		t.Error("the session has ended, and its reads are not called off")
	}
}

// TestSessionOfASilentPeerEnds: a session ends, and its calls with it, when the other side does not answer any more though the
// connection stands.
func TestSessionOfASilentPeerEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing to do about it
	s, err := Dial(t.Context(), "", l.Addr().String(), Config{KeepAlive: 10 * time.Millisecond, WriteTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Call(ctx, "wait", &echo{}, &echo{}); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("a call to who does not answer: %v", err)
	}
	select {
	case <-s.Done():
	case <-ctx.Done():
		t.Error("the session stands")
		_ = s.Close() // for the others
	}
}

package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
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

// writes keeps what is written, write by write.
type writes struct {
	net.Conn
	mu  sync.Mutex
	all [][]byte
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.all = append(w.all, bytes.Clone(b))
	w.mu.Unlock()
	if w.Conn == nil {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

// TestWrittenTogether: what opens a stream, a frame's header and its body are one write, in their order; a body is never waited
// after, even if it looks like a header; a large one is not copied.
func TestWrittenTogether(t *testing.T) {
	opens := []byte{0, 1, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0}
	accepts := []byte{0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0}
	data := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, 0, 3}, n) }
	large := bytes.Repeat([]byte("x"), maxJoined+1)
	f := func(in [][]byte, want ...[]byte) {
		t.Helper()
		w := &writes{}
		l := &lifeline{Conn: w, open: &streams{}, suspect: &atomic.Bool{}}
		for _, b := range in {
			if n, err := l.Write(b); n != len(b) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if !reflect.DeepEqual(w.all, want) {
			t.Errorf("%q\nis written as %q\nnot as     %q", in, w.all, want)
		}
	}
	f([][]byte{opens, data(2), []byte("ab")}, append(append(bytes.Clone(opens), data(2)...), "ab"...))
	f([][]byte{accepts}, accepts)
	f([][]byte{data(0)}, data(0))
	f([][]byte{data(12), opens, data(12), data(12)}, append(data(12), opens...), append(data(12), data(12)...))
	f([][]byte{data(uint32(len(large))), large}, data(uint32(len(large))), large)
	f([][]byte{opens, opens, opens, opens, opens}, bytes.Repeat(opens, 5)) // no more is buffered than that
	f([][]byte{opens, opens, opens, opens, data(12), opens},
		append(bytes.Repeat(opens, 4), data(12)...), opens)
}

// TestWritesOfACall: a call is one write of who makes it; the first on a stream takes what opens that with it.
func TestWritesOfACall(t *testing.T) {
	var c Config
	conn, err := c.TLS.Dial(t.Context(), "", serve(t), ProtoRPC)
	if err != nil {
		t.Fatal(err)
	}
	w := &writes{Conn: conn}
	s, err := Client(w, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it has served
	const calls = 20
	for range calls {
		if err := s.Call(t.Context(), "echo", &echo{"once"}, &echo{}); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.all); n > calls+1 {
		t.Errorf("%d calls were %d writes", calls, n)
	}
}

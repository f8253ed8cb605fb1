package wire

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// callTimeout is how long a stream may take to state what is called: from its beginning, and where it was kept from the last answer.
const callTimeout = 30 * time.Second

// Serve answers the other side's calls until the session or ctx ends, then waits
// for its handlers. It closes the session.
func (m *Mux) Serve(ctx context.Context, s *Session) {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	defer s.Close() //nolint:errcheck // nothing to do about it
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	slots := make(chan struct{}, m.maxCalls)
	for {
		conn, err := s.mux.AcceptStream()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			refuse := statusOf(structs.Errorf(structs.CodeLimited, "over %d calls on one connection", m.maxCalls))
			_ = codec.WriteFrame(conn, refuse)
			_ = conn.Close()
			continue
		}
		calls.Go(func() {
			defer func() { <-slots }()
			m.serveStream(ctx, s, conn)
		})
	}
}

// request is a call as it was read.
type request struct {
	head, args []byte
	refusal    error // why it is not carried out; nil: it is
}

// serveStream answers the calls that come on a stream, one after the other, while another goroutine reads: what ends the
// stream ends the call that is at work.
func (m *Mux) serveStream(ctx context.Context, s *Session, conn *yamux.Stream) {
	ctx, cancel := context.WithCancel(ctx)
	next, deadline := make(chan request), &callDeadline{conn: conn, limit: m.callTimeout}
	go func() { // ends when the caller closes its side, or we close ours
		defer close(next)
		m.readCalls(ctx, s, deadline, next)
		cancel()
	}()
	for r := range next {
		if !m.answer(ctx, s, conn, r) {
			break
		}
		deadline.answered()
	}
	cancel()
	_ = conn.Close()
	callOff(conn)
	for range next { // until nothing reads any more
	}
	s.open.remove(conn)
}

// callDeadline bounds how long a caller may be silent on a stream: while a call is at work for as long as it likes, else not.
type callDeadline struct {
	conn  *yamux.Stream
	limit time.Duration // to state what is called
	mu    sync.Mutex
	open  int // calls that are read, and not answered
}

// awaitCall lets the caller state what is called, within a time.
func (t *callDeadline) awaitCall() { _ = t.conn.SetReadDeadline(time.Now().Add(t.limit)) }

// read notes that a call was read.
func (t *callDeadline) read() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	_ = t.conn.SetReadDeadline(time.Time{})
}

// answered notes that one was answered. Who is fast may have called once more by then.
func (t *callDeadline) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 {
		t.awaitCall()
	}
}

// readCalls reads what is called, until nothing more comes or ctx ends.
func (m *Mux) readCalls(ctx context.Context, s *Session, deadline *callDeadline, next chan<- request) {
	conn := deadline.conn
	deadline.awaitCall()
	for first := true; ; first = false {
		head, err := codec.ReadRaw(conn, 64<<10)
		if err != nil {
			return
		}
		args, refusal, err := m.readArgs(conn, methodIn(head))
		if err != nil {
			return
		}
		s.heard()
		deadline.read()
		if first {
			s.open.add(conn)
		}
		conn.Shrink() // a call may wait for long, and needs no room for what was read
		select {
		case next <- request{head, args, refusal}:
		case <-ctx.Done():
			return
		}
	}
}

// answer answers a call; false: the stream is not kept for another.
func (m *Mux) answer(ctx context.Context, s *Session, conn *yamux.Stream, r request) bool {
	var h header
	if codec.Decode(r.head, &h) != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := &Call{Method: h.Method, Via: h.Via, Session: s, conn: conn, args: r.args, limit: m.maxFrame, keep: h.Keep}
	err := r.refusal
	if _, bounded := m.bounds[h.Method]; bounded && err == nil && string(methodIn(r.head)) != h.Method {
		return false // its argument was not bounded as its method's is: no caller of ours writes such a header
	}
	if err == nil {
		err = m.dispatch(ctx, call)
	}
	switch {
	case err == nil:
		return call.keep && call.sent
	case call.keep && call.sent: // a second answer would be taken for that of the next call
		return false
	}
	st := statusOf(err)
	st.Kept = call.keep
	return codec.WriteFrame(conn, st) == nil && call.keep
}

// dispatch runs the handler; its panic becomes an error and a log line, not the
// end of the process.
func (m *Mux) dispatch(ctx context.Context, call *Call) (err error) {
	h, ok := m.handlers[call.Method]
	if !ok {
		return structs.Errorf(structs.CodeUnsupported, "RPC method %q: not known here", call.Method)
	}
	if err := m.refuse(call); err != nil {
		return err
	}
	if m.observe != nil {
		begun := time.Now()
		defer func() { m.observe(call.Method, begun, err) }()
	}
	defer func() {
		if r := recover(); r != nil {
			m.logger.Error("a call panicked", "method", call.Method, "panic", r, "stack", string(debug.Stack()))
			err = structs.Errorf(structs.CodeInternal, "%s: internal fault, see the server's log", call.Method)
		}
	}()
	return h(ctx, call)
}

// refuse returns an error for a call that the caller's certificate may not make, by the table of methods. Who
// calls in the same process is trusted: the HTTP API has looked at its callers by the same table.
func (m *Mux) refuse(call *Call) error {
	if call.Session == nil {
		return nil
	}
	err := call.Session.peer.May(call.Method, call.Via)
	if err != nil && m.refusals.Allow(call.Method+" "+call.Session.peer.String(), time.Now()) {
		m.logger.Warn("refused a call that the caller's certificate is not for; more of this kind are not logged for an hour",
			"method", call.Method, "from", call.Session.addr, "certificate", call.Session.peer)
	}
	return err
}

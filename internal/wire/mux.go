package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// Handler answers one call. The context ends when the caller goes away or the
// session closes. An error that it returns is the answer.
type Handler func(ctx context.Context, call *Call) error

// Mux passes calls to the handlers of their methods. Handlers are registered before
// it serves, never after.
type Mux struct {
	handlers    map[string]Handler
	bounds      map[string]bound // of methods' arguments
	logger      hclog.Logger
	maxFrame    int
	maxCalls    int
	callTimeout time.Duration
	refusals    LogLimiter // that were logged
	observe     func(method string, begun time.Time, err error)
}

// NewMux makes an empty Mux. MaxCalls bounds the calls at work on one session, and the
// streams that wait for their next call (0: 65536).
func NewMux(logger hclog.Logger, maxCalls int) *Mux {
	if maxCalls <= 0 {
		maxCalls = 65536
	}
	return &Mux{handlers: map[string]Handler{}, bounds: map[string]bound{}, logger: logger, maxFrame: codec.MaxFrame, maxCalls: maxCalls, callTimeout: callTimeout}
}

// Handle sets a method's handler.
func (m *Mux) Handle(method string, h Handler) { m.handlers[method] = h }

// Observe sets the function that is called for each call that has ended, when it began and how it ended. It is set before the Mux serves, and
// must be quick.
func (m *Mux) Observe(f func(method string, begun time.Time, err error)) { m.observe = f }

// Methods returns the names of the methods that have handlers, in order.
func (m *Mux) Methods() []string { return slices.Sorted(maps.Keys(m.handlers)) }

// Handler is a method's handler, for callers in the same process.
func (m *Mux) Handler(method string) (Handler, bool) { h, ok := m.handlers[method]; return h, ok }

// Unary makes a handler of a function from argument to answer.
func Unary[A, R any](f func(ctx context.Context, args *A) (*R, error)) Handler {
	return func(ctx context.Context, call *Call) error {
		args := new(A)
		if err := call.Args(args); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		reply, err := f(ctx, args)
		if err != nil {
			return err
		}
		return call.Send(reply)
	}
}

// Streaming makes a handler of a function that sends any number of answers.
func Streaming[A any](f func(ctx context.Context, args *A, send func(any) error) error) Handler {
	return func(ctx context.Context, call *Call) error {
		args := new(A)
		if err := call.Args(args); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
		}
		call.keep = false // whoever calls it: there may be many answers
		if err := f(ctx, args, call.Send); err != nil {
			return err
		}
		return call.end()
	}
}

// Call is the callee's side of a call.
type Call struct {
	Method  string
	Session *Session // where it came from; nil for a call in the same process
	Via     Via      // why another server passed it on; empty: it comes from the caller
	conn    io.ReadWriter
	args    []byte
	given   any               // the argument of a call in the same process that was given away; nil: args has it
	hand    func(v any) error // hands an answer over that is given away; nil: it is encoded
	limit   int
	keep    bool     // the caller expects one answer, and keeps the stream then
	single  bool     // the caller, in the same process, expects one answer: the callee sends nothing after it
	sent    bool     // an answer was sent, or part of one
	relayed bool     // something was passed back
	routing *Routing // nil: not read yet
}

// Answered reports whether something has come back of a call that was passed on.
func (c *Call) Answered() bool { return c.relayed }

// Args reads the argument into v.
func (c *Call) Args(v any) error {
	if c.given != nil && assign(v, c.given) {
		return nil
	}
	raw, err := c.RawArgs()
	if err != nil {
		return err
	}
	return codec.Decode(raw, v)
}

// Given is the argument if it was given away in the same process; nil: it was not.
func (c *Call) Given() any { return c.given }

// Routing is the part of every argument that states who may answer.
type Routing struct {
	Region     string
	AllowStale bool
}

// Routing reads that part of the argument: once, however many need it on its way to the handler.
func (c *Call) Routing() (Routing, error) {
	if from, ok := c.given.(interface{ Routing() (string, bool) }); ok && c.routing == nil {
		region, stale := from.Routing()
		c.routing = &Routing{region, stale}
	}
	if c.routing == nil {
		var r Routing
		if err := c.Args(&r); err != nil {
			return r, structs.Errorf(structs.CodeBadRequest, "%s: %w", c.Method, err)
		}
		c.routing = &r
	}
	return *c.routing, nil
}

// Size returns how many bytes the argument has that came over a session.
func (c *Call) Size() int { return len(c.args) }

// RawArgs is the argument as it came, to be passed on.
func (c *Call) RawArgs() ([]byte, error) {
	if c.args == nil && c.given != nil {
		return codec.Encode(c.given)
	}
	return c.args, nil
}

// Send sends one answer.
func (c *Call) Send(v any) error {
	if g, ok := v.(codec.Given); ok && c.hand != nil {
		return c.hand(g.V)
	}
	e, err := codec.EncodeFrames(c.well(), v)
	if err == nil {
		c.sent = true
		return e.Write(c.conn)
	}
	if errors.Is(err, codec.ErrFrameTooLarge) {
		return structs.Errorf(structs.CodeTooLarge, "the answer to %s is too large: %w", c.Method, err).
			WithHint("request it page by page (per_page and next_token), or less of it by a prefix or a filter")
	}
	return err
}

// well is the frame of the status that comes before an answer.
func (c *Call) well() []byte {
	if c.keep {
		return keptFrame
	}
	return wellFrame
}

// Relay passes the call on over another session and copies the answers back as
// they come, whole ones only. An error that the other side returns instead of its
// first answer, and that mine takes, is returned; all else is passed on unread.
func (c *Call) Relay(ctx context.Context, to *Session, via Via, mine func(*structs.Error) bool) error {
	head, err := frameOf(header{Method: c.Method, Via: via, Keep: c.keep})
	if err != nil {
		return err
	}
	raw, err := c.RawArgs() // before the stream is opened: see lifeline
	if err != nil {
		return err
	}
	conn, err := to.openStream()
	if err != nil {
		return fmt.Errorf("pass on %s to %s: %w", c.Method, to.addr, to.gone(err))
	}
	free := false
	stop := context.AfterFunc(ctx, func() { _ = conn.Close(); _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if stop() && free {
			to.keep(conn)
		} else {
			to.closeStream(conn)
		}
	}()
	if err := codec.WriteRaw(conn, head, raw); err != nil {
		return fmt.Errorf("pass on %s to %s: %w", c.Method, to.addr, to.gone(err))
	}
	for first := true; ; first = false {
		st, err := readStatus(conn)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case !first && c.single && errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("pass on %s to %s: %w", c.Method, to.addr, to.gone(unended(err)))
		}
		var refusal *structs.Error
		if first && mine != nil && errors.As(st.err(), &refusal) && mine(refusal) {
			free = c.keep && st.Kept
			return refusal
		}
		c.relayed = true
		if st.Code != "" || st.End {
			free, st.Kept, c.sent = c.keep && st.Kept, c.keep, true
			return codec.WriteFrame(c.conn, st)
		}
		body, err := codec.ReadRaw(conn, codec.MaxFrame)
		if err != nil {
			c.relayed = !first
			return fmt.Errorf("pass on %s to %s: %w within an answer: %w", c.Method, to.addr, ErrSessionClosed, err)
		}
		c.sent, free = true, c.keep && st.Kept
		if err := codec.WriteRaw(c.conn, c.well(), body); err != nil || c.keep { // it was well, see above; and it may be the only one
			return err
		}
	}
}

func (c *Call) end() error { return codec.WriteFrame(c.conn, status{End: true}) }

// Local calls a unary method in the same process, on the caller's goroutine. Argument and answer pass through the
// codec, so that caller and callee never share memory, but for an argument that is [codec.Given] away.
func (m *Mux) Local(ctx context.Context, method string, args, reply any) error {
	var out bytes.Buffer
	call := &Call{Method: method, conn: &out, limit: m.maxFrame, single: true}
	if g, ok := args.(codec.Given); ok {
		call.given = g.V
	} else if raw, err := codec.Encode(args); err == nil {
		call.args = raw
	} else {
		return err
	}
	if err := m.dispatch(ctx, call); err != nil {
		if cause := ctx.Err(); cause != nil { // the callee reports that we gave up
			return cause
		}
		return statusOf(err).err()
	}
	st, err := readStatus(&out)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", method, ErrSessionClosed)
	case err != nil:
		return err
	case st.err() != nil: // passed on from where it was thrown
		return st.err()
	case st.End:
		return fmt.Errorf("%s: %w", method, ErrSessionClosed)
	}
	return codec.ReadFrame(&out, codec.MaxFrame, reply)
}

// Receiver is the caller's side of a stream, local or remote.
type Receiver interface {
	Recv(v any) error // io.EOF at its end
	Close()
}

// LocalStream opens a call in the same process.
func (m *Mux) LocalStream(ctx context.Context, method string, args any) (Receiver, error) {
	raw, err := codec.Encode(args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	st := &localStream{ctx: ctx, cancel: cancel, r: r, done: make(chan struct{}), handed: make(chan any, 1)}
	call := &Call{Method: method, conn: localConn{w}, args: raw, limit: m.maxFrame, hand: func(v any) error {
		select {
		case st.handed <- v:
			return codec.WriteRaw(w, wellFrame, nil) // the place of it among the others
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	go func() { // ends with the handler, whose context Close cancels
		defer close(st.done)
		if err := m.dispatch(ctx, call); err != nil {
			_ = codec.WriteFrame(w, statusOf(err))
		}
		_ = w.Close()
	}()
	st.stop = context.AfterFunc(ctx, func() { _ = r.CloseWithError(ctx.Err()) })
	return st, nil
}

type localConn struct{ io.Writer }

func (localConn) Read([]byte) (int, error) { return 0, io.EOF }

type localStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	stop   func() bool
	r      *io.PipeReader
	done   chan struct{}
	handed chan any // whose frames, which are empty, are on their way
}

func (s *localStream) Recv(v any) error {
	st, err := readStatus(s.r)
	if err != nil {
		return s.lost(err)
	}
	if err := st.err(); err != nil {
		if cause := s.ctx.Err(); cause != nil { // the callee reports that we gave up
			return cause
		}
		return err
	}
	if st.End {
		return io.EOF
	}
	body, err := codec.ReadRaw(s.r, codec.MaxFrame)
	if err != nil {
		return s.lost(err)
	}
	if len(body) == 0 { // no value is encoded as nothing
		return s.take(v)
	}
	return codec.Decode(body, v)
}

// lost is why nothing more comes, though the callee has not ended the stream: for example, who it was passed on to is gone.
func (s *localStream) lost(err error) error {
	if cause := s.ctx.Err(); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrSessionClosed, unended(err))
}

// take reads a value that was handed over.
func (s *localStream) take(v any) error {
	select {
	case given := <-s.handed:
		if assign(v, given) {
			return nil
		}
		return copyTo(v, given)
	default: // a frame that another server sent
		return codec.Decode(nil, v)
	}
}

func (s *localStream) Close() {
	s.cancel()
	_ = s.r.Close()
	<-s.done
}

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/yamux"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// The first byte of a connection: what it carries.
const (
	ProtoRPC  byte = 0x6e
	ProtoRaft byte = 0x72
)

// header opens a call.
type header struct {
	Method string
	Via    Via  `codec:",omitempty"`
	Keep   bool `codec:",omitempty"` // one answer is expected, and the stream may carry another call then: see kept
}

// Via is why a server passed a call on, so that the next one does not pass it on in
// turn.
type Via string

// The reasons.
const (
	ViaLeader    Via = "leader" // to the one that it takes for the leader
	ViaConnected Via = "holder" // to the one that the node is connected to
	ViaRegion    Via = "region" // to one of the requested region
)

// status precedes every answer frame. An empty Code is success; End closes a stream.
type status struct {
	Code structs.Code `codec:",omitempty"`
	Msg  string       `codec:",omitempty"`
	Hint string       `codec:",omitempty"`
	End  bool         `codec:",omitempty"`
	Kept bool         `codec:",omitempty"` // the stream waits for another call, behind this answer
}

// wellFrame is the frame of the status of success, which comes before nearly every answer.
var wellFrame = []byte{0, 0, 0, 1, wellBody}

const wellBody = 0x80 // a map of nothing

// keptFrame is the frame of the status of success that reports that the stream is kept.
var keptFrame = []byte{0, 0, 0, 7, 0x81, 0xa4, 'K', 'e', 'p', 't', 0xc3}

var keptBody = string(keptFrame[4:])

// readStatus reads the status of an answer.
func readStatus(r io.Reader) (status, error) {
	body, err := codec.ReadRaw(r, codec.MaxFrame)
	if err != nil {
		return status{}, err
	}
	return statusIn(body)
}

// statusIn is the status in a frame.
func statusIn(body []byte) (st status, err error) {
	if len(body) == 1 && body[0] == wellBody {
		return st, nil
	}
	if string(body) == keptBody {
		return status{Kept: true}, nil
	}
	return st, codec.Decode(body, &st)
}

// frameOf is a value's frame.
func frameOf(v any) ([]byte, error) {
	body, err := codec.Encode(v)
	if err != nil {
		return nil, err
	}
	return codec.AppendFrame(nil, body)
}

func statusOf(err error) status {
	if err == nil {
		return status{}
	}
	var e *structs.Error
	if errors.As(err, &e) {
		// The whole text, with what wrapped it; the hint apart, to be printed once.
		bare := *e
		bare.Hint = ""
		msg := err.Error()
		if e.Hint != "" && errors.Is(err, e) && msg == e.Error() {
			return status{Code: e.Code, Msg: structs.Clip(bare.Error(), structs.MaxErrorBytes), Hint: structs.Clip(e.Hint, structs.MaxErrorBytes)}
		}
		return status{Code: e.Code, Msg: structs.Clip(msg, structs.MaxErrorBytes)}
	}
	return status{Code: structs.CodeInternal, Msg: structs.Clip(err.Error(), structs.MaxErrorBytes)}
}

func (s status) err() error {
	if s.Code == "" {
		return nil
	}
	return &structs.Error{Code: s.Code, Msg: s.Msg, Hint: s.Hint}
}

// ErrSessionClosed means that the connection under a call is gone: whether the call
// was carried out is not known.
var ErrSessionClosed = errors.New("the connection was closed")

// Session is a connection on which both sides may call. It is safe for use by
// many goroutines.
type Session struct {
	mux  *yamux.Session
	addr string
	peer Peer
	last atomic.Int64 // when the other side was last heard, in nanoseconds of Unix
	open streams
	kept kept
	// suspect: nothing has come yet on a plain connection of ours. If it ends so, that is likely no port for RPC, or one for TLS: who
	// is refused before TLS cannot be sent the reason.
	suspect atomic.Bool
}

// Config tunes sessions. The zero value is good.
type Config struct {
	KeepAlive    time.Duration // 0: 15 s
	WriteTimeout time.Duration // 0: 10 s
	Logger       hclog.Logger  // nil: silent
	TLS          *TLS          // nil: plain connections
}

func (c Config) keepAlive() time.Duration {
	if c.KeepAlive > 0 {
		return c.KeepAlive
	}
	return 15 * time.Second
}

func (c Config) yamux() *yamux.Config {
	y := yamux.DefaultConfig()
	y.EnableKeepAlive = false // see Session.keepAlive
	if c.WriteTimeout > 0 {
		y.ConnectionWriteTimeout = c.WriteTimeout
	}
	y.AcceptBacklog = 4096
	y.StreamOpenTimeout = 30 * time.Second
	y.StreamCloseTimeout = 30 * time.Second
	y.LogOutput = nil
	logger := c.Logger
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	y.Logger = logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
	return y
}

// Client makes a session of a dialled connection; the protocol byte is already sent.
func Client(conn net.Conn, c Config) (*Session, error) {
	s := &Session{addr: conn.RemoteAddr().String()}
	_, proven := conn.(*tls.Conn)
	s.suspect.Store(!proven)
	mux, err := yamux.Client(&lifeline{Conn: conn, open: &s.open, suspect: &s.suspect}, c.yamux())
	if err != nil {
		return nil, fmt.Errorf("open session to %s: %w", conn.RemoteAddr(), err)
	}
	s.mux = mux
	s.heard()
	go s.keepAlive(c.keepAlive()) // ends with the session
	return s, nil
}

// Server makes a session of an accepted connection; the protocol byte is already read. Of
// a *Conn it knows the peer.
func Server(conn net.Conn, c Config) (*Session, error) {
	s := &Session{addr: conn.RemoteAddr().String()}
	mux, err := yamux.Server(&lifeline{Conn: conn, open: &s.open, suspect: &s.suspect}, c.yamux())
	if err != nil {
		return nil, fmt.Errorf("accept session from %s: %w", conn.RemoteAddr(), err)
	}
	s.mux = mux
	s.heard()
	go s.keepAlive(c.keepAlive()) // ends with the session
	if known, ok := conn.(*Conn); ok {
		s.peer = known.Peer
	}
	return s, nil
}

// Dial opens a session for RPC to the server at addr, of a region ("": the own).
func Dial(ctx context.Context, region, addr string, c Config) (*Session, error) {
	conn, err := c.TLS.Dial(ctx, region, addr, ProtoRPC)
	if err != nil {
		return nil, err
	}
	s, err := Client(conn, c)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// Addr is the other side's address.
func (s *Session) Addr() string { return s.addr }

// Heard is when the other side last called, or answered a call.
func (s *Session) Heard() time.Time { return time.Unix(0, s.last.Load()) }

func (s *Session) heard() { s.last.Store(time.Now().UnixNano()) }

// Ping checks whether the other side is there, whatever it does. It waits no longer than ctx.
func (s *Session) Ping(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { // ends with the session's own limit of a write
		_, err := s.mux.Ping()
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("ping %s: %w", s.addr, err)
		}
		s.heard()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Peer is who opened the session, on the side that accepted it.
func (s *Session) Peer() Peer { return s.peer }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Call calls a unary method and waits for its answer. When ctx ends first, the
// stream is closed and the callee's context cancelled. An *structs.Error comes
// back as it was thrown.
func (s *Session) Call(ctx context.Context, method string, args, reply any) error {
	st, err := s.Open(ctx, method, args)
	if err != nil {
		return err
	}
	defer st.Close()
	err = st.Recv(reply)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", method, s.gone(io.ErrUnexpectedEOF))
	}
	return err
}

// Open calls a unary method, whose answer is read with Recv.
func (s *Session) Open(ctx context.Context, method string, args any) (*Stream, error) {
	return s.stream(ctx, header{Method: method, Keep: true}, args)
}

// Stream opens a call whose answers are read one by one with Recv.
func (s *Session) Stream(ctx context.Context, method string, args any) (*Stream, error) {
	return s.stream(ctx, header{Method: method}, args)
}

func (s *Session) stream(ctx context.Context, h header, args any) (*Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	method := h.Method
	conn, err := s.openStream()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, s.gone(err))
	}
	st := &Stream{session: s, conn: conn, method: method, ctx: ctx, requested: h.Keep}
	// AfterFunc, not a goroutine waiting: thousands of blocking queries stay cheap.
	st.stop = context.AfterFunc(ctx, func() { _ = conn.Close(); _ = conn.SetDeadline(time.Unix(1, 0)) })
	if err := codec.WriteFrames(conn, nil, h, args); err != nil {
		st.Close()
		return nil, st.lost(err)
	}
	return st, nil
}

// gone is the error of a call that err ended, and the session.
func (s *Session) gone(err error) error {
	if s.suspect.Load() {
		return fmt.Errorf("%w: %w; nothing has come from %s: is this its RPC port (4647 by default), and does it want TLS (tls { rpc = true })?", ErrSessionClosed, err, s.addr)
	}
	return fmt.Errorf("%w: %w", ErrSessionClosed, err)
}

// Stream is the caller's side of a call that is going on.
type Stream struct {
	session   *Session
	conn      *yamux.Stream
	method    string
	ctx       context.Context
	stop      func() bool
	once      sync.Once
	begun     []byte // the status of the next answer, if it was awaited
	requested bool   // the callee was requested to keep the stream
	free      bool   // the answer was read whole, and the callee waits for another call; only if requested
}

// Await waits until the next answer has begun, which Recv reads then. A goroutine that does nothing else needs little stack:
// whoever calls tens of thousands of methods that answer after minutes has such ones wait.
func (s *Stream) Await() (err error) {
	if s.begun != nil {
		return nil
	}
	if s.begun, err = codec.ReadRaw(s.conn, codec.MaxFrame); err != nil {
		s.begun = nil
		return s.lost(err)
	}
	s.session.heard()
	return nil
}

// Recv reads the next answer into v. io.EOF: the callee has ended the stream well.
func (s *Stream) Recv(v any) error {
	if err := s.Await(); err != nil {
		return err
	}
	st, err := statusIn(s.begun)
	s.begun = nil
	if err != nil {
		return s.lost(err)
	}
	if err := st.err(); err != nil {
		s.release(st)
		if s.ctx.Err() != nil { // the callee reports that we gave up
			return s.lost(err)
		}
		return err
	}
	if st.End {
		return io.EOF
	}
	if err := codec.ReadFrame(s.conn, codec.MaxFrame, v); err != nil {
		return s.lost(err)
	}
	s.release(st)
	return nil
}

// release takes note that the answer was read whole. A stream of many answers may be closed while one is read.
func (s *Stream) release(st status) {
	if s.requested {
		s.free = st.Kept
	}
}

// Send writes another argument frame, on methods that read them.
func (s *Stream) Send(v any) error {
	if err := codec.WriteFrame(s.conn, v); err != nil {
		return s.lost(err)
	}
	return nil
}

// Close ends the call; the callee's context is cancelled.
func (s *Stream) Close() {
	s.once.Do(func() {
		if s.stop() && s.free {
			s.session.keep(s.conn)
		} else {
			s.session.closeStream(s.conn)
		}
	})
}

func (s *Stream) lost(err error) error {
	if cause := s.ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", s.method, cause)
	}
	return fmt.Errorf("%s: %w", s.method, s.session.gone(unended(err)))
}

// unended is why a stream broke off. It is never io.EOF, which means that the callee has ended it.
func unended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

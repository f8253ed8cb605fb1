package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

type echo struct{ Text string }

// serve starts a server with the methods of these tests and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	mux := NewMux(hclog.NewNullLogger(), 4)
	mux.Handle("echo", Unary(func(_ context.Context, a *echo) (*echo, error) { return a, nil }))
	mux.Handle("refuse", Unary(func(context.Context, *echo) (*echo, error) {
		return nil, structs.Errorf(structs.CodeConflict, "job %q: taken", "web").WithHint("use another name")
	}))
	mux.Handle("quote", Unary(func(_ context.Context, a *echo) (*echo, error) {
		return nil, structs.Errorf(structs.CodeBadRequest, "%q is wrong", a.Text).WithHint("not %q", a.Text)
	}))
	mux.Handle("panic", Unary(func(context.Context, *echo) (*echo, error) { panic("on purpose") }))
	mux.Handle("wait", Unary(func(ctx context.Context, _ *echo) (*echo, error) { <-ctx.Done(); return nil, ctx.Err() }))
	mux.Handle("count", Streaming(func(_ context.Context, a *echo, send func(any) error) error {
		for range len(a.Text) {
			if err := send(a); err != nil {
				return err
			}
		}
		return nil
	}))
	mux.Handle("back", func(ctx context.Context, call *Call) error { // calls its caller
		var out echo
		if err := call.Session.Call(ctx, "echo", &echo{"from the server"}, &out); err != nil {
			return err
		}
		return call.Send(&out)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				var proto [1]byte
				if _, err := io.ReadFull(conn, proto[:]); err != nil || proto[0] != ProtoRPC {
					_ = conn.Close()
					return
				}
				s, err := Server(conn, Config{})
				if err != nil {
					t.Error(err)
					return
				}
				mux.Serve(ctx, s)
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

func dial(t *testing.T, addr string) *Session {
	t.Helper()
	s, err := Dial(t.Context(), "", addr, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestCall(t *testing.T) {
	s := dial(t, serve(t))
	var out echo
	if err := s.Call(t.Context(), "echo", &echo{"hello"}, &out); err != nil || out.Text != "hello" {
		t.Fatalf("echo: %q, %v", out.Text, err)
	}
	large := strings.Repeat("x", 3<<20)
	if err := s.Call(t.Context(), "echo", &echo{large}, &out); err != nil || out.Text != large {
		t.Fatalf("a large echo: %d bytes, %v", len(out.Text), err)
	}
}

// TestLongErrors: an error that quotes what was sent to it is cut before it goes back.
func TestLongErrors(t *testing.T) {
	s := dial(t, serve(t))
	err := s.Call(t.Context(), "quote", &echo{strings.Repeat("é", 1<<20)}, &echo{})
	var e *structs.Error
	if !errors.As(err, &e) || e.Code != structs.CodeBadRequest {
		t.Fatalf("%.100v, want a bad request", err)
	}
	for _, text := range []string{e.Msg, e.Hint} {
		if len(text) > structs.MaxErrorBytes || !strings.HasSuffix(text, "é…") {
			t.Errorf("%d bytes, want at most %d that end with …: %.100s", len(text), structs.MaxErrorBytes, text)
		}
	}
}

func TestErrorsSurviveTheWire(t *testing.T) {
	s := dial(t, serve(t))
	err := s.Call(t.Context(), "refuse", &echo{}, &echo{})
	var e *structs.Error
	if !errors.As(err, &e) || e.Code != structs.CodeConflict || e.Hint != "use another name" {
		t.Fatalf("refused with %#v", err)
	}
	if !errors.Is(err, structs.ErrConflict) || errors.Is(err, structs.ErrNotFound) {
		t.Fatal("the sentinel of the code does not match")
	}
	if want := `job "web": taken (use another name)`; err.Error() != want {
		t.Fatalf("it says %q, not %q", err, want)
	}
	if err := s.Call(t.Context(), "nothing", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeUnsupported {
		t.Fatalf("unknown method: %v", err)
	}
	if err := s.Call(t.Context(), "panic", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeInternal {
		t.Fatalf("panicking method: %v", err)
	}
	var out echo
	if err := s.Call(t.Context(), "echo", &echo{"still here"}, &out); err != nil {
		t.Fatalf("after a panic: %v", err)
	}
}

// TestNewerCaller: what only a newer version knows is passed over in a known call, in the arguments as in the answer, and
// an unknown call is refused by itself: the connection goes on.
func TestNewerCaller(t *testing.T) {
	s := dial(t, serve(t))
	type newer struct {
		Text  string
		Added map[string][]int
	}
	out := newer{Added: map[string][]int{"as": {1}}}
	for range 2 {
		if err := s.Call(t.Context(), "echo", &newer{"hello", map[string][]int{"x": {1, 2}}}, &out); err != nil || out.Text != "hello" || len(out.Added) != 1 {
			t.Fatalf("with a field more: %+v, %v", out, err)
		}
		if err := s.Call(t.Context(), "added", &newer{}, &out); structs.CodeOf(err) != structs.CodeUnsupported || !strings.Contains(err.Error(), `"added"`) {
			t.Fatalf("a method that is not known: %v", err)
		}
	}
}

func TestStream(t *testing.T) {
	s := dial(t, serve(t))
	st, err := s.Stream(t.Context(), "count", &echo{"four"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range 4 {
		var out echo
		if err := st.Recv(&out); err != nil || out.Text != "four" {
			t.Fatalf("answer %d: %q, %v", i, out.Text, err)
		}
	}
	if err := st.Recv(&echo{}); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last: %v", err)
	}
}

// An answer can be waited for in one place and read in another; waiting twice is waiting once.
func TestAwait(t *testing.T) {
	s := dial(t, serve(t))
	st, err := s.Stream(t.Context(), "count", &echo{"two"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range 3 {
		var out echo
		if err := errors.Join(st.Await(), st.Await(), st.Recv(&out)); err != nil || out.Text != "two" {
			t.Fatalf("answer %d: %q, %v", i, out.Text, err)
		}
	}
	if err := errors.Join(st.Await(), st.Recv(&echo{})); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if st, err = s.Stream(ctx, "wait", &echo{}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	cancel() // the callee may be faster to say that it was given up than this side to see it
	if err := errors.Join(st.Await(), st.Recv(&echo{})); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled call: %v", err)
	}
}

func TestCancelReachesTheCallee(t *testing.T) {
	s := dial(t, serve(t))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- s.Call(ctx, "wait", &echo{}, &echo{}) }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled call: %v", err)
	}
	// The callee's handler must end too, or the server's shutdown in Cleanup hangs.
}

func TestTooManyCalls(t *testing.T) {
	s := dial(t, serve(t)) // allows four
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 16)
	for range 16 {
		go func() { failed <- s.Call(ctx, "wait", &echo{}, &echo{}) }()
	}
	limited := 0
	for limited < 12 {
		if err := <-failed; !errors.Is(err, structs.ErrLimited) {
			t.Fatalf("a call over the limit: %v", err)
		}
		limited++
	}
	cancel()
	for range 4 {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Fatalf("a call within the limit: %v", err)
		}
	}
}

func TestServerCallsBack(t *testing.T) {
	s := dial(t, serve(t))
	mine := NewMux(hclog.NewNullLogger(), 0)
	mine.Handle("echo", Unary(func(_ context.Context, a *echo) (*echo, error) { return &echo{a.Text + ", answered"}, nil }))
	done := make(chan struct{})
	go func() { mine.Serve(t.Context(), s); close(done) }()
	var out echo
	if err := s.Call(t.Context(), "back", &echo{}, &out); err != nil || out.Text != "from the server, answered" {
		t.Fatalf("called back: %q, %v", out.Text, err)
	}
	_ = s.Close()
	<-done
}

func TestSessionLost(t *testing.T) {
	s := dial(t, serve(t))
	failed := make(chan error, 1)
	st, err := s.Stream(t.Context(), "wait", &echo{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { failed <- st.Recv(&echo{}) }()
	_ = s.Close()
	if err := <-failed; !errors.Is(err, ErrSessionClosed) || strings.Contains(err.Error(), "RPC port") {
		t.Fatalf("a call on a lost session: %v", err)
	}
	st.Close()
}

func TestLocal(t *testing.T) {
	mux := NewMux(hclog.NewNullLogger(), 0)
	mux.Handle("echo", Unary(func(_ context.Context, a *echo) (*echo, error) { return a, nil }))
	mux.Handle("wait", Unary(func(ctx context.Context, _ *echo) (*echo, error) { <-ctx.Done(); return nil, ctx.Err() }))
	var out echo
	if err := mux.Local(t.Context(), "echo", &echo{"near"}, &out); err != nil || out.Text != "near" {
		t.Fatalf("local call: %q, %v", out.Text, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := mux.Local(ctx, "wait", &echo{}, &out); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a local call past its time: %v", err)
	}
}

func TestPoolSharesAndReopens(t *testing.T) {
	addr := serve(t)
	opened := 0
	p := NewPool(Config{}, func(context.Context, *Session) error { opened++; return nil })
	defer p.Close()
	first, err := p.Session(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Session(t.Context(), addr); err != nil || again != first {
		t.Fatalf("the second is not the first: %v", err)
	}
	_ = first.Close()
	var out echo
	if err := p.Call(t.Context(), addr, "echo", &echo{"again"}, &out); err != nil {
		t.Fatalf("after the session was lost: %v", err)
	}
	if opened != 2 {
		t.Fatalf("opened %d sessions, not 2", opened)
	}
	if err := p.Call(t.Context(), "127.0.0.1:1", "echo", &echo{}, &out); err == nil {
		t.Fatal("nobody listens there, and the call succeeded")
	}
}

// A caller that requests more than fits in a frame gets an error that says so, and how to request less.
func TestTooLargeAnAnswer(t *testing.T) {
	mux := NewMux(hclog.NewNullLogger(), 0)
	mux.Handle("Test.Large", func(_ context.Context, call *Call) error {
		return call.Send(&echo{strings.Repeat("x", codec.MaxFrame+1)})
	})
	err := mux.Local(t.Context(), "Test.Large", &echo{}, &echo{})
	var e *structs.Error
	if !errors.As(err, &e) || e.Code != structs.CodeTooLarge || !strings.Contains(e.Hint, "per_page") {
		t.Fatalf("%v, want %s with a hint at pages", err, structs.CodeTooLarge)
	}
}

// FuzzRPCFrame feeds a decoder of every request and entry type whatever bytes come.
func FuzzRPCFrame(f *testing.F) {
	seed := func(v any) {
		var b bytes.Buffer
		if err := codec.WriteFrame(&b, v); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	seed(&header{Method: MethodJobRegister})
	seed(&structs.JobRegisterRequest{Job: &structs.Job{ID: "web"}})
	seed(&structs.PlanRequest{Plan: &structs.Plan{EvalID: "e"}})
	seed(&status{Code: structs.CodeConflict, Msg: "no"})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{
			&header{}, &status{}, &structs.JobRegisterRequest{}, &structs.PlanRequest{}, &structs.NodeRegisterRequest{},
			&structs.ClientUpdateRequest{}, &structs.EvalUpdateRequest{}, &structs.FSRequest{}, &structs.EventStreamRequest{},
		} {
			_ = codec.ReadFrame(bytes.NewReader(data), 1<<20, v) // must neither panic nor hang
		}
	})
}

// TestPoolDoesNotRedialAtOnce: a caller that requests a session shortly after another could not have one gets the same answer; later the
// address is tried again. That somebody gave up is no answer for others.
func TestPoolDoesNotRedialAtOnce(t *testing.T) {
	addr := serve(t)
	p := NewPool(Config{}, nil)
	defer p.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Session(gone, addr); err == nil || len(p.sessions) > 0 {
		t.Fatalf("who gave up got %v; kept: %v", err, p.sessions)
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	_, first := p.Session(t.Context(), closed)
	if first == nil {
		t.Fatal("nobody was reached")
	}
	e := p.sessions[target{addr: closed}]
	p.sessions[target{addr: addr}] = e // that is refused, and somebody is there
	e.until = time.Now().Add(time.Hour)
	if _, err := p.Session(t.Context(), addr); !errors.Is(err, first) {
		t.Fatalf("shortly after: %v, not %v", err, first)
	}
	e.until = time.Now().Add(-time.Hour)
	if _, err := p.Session(t.Context(), addr); err != nil {
		t.Fatalf("later: %v", err)
	}
}

// TestPoolOutlivesTheFirstCaller: a session that is being opened is for all who wait for it: who called first may give up. When all have,
// it is not opened any more.
func TestPoolOutlivesTheFirstCaller(t *testing.T) {
	addr := serve(t)
	opening, let := make(chan context.Context, 1), make(chan struct{})
	p := NewPool(Config{}, func(ctx context.Context, _ *Session) error {
		opening <- ctx
		select {
		case <-let:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	defer p.Close()
	request := func(ctx context.Context) chan error {
		got := make(chan error, 1)
		go func() {
			_, err := p.Session(ctx, addr)
			got <- err
		}()
		return got
	}
	waiting := func(n int) {
		t.Helper()
		for {
			p.mu.Lock()
			now := p.sessions[target{addr: addr}].waiting
			p.mu.Unlock()
			if now == n {
				return
			}
			runtime.Gosched()
		}
	}
	ctx, hangUp := context.WithCancel(t.Context())
	first := request(ctx)
	<-opening
	second := request(t.Context())
	waiting(2)
	hangUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	waiting(1)
	close(let)
	if err := <-second; err != nil {
		t.Errorf("who did not give up got %v", err)
	}

	p.Drop(addr)
	let = make(chan struct{})
	ctx, hangUp = context.WithCancel(t.Context())
	first, second = request(ctx), request(ctx)
	opened := <-opening
	waiting(2)
	hangUp()
	if a, b := <-first, <-second; !errors.Is(a, context.Canceled) || !errors.Is(b, context.Canceled) {
		t.Errorf("who gave up got %v and %v", a, b)
	}
	<-opened.Done()
	if len(p.sessions) > 0 {
		t.Error("nobody waits, and a session is still being opened")
	}
}

// TestPoolClosesWhatOpens: who waits for a session when the pool is closed waits no longer.
func TestPoolClosesWhatOpens(t *testing.T) {
	opening := make(chan struct{})
	p := NewPool(Config{}, func(ctx context.Context, _ *Session) error {
		close(opening)
		<-ctx.Done()
		return ctx.Err()
	})
	got := make(chan error, 1)
	addr := serve(t)
	go func() {
		_, err := p.Session(t.Context(), addr)
		got <- err
	}()
	<-opening
	p.Close()
	if err := <-got; !errors.Is(err, ErrSessionClosed) {
		t.Error(err)
	}
}

// TestPoolDrops: what waits on a session that is dropped ends, and the next call opens another one.
func TestPoolDrops(t *testing.T) {
	addr := serve(t)
	p := NewPool(Config{}, nil)
	defer p.Close()
	p.Drop(addr) // there is none
	for range 20 {
		s, err := p.Session(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Call(t.Context(), "wait", &echo{}, &echo{}) }()
		p.Drop(addr)
		if err := <-ended; !errors.Is(err, ErrSessionClosed) {
			t.Fatalf("a call of before: %v", err)
		}
	}
	if err := p.Call(t.Context(), addr, "echo", &echo{}, &echo{}); err != nil {
		t.Fatal(err)
	}
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/yamux"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// between returns two sessions over one connection: the caller's, and that of the callee that serves with mux.
func between(t *testing.T, mux *Mux) (caller, callee *Session) {
	t.Helper()
	a, b := net.Pipe()
	callee, err := Server(b, Config{})
	if err != nil {
		t.Fatal(err)
	}
	caller, err = Client(a, Config{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { mux.Serve(context.Background(), callee); close(done) }()
	t.Cleanup(func() { _ = caller.Close(); <-done })
	return caller, callee
}

// unwritable is an answer that refuses to be encoded.
type unwritable struct{}

func (*unwritable) MarshalBinary() ([]byte, error) { return nil, errors.New("not to be written") }
func (*unwritable) UnmarshalBinary([]byte) error   { return nil }

func echoMux() *Mux {
	mux := NewMux(hclog.NewNullLogger(), 0)
	mux.Handle("echo", Unary(func(_ context.Context, a *echo) (*echo, error) { return a, nil }))
	mux.Handle("refuse", Unary(func(context.Context, *echo) (*echo, error) { return nil, structs.Errorf(structs.CodeConflict, "taken") }))
	mux.Handle("panic", Unary(func(context.Context, *echo) (*echo, error) { panic("on purpose") }))
	mux.Handle("wait", Unary(func(ctx context.Context, _ *echo) (*echo, error) { <-ctx.Done(); return nil, ctx.Err() }))
	mux.Handle("twice", func(_ context.Context, call *Call) error { // answers, and fails then
		return errors.Join(call.Send(&echo{"first"}), errors.New("second"))
	})
	mux.Handle("count", Streaming(func(_ context.Context, a *echo, send func(any) error) error {
		return errors.Join(send(a), send(a), send(a))
	}))
	mux.Handle("wrong", Unary(func(context.Context, *echo) (*unwritable, error) { return &unwritable{}, nil }))
	mux.Handle("mute", func(context.Context, *Call) error { return nil })
	return mux
}

// until waits for what the other side does in its own time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

// count is how many streams wait. Those that have waited for long are closed meanwhile, also after the session's end: unlocked, that is a race
// with a test that comes later.
func (k *kept) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.idle)
}

func (s *Session) mustEcho(t *testing.T, text string) {
	t.Helper()
	var out echo
	if err := s.Call(t.Context(), "echo", &echo{text}, &out); err != nil || out.Text != text {
		t.Fatalf("echo of %q: %q, %v", text, out.Text, err)
	}
}

// Calls that come one after the other share a stream, errors among them, until it has waited for long.
func TestStreamsAreKept(t *testing.T) {
	caller, callee := between(t, echoMux())
	for i := range 50 {
		caller.mustEcho(t, fmt.Sprint("call ", i))
		if err := caller.Call(t.Context(), "refuse", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeConflict {
			t.Fatalf("refused with %v", err)
		}
		if err := caller.Call(t.Context(), "panic", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeInternal {
			t.Fatalf("panicking method: %v", err)
		}
		if err := caller.Call(t.Context(), "unknown", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeUnsupported {
			t.Fatalf("unknown method: %v", err)
		}
	}
	if n, m := caller.mux.NumStreams(), callee.mux.NumStreams(); n != 1 || m != 1 {
		t.Errorf("%d streams, %d at the callee", n, m)
	}
	for _, conn := range caller.kept.old(time.Now().Add(keptFor)) {
		caller.closeStream(conn)
	}
	until(t, "no stream is left", func() bool { return caller.mux.NumStreams()+callee.mux.NumStreams() == 0 })
	caller.mustEcho(t, "on a fresh one")
}

// What was not answered once and whole leaves no stream behind on which something may still come.
func TestStreamsThatAreNotKept(t *testing.T) {
	caller, _ := between(t, echoMux())
	for i := range 20 {
		caller.mustEcho(t, "first")
		ctx, cancel := context.WithCancel(t.Context())
		st, err := caller.Open(ctx, "wait", &echo{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := st.Recv(&echo{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled call: %v", err)
		}
		st.Close()
		caller.mustEcho(t, fmt.Sprint("after one that was cancelled ", i))

		var out echo
		if err := caller.Call(t.Context(), "twice", &echo{}, &out); err != nil || out.Text != "first" {
			t.Fatalf("answered twice: %q, %v", out.Text, err)
		}
		// The caller cannot know yet that the stream of that one is not kept after all: what it calls there next may be lost, as
		// with a connection that ends, but it never gets another's answer.
		err = caller.Call(t.Context(), "echo", &echo{"third"}, &out)
		if err != nil && !errors.Is(err, ErrSessionClosed) || err == nil && out.Text != "third" {
			t.Fatalf("after an answer too many: %q, %v", out.Text, err)
		}
		if err := caller.Call(t.Context(), "mute", &echo{}, &out); !errors.Is(err, ErrSessionClosed) {
			t.Fatalf("no answer: %v", err)
		}
		if st, err = caller.Open(t.Context(), "echo", &echo{"unread"}); err != nil {
			t.Fatal(err)
		}
		st.Close()
	}
}

// However calls of many goroutines are cancelled, each gets its own answer or none.
func TestKeptStreamsDoNotMix(t *testing.T) {
	caller, callee := between(t, echoMux())
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%3 == 1 {
					go cancel()
				}
				text := fmt.Sprint(g, "/", i)
				var out echo
				err := caller.Call(ctx, "echo", &echo{text}, &out)
				cancel()
				if err == nil && out.Text != text || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("call %s: %q, %v", text, out.Text, err)
				}
			}
		})
	}
	wg.Wait()
	if n := caller.kept.count(); n == 0 || n > maxKept {
		t.Errorf("%d streams are kept", n)
	}
	until(t, "the callee has no more streams than the caller", func() bool { return callee.mux.NumStreams() == caller.kept.count() })
}

// Only so many streams wait, the ones that were used last.
func TestKeptStreamsAreBounded(t *testing.T) {
	var k kept
	var all []*yamux.Stream
	start := time.Now()
	for i := range maxKept + 10 {
		conn := &yamux.Stream{}
		all = append(all, conn)
		if got := k.put(conn, start.Add(time.Duration(i)*time.Millisecond), func() {}); got != (i < maxKept) {
			t.Fatalf("stream %d is kept: %v", i, got)
		}
	}
	defer k.sweep.Stop()
	if k.take() != all[maxKept-1] || k.take() != all[maxKept-2] {
		t.Error("another stream than the last is taken")
	}
	if got := k.old(start.Add(keptFor + 9*time.Millisecond)); !slices.Equal(got, all[:10]) {
		t.Errorf("%d streams have waited for long", len(got))
	}
	if got := k.old(start.Add(time.Hour)); !slices.Equal(got, all[10:maxKept-2]) || k.take() != nil || k.sweep != nil {
		t.Errorf("%d streams were left", len(got))
	}
}

// A callee of an earlier version closes the stream behind its answer, and a caller of one expects that.
func TestEarlierVersionsKeepNoStreams(t *testing.T) {
	a, b := net.Pipe()
	old, err := yamux.Server(b, Config{}.yamux())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := old.AcceptStream()
			if err != nil {
				return
			}
			var h struct{ Method string }
			var args echo
			if err := errors.Join(codec.ReadFrame(conn, 1<<10, &h), codec.ReadFrame(conn, 1<<10, &args), codec.WriteFrames(conn, wellFrame, &args)); err != nil {
				t.Error(err)
			}
			_ = conn.Close()
		}
	}()
	caller, err := Client(a, Config{})
	if err != nil {
		t.Fatal(err)
	}
	relay := NewMux(hclog.NewNullLogger(), 0)
	relay.Handle("echo", func(ctx context.Context, call *Call) error { return call.Relay(ctx, caller, ViaLeader, nil) })
	front, _ := between(t, relay)
	for i := range 10 {
		caller.mustEcho(t, fmt.Sprint("straight ", i))
		front.mustEcho(t, fmt.Sprint("passed on ", i))
	}
	until(t, "no stream is left", func() bool { return caller.mux.NumStreams() == 0 })
	if n := front.mux.NumStreams(); n != 1 {
		t.Errorf("%d streams to the one between", n)
	}
	_ = caller.Close()
	<-served

	s, _ := between(t, echoMux())
	for range 3 {
		conn, err := s.mux.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		var st status
		var out echo
		if err := errors.Join(codec.WriteFrames(conn, nil, struct{ Method string }{"echo"}, &echo{"old"}), codec.ReadFrame(conn, 1<<10, &st), codec.ReadFrame(conn, 1<<10, &out)); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); len(rest) != 0 || err != nil || st != (status{}) || out.Text != "old" {
			t.Errorf("answered %+v, %+v and %q, %v", st, out, rest, err)
		}
		_ = conn.Close()
	}
}

// A call that is passed on keeps both streams, whatever the answer is.
func TestRelayedStreamsAreKept(t *testing.T) {
	back, _ := between(t, echoMux())
	relay := NewMux(hclog.NewNullLogger(), 0)
	for _, method := range []string{"echo", "refuse", "wait"} {
		relay.Handle(method, func(ctx context.Context, call *Call) error {
			return call.Relay(ctx, back, ViaLeader, func(e *structs.Error) bool { return e.Code == structs.CodeConflict })
		})
	}
	front, _ := between(t, relay)
	for i := range 20 {
		front.mustEcho(t, fmt.Sprint("call ", i))
		if err := front.Call(t.Context(), "refuse", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeConflict {
			t.Fatalf("refused with %v", err)
		}
	}
	if n, m := front.mux.NumStreams(), back.mux.NumStreams(); n != 1 || m != 1 {
		t.Errorf("%d streams, %d behind", n, m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := front.Call(ctx, "wait", &echo{}, &echo{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled call: %v", err)
	}
	front.mustEcho(t, "after it")
	until(t, "the cancelled call's streams are gone", func() bool { return front.mux.NumStreams() == 1 && back.mux.NumStreams() <= 1 })
}

// A caller that asks to keep the stream of a method with many answers, by mistake or on purpose, keeps none: neither here nor behind
// who passes it on, where others' calls come next.
func TestStreamsOfManyAnswersAreNotKept(t *testing.T) {
	back, _ := between(t, echoMux())
	relay := NewMux(hclog.NewNullLogger(), 0)
	for _, method := range []string{"echo", "count"} {
		relay.Handle(method, func(ctx context.Context, call *Call) error { return call.Relay(ctx, back, ViaLeader, nil) })
	}
	front, _ := between(t, relay)
	for i := range 10 {
		for _, s := range []*Session{back, front} {
			_ = s.Call(t.Context(), "count", &echo{"one of three"}, &echo{}) // an answer, or that the call was lost
			var out echo
			err := s.Call(t.Context(), "echo", &echo{fmt.Sprint("mine ", i)}, &out)
			if err == nil && out.Text != fmt.Sprint("mine ", i) || err != nil && s == back {
				t.Fatalf("another's answer: %q, %v", out.Text, err)
			}
		}
	}
	// Nor does a callee make a caller keep one that it has not requested.
	callee := echoMux()
	callee.Handle("insists", func(_ context.Context, call *Call) error {
		call.keep = true
		return call.Send(&echo{"kept?"})
	})
	s, _ := between(t, callee)
	st, err := s.Stream(t.Context(), "insists", &echo{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Recv(&echo{}); err != nil {
		t.Fatal(err)
	}
	st.Close()
	if s.kept.count() > 0 {
		t.Error("a stream is kept that nobody asked for")
	}
}

// Whoever has a stream kept must call again within a time, and wholly; what is called may last.
func TestKeptStreamsAreNotRetained(t *testing.T) {
	mux := echoMux()
	mux.callTimeout = time.Second
	s, callee := between(t, mux)
	open := func() *yamux.Stream {
		t.Helper()
		conn, err := s.mux.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		var st status
		var out echo
		err = errors.Join(codec.WriteFrames(conn, nil, header{Method: "echo", Keep: true}, &echo{"kept"}), codec.ReadFrame(conn, 1<<10, &st), codec.ReadFrame(conn, 1<<10, &out))
		if err != nil || !st.Kept {
			t.Fatalf("%+v, %v", st, err)
		}
		return conn
	}
	ended := func(conn *yamux.Stream) {
		t.Helper()
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, yamux.ErrConnectionReset) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		_ = conn.Close()
	}
	busy := open()
	if err := codec.WriteFrames(busy, nil, header{Method: "wait", Keep: true}, &echo{}); err != nil {
		t.Fatal(err)
	}
	silent, slow := open(), open()
	if _, err := slow.Write(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	ended(silent)
	ended(slow)
	ended(open()) // a call that began before them is at work for longer than the time
	until(t, "no stream but that of the call that lasts", func() bool { return callee.mux.NumStreams() == 1 })
	_ = busy.SetReadDeadline(time.Now())
	if n, err := busy.Read(make([]byte, 1)); !errors.Is(err, yamux.ErrTimeout) {
		t.Errorf("the call that lasts is told %d bytes, %v", n, err)
	}
	_ = busy.Close()
	until(t, "no stream is left", func() bool { return callee.mux.NumStreams() == 0 })
}

// An answer that cannot be encoded is returned as an error, and the stream carries the next call.
func TestAnswerThatCannotBeEncoded(t *testing.T) {
	s, _ := between(t, echoMux())
	for range 3 {
		if err := s.Call(t.Context(), "wrong", &echo{}, &echo{}); structs.CodeOf(err) != structs.CodeInternal || !strings.Contains(err.Error(), "not to be written") {
			t.Fatalf("an answer that cannot be encoded: %v", err)
		}
		s.mustEcho(t, "after it")
	}
	if n := s.mux.NumStreams(); n != 1 {
		t.Errorf("%d streams", n)
	}
}

func TestKeptFrame(t *testing.T) {
	want, err := frameOf(status{Kept: true})
	if err != nil || string(want) != string(keptFrame) {
		t.Errorf("%q, not %q, %v", keptFrame, want, err)
	}
}

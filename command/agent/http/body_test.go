package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// pipes is a listener of connections in memory, whose time is that of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { close(l.done); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (l *pipes) dial() net.Conn {
	here, there := net.Pipe()
	l.conns <- there
	return here
}

// inTime runs f with a server in virtual time.
func inTime(t *testing.T, fk *fake, change func(*Config), f func(t *testing.T, l *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(fk)
		cfg.MaxBodyBytes = 16 << 20
		if change != nil {
			change(&cfg)
		}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		f(t, l)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// trickle sends a head, then pieces with a pause before each until the connection ends, and returns what was answered and when
// the connection was closed.
func trickle(conn net.Conn, head, piece string, pause time.Duration) (answer string, after time.Duration) {
	begun, closed := time.Now(), make(chan struct{})
	go func() {
		if _, err := io.WriteString(conn, head); err != nil {
			return
		}
		for {
			select {
			case <-time.After(pause):
			case <-closed:
				return
			}
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	}()
	raw, _ := io.ReadAll(conn) // broken off or not, it is over
	close(closed)
	after = time.Since(begun)
	_ = conn.Close()
	return string(raw), after
}

// TestSlowBody: whatever is asked for, a body that comes a byte at a time has BodyTimeout, 30 s if nothing is said; then the
// connection is closed.
func TestSlowBody(t *testing.T) {
	for _, c := range []struct {
		head string
		code string // of the answer; empty: the answer need not wait for the body
	}{
		{"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", "408"},
		{"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "408"},
		{"POST /v1/jobs HTTP/1.0\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", "408"},
		{"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n", "408"},
		{"PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n", "408"},
		{"PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "408"},
		{"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "408"},
		{"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "408"},
		{"HEAD /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "408"},
		{"GET /v1/event/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", "408"},
		{"OPTIONS /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"PUT /v1/agent/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"DELETE /v1/job/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"PATCH /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", ""},
		{"PUT /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", ""},
	} {
		for limit, change := range map[time.Duration]func(*Config){
			30 * time.Second: nil, 3 * time.Second: func(cfg *Config) { cfg.BodyTimeout = 3 * time.Second },
		} {
			inTime(t, newFake(), change, func(t *testing.T, l *pipes) {
				piece := " "
				if strings.Contains(c.head, "chunked") {
					piece = "1\r\n \r\n"
				}
				answer, after := trickle(l.dial(), c.head, piece, 50*time.Millisecond)
				// What net/http waits before it closes is added.
				if after < limit || after > limit+2*time.Second || !strings.Contains(answer, c.code) || !strings.Contains(answer, "close") {
					t.Errorf("ended after %s, not %s: %.200q: %.60q", after, limit, answer, c.head)
				}
			})
		}
	}
}

// TestSlowHeaders: headers that come a byte at a time have HeaderTimeout, and a connection without a request IdleTimeout.
func TestSlowHeaders(t *testing.T) {
	inTime(t, newFake(), nil, func(t *testing.T, l *pipes) {
		if _, after := trickle(l.dial(), "GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nX: ", "x", 50*time.Millisecond); after < 10*time.Second || after > 12*time.Second {
			t.Errorf("slow headers: ended after %s", after)
		}
		conn := l.dial()
		defer conn.Close() //nolint:errcheck // a test
		if _, err := io.WriteString(conn, "GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if code := readStatus(t, conn); code != 200 {
			t.Fatal(code)
		}
		begun := time.Now()
		_, _ = io.ReadAll(conn)
		if after := time.Since(begun); after < 2*time.Minute || after > 2*time.Minute+2*time.Second {
			t.Errorf("idle: ended after %s", after)
		}
	})
}

// TestSlowArchive: an archive may take an hour, as long as its pieces come.
func TestSlowArchive(t *testing.T) {
	fk := newFake()
	fk.answer[wire.MethodSnapshotUpload] = structs.SnapshotUploadReply{ID: "u"}
	fk.answer[wire.MethodSnapshotRestore] = structs.SnapshotRestoreReply{Info: &structs.SnapshotInfo{Bytes: 3}, WriteMeta: structs.WriteMeta{Index: 9}}
	inTime(t, fk, nil, func(t *testing.T, l *pipes) {
		conn := l.dial()
		defer conn.Close() //nolint:errcheck // a test
		const pieces, each = 5, 29 * time.Second
		begun := time.Now()
		go func() {
			_, _ = fmt.Fprintf(conn, "PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", pieces*uploadChunk)
			for range pieces {
				time.Sleep(each)
				_, _ = conn.Write(make([]byte, uploadChunk))
			}
		}()
		if code := readStatus(t, conn); code != 200 || time.Since(begun) < pieces*each {
			t.Errorf("%d after %s", code, time.Since(begun))
		}
	})
	inTime(t, fk, nil, func(t *testing.T, l *pipes) { // one whose later pieces are too slow
		head := fmt.Sprintf("PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", 5*uploadChunk, strings.Repeat("x", uploadChunk))
		answer, after := trickle(l.dial(), head, "x", time.Second)
		if after < 30*time.Second || after > 32*time.Second || !strings.Contains(answer, "408") {
			t.Errorf("ended after %s: %.200q", after, answer)
		}
	})
}

// TestEndlessArchive: an archive whose pieces come in time, but without end, has 120 times BodyTimeout; what came of it is dropped.
func TestEndlessArchive(t *testing.T) {
	for _, head := range []string{"Content-Length: 1000000000000", "Transfer-Encoding: chunked"} {
		for limit, change := range map[time.Duration]func(*Config){
			time.Hour: nil, 2 * time.Minute: func(cfg *Config) { cfg.BodyTimeout = time.Second },
		} {
			fk := newFake()
			fk.answer[wire.MethodSnapshotUpload] = structs.SnapshotUploadReply{ID: "u"}
			inTime(t, fk, change, func(t *testing.T, l *pipes) {
				piece := strings.Repeat("x", uploadChunk)
				if strings.HasPrefix(head, "Transfer") {
					piece = fmt.Sprintf("%x\r\n%s\r\n", uploadChunk, piece)
				}
				conn := l.dial()
				end := time.AfterFunc(2*limit, func() { _ = conn.Close() }) // of a test that fails
				defer end.Stop()
				answer, after := trickle(conn, "PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n\r\n", piece, limit/130)
				if after < limit || after > limit+2*time.Second || !strings.Contains(answer, "408") || !strings.Contains(answer, "http_body_timeout") {
					t.Errorf("%s: ended after %s, not %s: %.300q", head, after, limit, answer)
				}
			})
			if last, _ := fk.args[wire.MethodSnapshotUpload].(*structs.SnapshotUploadRequest); last == nil || !last.Drop || last.ID != "u" {
				t.Errorf("%s: the last upload: %+v", head, last)
			}
		}
	}
}

// TestLongRestore: what follows an archive that has come may take as long as it needs, also where the archive is of whole pieces.
func TestLongRestore(t *testing.T) {
	for _, bytes := range []int{uploadChunk - 1, uploadChunk, 2 * uploadChunk} {
		fk := newFake()
		fk.answer[wire.MethodSnapshotUpload] = structs.SnapshotUploadReply{ID: "u"}
		inTime(t, fk, func(cfg *Config) { cfg.Backend = &restores{fk, 5 * time.Minute} }, func(t *testing.T, l *pipes) {
			conn := l.dial()
			defer conn.Close() //nolint:errcheck // a test
			go func() {
				_, _ = fmt.Fprintf(conn, "PUT /v1/operator/snapshot HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", bytes, strings.Repeat("x", bytes))
			}()
			if code := readStatus(t, conn); code != 200 {
				t.Errorf("%d bytes: %d", bytes, code)
			}
		})
	}
}

// restores is a Backend whose restores take a while, unless the caller hangs up.
type restores struct {
	Backend
	last time.Duration
}

func (b *restores) Call(ctx context.Context, method string, args, reply any) error {
	if method == wire.MethodSnapshotRestore {
		select {
		case <-time.After(b.last):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.Backend.Call(ctx, method, args, reply)
}

// TestWaitsAfterBody: once its body has been read, a request may wait for its answer for as long as it likes, and its connection
// carries the next one; a caller that hangs up is noticed.
func TestWaitsAfterBody(t *testing.T) {
	for _, c := range []struct{ head, method string }{
		{"GET /v1/nodes?index=7&wait=10m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", wire.MethodNodeList},
		{"GET /v1/nodes?index=7&wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n", wire.MethodNodeList},
		{"PUT /v1/system/gc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", wire.MethodSystemGC},
		{"PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n" + `{"Job":{"ID":"x"}}`, wire.MethodJobRegister},
		{"PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n" + `{"Job":{"ID":"x"}}` + "\r\n0\r\n\r\n", wire.MethodJobRegister},
	} {
		fk := newFake()
		release := make(chan struct{}) // replaced within the bubble
		fk.answer[c.method] = func() { <-release }
		inTime(t, fk, nil, func(t *testing.T, l *pipes) {
			release = make(chan struct{})
			conn := l.dial()
			r := bufio.NewReader(conn)
			for range 2 { // the connection stays
				go func() {
					_, _ = io.WriteString(conn, c.head)
					time.Sleep(5 * time.Minute)
					release <- struct{}{}
				}()
				begun := time.Now()
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("%.60q: %v", c.head, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != 200 || time.Since(begun) < 5*time.Minute {
					t.Errorf("%.60q: %d after %s", c.head, resp.StatusCode, time.Since(begun))
				}
				time.Sleep(time.Minute) // idle, for less than IdleTimeout
			}
			_ = conn.Close()
		})
		if c.method == wire.MethodSystemGC {
			continue // nobody reads its body, without which the caller's end is not seen
		}
		over := make(chan struct{})
		inTime(t, newFake(), func(cfg *Config) {
			over = make(chan struct{})
			cfg.Backend = &blocked{cfg.Backend, over}
		}, func(t *testing.T, l *pipes) {
			conn := l.dial()
			if _, err := io.WriteString(conn, c.head); err != nil {
				t.Fatal(err)
			}
			select {
			case <-over:
				t.Errorf("%.60q: given up while the caller waited", c.head)
			case <-time.After(2 * time.Minute):
			}
			_ = conn.Close()
			<-over
		})
	}
}

// blocked is a Backend whose calls end with their context.
type blocked struct {
	Backend
	over chan struct{} // closed when the first has
}

func (b *blocked) Call(ctx context.Context, _ string, _, _ any) error {
	<-ctx.Done()
	close(b.over)
	return ctx.Err()
}

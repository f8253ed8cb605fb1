package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestMain(m *testing.M) {
	leaks.Main(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// fake is a Backend that answers from a table and remembers what it was asked.
type fake struct {
	mu     sync.Mutex
	calls  []string
	args   map[string]any
	answer map[string]any                                       // by method: a reply to copy, or an error
	block  map[string]bool                                      // methods that wait for their context
	stream func(ctx context.Context, method string) *fakeStream // nil: an empty stream
}

func newFake() *fake {
	return &fake{args: map[string]any{}, answer: map[string]any{}, block: map[string]bool{}}
}

func (f *fake) Call(ctx context.Context, method string, args, out any) error {
	if g, ok := args.(codec.Given); ok {
		args = g.V
	}
	f.mu.Lock()
	f.calls = append(f.calls, method)
	f.args[method] = args
	answer, block := f.answer[method], f.block[method]
	f.mu.Unlock()
	if block {
		<-ctx.Done()
		return ctx.Err()
	}
	switch a := answer.(type) {
	case nil:
	case error:
		return a
	case func():
		a()
	default:
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(a))
	}
	return nil
}

func (f *fake) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
	f.args[method] = args
	if err, ok := f.answer[method].(error); ok {
		return nil, err
	}
	if f.stream == nil {
		return &fakeStream{ctx: ctx}, nil
	}
	return f.stream(ctx, method), nil
}

// fakeStream gives its items, then its error; io.EOF if it has none, and waits
// for its end before that if hold is set.
type fakeStream struct {
	ctx    context.Context
	items  []any
	err    error
	block  bool
	mu     sync.Mutex
	closed chan struct{}
}

func (s *fakeStream) done() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = make(chan struct{})
	}
	return s.closed
}

func (s *fakeStream) Recv(v any) error {
	if len(s.items) > 0 {
		reflect.ValueOf(v).Elem().Set(reflect.ValueOf(s.items[0]))
		s.items = s.items[1:]
		return nil
	}
	if s.block {
		select {
		case <-s.done():
			return errors.New("closed")
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	if s.err != nil {
		return s.err
	}
	return io.EOF
}

func (s *fakeStream) Close() {
	done := s.done()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-done:
	default:
		close(done)
	}
}

// fakeAgent is an Agent.
type fakeAgent struct{ self Self }

func (a *fakeAgent) Self() Self { return a.self }
func (a *fakeAgent) Stats() map[string]map[string]string {
	return map[string]map[string]string{"nomad": {"server": "true"}}
}
func (a *fakeAgent) Servers() []string         { return []string{"127.0.0.1:4647"} }
func (a *fakeAgent) SetServers([]string) error { return nil }
func (a *fakeAgent) Reload() error             { return nil }

func bothAgent() *fakeAgent {
	return &fakeAgent{Self{Name: "a1", Region: "global", Datacenter: "dc1", Version: "0.1", NodeID: "node-1", Server: true, Client: true,
		Config: map[string]any{"Region": "global", "Datacenter": "dc1"}}}
}

func testConfig(f *fake) Config {
	return Config{
		Backend: f, Agent: bothAgent(), MaxBodyBytes: 4096,
		Jitter: func(time.Duration) time.Duration { return time.Second },
		Metrics: func(to io.Writer, pretty bool) error {
			_, err := fmt.Fprintf(to, `{"Timestamp":"now","pretty":%v}`, pretty)
			return err
		},
		Prometheus: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "nomad_up 1\n")
		}),
		ParseJob: func(_ context.Context, source, _ string, _ bool) (*ParsedJob, error) {
			if strings.Contains(source, "wrong") {
				return nil, structs.Errorf(structs.CodeBadRequest, "job.hcl:1: wrong is not allowed here")
			}
			return &ParsedJob{Job: json.RawMessage(`{"ID":"parsed"}`), Warnings: []string{"two\nlines"}}, nil
		},
	}
}

func newTestServer(t *testing.T, cfg Config) *httptest.Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewUnstartedServer(s.Handler())
	ts.Config = s.http
	ts.Start()
	t.Cleanup(func() {
		s.stop()
		ts.Close()
	})
	return ts
}

// reply is the head of an answer.
type reply struct {
	StatusCode int
	Header     http.Header
}

// post makes a request and gives the answer with its whole body.
func post(t *testing.T, ts *httptest.Server, method, path, body string, header ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = resp.Body.Close()
	return reply{resp.StatusCode, resp.Header}, string(raw)
}

package httpapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
	"github.com/klauspost/compress/gzhttp"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Backend answers the servers' RPC methods, in the same process or over the
// network. It must be safe for use by many goroutines; calls end with their
// context.
type Backend interface {
	// Call calls a unary method of package wire; args and reply are pointers to the
	// types of package structs that the method's comment names.
	Call(ctx context.Context, method string, args, reply any) error
	// Stream opens a streaming method. The caller closes the Receiver.
	Stream(ctx context.Context, method string, args any) (wire.Receiver, error)
}

// Agent is what the routes under /v1/agent show of this process and do to it. Its
// methods are called from many goroutines and must not block.
type Agent interface {
	Self() Self
	// Stats are numbers for people, by section.
	Stats() map[string]map[string]string
	// Servers are the RPC addresses of the servers that this agent's client knows.
	Servers() []string
	// SetServers replaces them.
	SetServers(addrs []string) error
	// Reload reads the configuration again.
	Reload() error
}

// Self identifies an agent.
type Self struct {
	Name       string
	Region     string
	Datacenter string
	Version    string
	NodeID     string // of the agent's own client; empty: it has none
	Server     bool
	Client     bool
	// NumSchedulers and EnabledSchedulers are the workers of the agent's own server.
	NumSchedulers     int
	EnabledSchedulers []string
	// Config is the configuration as JSON shows it, without secrets.
	Config map[string]any
}

// ParsedJob is what became of a job file.
type ParsedJob struct {
	Job      json.RawMessage
	Warnings []string
}

// Config is what a Server is made of. Zero limits mean the default that is named.
type Config struct {
	Backend Backend
	Agent   Agent
	// ParseJob reads a job file in HCL with the text of its variables. Nil:
	// parsing is answered with 501. It must return soon after its context ends.
	ParseJob func(ctx context.Context, source, variables string, canonicalize bool) (*ParsedJob, error)
	// Metrics writes the summary of the last interval in JSON, indented if it is to be pretty; nil: 501.
	Metrics func(to io.Writer, pretty bool) error
	// Prometheus serves the metrics in Prometheus' format; nil: 501.
	Prometheus http.Handler
	Logger     hclog.Logger // nil: silent

	// MaxBodyBytes bounds a request's body. Default 16 MiB.
	MaxBodyBytes int64
	// MaxHeaderBytes bounds its headers. Default 64 KiB.
	MaxHeaderBytes int
	// DefaultWait and MaxWait are a blocking query's time. Default 5 and 10 minutes.
	DefaultWait, MaxWait time.Duration
	// Jitter is what is added to a wait, so that many of one kind do not end
	// together. Default: random, up to a sixteenth.
	Jitter func(wait time.Duration) time.Duration
	// HeaderTimeout, BodyTimeout and IdleTimeout bound the reading of a request's
	// headers and body, and an idle connection. Default 10 s, 30 s, 2 min. An archive of
	// the cluster's state has BodyTimeout for each of its pieces of uploadChunk, and maxUploadTimes
	// as long altogether.
	HeaderTimeout, BodyTimeout, IdleTimeout time.Duration
	// HandshakeTimeout bounds a TLS handshake. 0: HeaderTimeout does.
	HandshakeTimeout time.Duration
	// MaxConnsPerClient bounds the connections of one address. 0: no bound.
	MaxConnsPerClient int
	// EventHeartbeat and FrameHeartbeat are how often an idle event stream or
	// followed file shows that it lives. Default 10 s and 1 s.
	EventHeartbeat, FrameHeartbeat time.Duration
	// ResponseHeaders are added to every answer.
	ResponseHeaders map[string]string
	// TLS makes it HTTPS; nil: HTTP.
	TLS *tls.Config
	// Hosts are the agent's own names and addresses. Requests for other hosts are refused, but for
	// localhost, IP addresses and AllowedHosts.
	Hosts []string
	// AllowedHosts are further names; "*.example.com": all below it, "*": all there are.
	AllowedHosts []string
	// CertificateHost reports whether the certificate in use is for a name; nil: there is none.
	CertificateHost func(host string) bool
	// TrustedOrigins are of pages that may change state although they are of other sites.
	TrustedOrigins []string
	// Peer returns who calls, by the certificate; ok is false where no certificate is required. Nil: it never is.
	Peer func(*tls.ConnectionState) (peer wire.Peer, ok bool)
	// Debug adds /debug/pprof.
	Debug bool
	// SetSchedulers changes how many workers the agent's server has, and the types of jobs that they take; nil: 501. It must not
	// wait for them.
	SetSchedulers func(n int, enabled []string) error
}

func (c Config) withDefaults() Config {
	dur := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	dur(&c.DefaultWait, 5*time.Minute)
	dur(&c.MaxWait, 10*time.Minute)
	dur(&c.HeaderTimeout, 10*time.Second)
	dur(&c.BodyTimeout, 30*time.Second)
	dur(&c.IdleTimeout, 2*time.Minute)
	dur(&c.EventHeartbeat, 10*time.Second)
	dur(&c.FrameHeartbeat, time.Second)
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = 16 << 20
	}
	if c.MaxHeaderBytes <= 0 {
		c.MaxHeaderBytes = 64 << 10
	}
	if c.Jitter == nil {
		c.Jitter = func(wait time.Duration) time.Duration {
			return rand.N(wait/16 + 1) // spreads load, guards nothing
		}
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// Server serves the HTTP API. Make it with New, start it with Serve.
type Server struct {
	cfg    Config
	routes *router
	guard  *guard
	http   *http.Server
	// refusals are those of certificates that were logged.
	refusals wire.LogLimiter
	// stop ends the requests at work, so that blocking queries and streams do
	// not hold up a shutdown.
	stop context.CancelFunc
	// decodes, if it is there, observes into what bodies are decoded: tests make the description of the API of it.
	decodes func(r *request, v any)
}

// New makes a server; nothing runs before Serve.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg.withDefaults()}
	var err error
	if s.routes, err = newRouter(s.table()); err != nil {
		return nil, err
	}
	if s.guard, err = newGuard(&s.cfg); err != nil {
		return nil, err
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1024))
	if err != nil {
		return nil, err
	}
	base, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.http = &http.Server{
		Handler:           s.handler(compress),
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		ErrorLog:          log.New(&faults{logger: s.cfg.Logger}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	return s, nil
}

// Handler is the whole API as one handler.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Serve answers requests from l until Shutdown; it then returns nil. It may be
// called for many listeners, each on a goroutine of its own.
func (s *Server) Serve(l net.Listener) error {
	if s.cfg.MaxConnsPerClient > 0 {
		l = limitConns(l, s.cfg.MaxConnsPerClient, s.cfg.Logger)
	}
	if s.cfg.TLS != nil {
		l = limitHandshakes(l, s.cfg.TLS, s.cfg.HandshakeTimeout)
	}
	if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown refuses new requests, ends those that wait, and returns when all
// have been answered, or closes what is left when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

// handler finds the route of a request and runs it, compressed unless it streams.
func (s *Server) handler(compress func(http.Handler) http.HandlerFunc) http.Handler {
	zipped := compress(http.HandlerFunc(s.serveRoute))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.timeBody(w, r)
		for name, value := range s.cfg.ResponseHeaders {
			w.Header().Set(name, value)
		}
		m := s.routes.match(r.URL.EscapedPath())
		r = r.WithContext(context.WithValue(r.Context(), matchKey{}, m))
		if m.route == nil || m.route.streams {
			s.serveRoute(w, r)
			return
		}
		zipped(w, r)
	})
}

type matchKey struct{}

func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request) {
	m, _ := r.Context().Value(matchKey{}).(match)
	rec := &recorder{ResponseWriter: w}
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.cfg.Logger.Error("a request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if rec.code != 0 {
				panic(http.ErrAbortHandler) // the answer has begun: break it off so that nobody takes it for whole
			}
			s.writeError(rec, r, structs.Errorf(structs.CodeInternal, "internal fault, see the agent's log"))
		}
		s.measure(m, r, rec.code, start)
	}()
	if err := s.serve(rec, r, m); err != nil {
		s.writeError(rec, r, err)
	}
}

func (s *Server) measure(m match, r *http.Request, code int, start time.Time) {
	path := "unknown"
	if m.route != nil {
		path = m.route.path
	}
	metrics.MeasureSinceWithLabels([]string{"http", "request"}, start, []metrics.Label{{Name: "path", Value: path}, {Name: "method", Value: methodLabel(r.Method)}})
	s.cfg.Logger.Debug("request complete", "method", r.Method, "path", r.URL.Path, "code", code, "duration", time.Since(start))
}

// methodLabel keeps callers from minting labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead:
		return method
	}
	return "other"
}

func (s *Server) serve(w *recorder, r *http.Request, m match) error {
	if err := s.guard.check(r); err != nil {
		return s.refuse(r, err)
	}
	if m.route == nil {
		return structs.Errorf(structs.CodeNotFound, "no such path: %s", r.URL.Path)
	}
	method := r.Method
	if method == http.MethodHead && !m.route.streams {
		method = http.MethodGet
	}
	do, ok := m.route.actions[method]
	if !ok {
		w.Header().Set("Allow", m.route.allow)
		if method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return &statusError{http.StatusMethodNotAllowed, "method " + r.Method + " is not allowed here; allowed: " + m.route.allow}
	}
	if err := s.authorize(r, do.standsFor); err != nil {
		return err
	}
	if do.costly {
		if err := s.guard.checkCostly(r); err != nil {
			return s.refuse(r, err)
		}
	}
	if m.err != nil {
		return m.err
	}
	if isSafe(method) {
		if err := drain(r); err != nil {
			return err
		}
	}
	req, err := s.newRequest(w, r, m.ids)
	if err != nil {
		return err
	}
	body, err := do.run(req)
	if err != nil {
		return err
	}
	return req.respond(body)
}

// authorize returns an error for a request that the caller's certificate may not make, by the table of methods in package wire.
func (s *Server) authorize(r *http.Request, standsFor string) error {
	if s.cfg.Peer == nil {
		return nil
	}
	peer, ok := s.cfg.Peer(r.TLS)
	if !ok {
		return nil
	}
	err := peer.May(standsFor, "")
	if err != nil && s.refusals.Allow(standsFor+" "+peer.String(), time.Now()) {
		s.cfg.Logger.Warn("refused a request that the caller's certificate is not for; more of this kind are not logged for an hour",
			"method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "certificate", peer)
	}
	return err
}

// recorder remembers whether and how an answer has begun.
type recorder struct {
	http.ResponseWriter
	code int
}

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statusError is an error of HTTP itself, for which structs has no code.
type statusError struct {
	status int
	msg    string
}

func (e *statusError) Error() string { return e.msg }

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var st *statusError
	if errors.As(err, &st) {
		return st.status
	}
	var e *structs.Error
	if !errors.As(err, &e) && errors.Is(err, context.Canceled) {
		return http.StatusServiceUnavailable
	}
	return structs.CodeOf(err).HTTPStatus()
}

func (s *Server) writeError(w *recorder, r *http.Request, err error) {
	if w.code != 0 {
		// Too late for a status. Nomad's clients show the text that follows the
		// frames; then the connection is broken off so that nobody takes it for whole.
		s.cfg.Logger.Debug("a stream ended early", "path", r.URL.Path, "error", err)
		if r.Context().Err() == nil {
			_, _ = io.WriteString(w, structs.Clip(err.Error(), structs.MaxErrorBytes))
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	status := statusOf(err)
	msg := structs.Clip(err.Error(), structs.MaxErrorBytes)
	if status == http.StatusServiceUnavailable {
		msg = "the agent is shutting down or the request was given up"
	}
	if structs.CodeOf(err) == structs.CodeInternal && status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.cfg.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err, "code", status)
	}
	if status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close") // its body is still on the way
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, msg)
}

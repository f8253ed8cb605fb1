package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Pool keeps one session per address and opens it when it is needed. OnOpen is
// called with each new session before it is used: there a client serves its own
// methods on it and identifies itself.
type Pool struct {
	config Config
	onOpen func(ctx context.Context, s *Session) error

	mu       sync.Mutex
	sessions map[target]*pooled
	closed   bool
}

// target is where a session leads. Region is what the server must prove to be of; empty:
// the own.
type target struct{ region, addr string }

// redial is for how long an address at which nobody could be reached is not tried again: thousands of nodes behind one pool
// would try thousands of times a second.
const redial = 100 * time.Millisecond

type pooled struct {
	ready   chan struct{} // closed when session or err is set
	s       *Session
	err     error
	until   time.Time // the error is the answer to all callers before that
	waiting int       // callers, while it is being opened
	cancel  context.CancelFunc
}

// NewPool makes an empty pool; onOpen may be nil.
func NewPool(config Config, onOpen func(ctx context.Context, s *Session) error) *Pool {
	return &Pool{config: config, onOpen: onOpen, sessions: map[target]*pooled{}}
}

// Call calls a unary method at addr.
func (p *Pool) Call(ctx context.Context, addr, method string, args, reply any) error {
	s, err := p.Session(ctx, addr)
	if err != nil {
		return err
	}
	err = s.Call(ctx, method, args, reply)
	p.forgetIfClosed(addr, s, err)
	return err
}

// Stream opens a streaming call at addr.
func (p *Pool) Stream(ctx context.Context, addr, method string, args any) (Receiver, error) {
	s, err := p.Session(ctx, addr)
	if err != nil {
		return nil, err
	}
	st, err := s.Stream(ctx, method, args)
	if err != nil {
		p.forgetIfClosed(addr, s, err)
		return nil, err
	}
	return st, nil
}

func (p *Pool) forgetIfClosed(addr string, s *Session, err error) {
	if err == nil || !errors.Is(err, ErrSessionClosed) || !s.mux.IsClosed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.sessions[target{addr: addr}]; ok && e.s == s {
		delete(p.sessions, target{addr: addr})
	}
}

// Session returns the session to the server at addr, of the own region, opening it if
// there is none. Callers that come while it opens wait for the same one.
func (p *Pool) Session(ctx context.Context, addr string) (*Session, error) {
	return p.SessionIn(ctx, "", addr)
}

// SessionIn is Session to a server of another region: with TLS it must prove that it is one.
func (p *Pool) SessionIn(ctx context.Context, region, addr string) (*Session, error) {
	to := target{region, addr}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrSessionClosed
	}
	e, ok := p.sessions[to]
	if ok && (e.s != nil && e.s.mux.IsClosed() || e.err != nil && time.Now().After(e.until)) {
		ok = false
	}
	if ok && e.s != nil {
		p.mu.Unlock()
		return e.s, nil
	}
	if !ok {
		opening, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it is for all who come while it opens
		e = &pooled{ready: make(chan struct{}), cancel: cancel}
		p.sessions[to] = e
		go p.open(opening, to, e) // ends with the dialing, at the latest when nobody waits any more
	}
	e.waiting++
	p.mu.Unlock()
	select {
	case <-e.ready:
		return e.s, e.err
	case <-ctx.Done():
		p.giveUp(to, e)
		return nil, fmt.Errorf("reach %s: %w", to.addr, ctx.Err())
	}
}

// giveUp has a caller wait no longer. When the last one does so, nothing is opened any more.
func (p *Pool) giveUp(to target, e *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.waiting--
	if e.waiting > 0 || e.s != nil || e.err != nil {
		return
	}
	e.cancel()
	if p.sessions[to] == e {
		delete(p.sessions, to)
	}
}

// open opens a session for all who wait for it.
func (p *Pool) open(ctx context.Context, to target, e *pooled) {
	defer e.cancel()
	s, err := Dial(ctx, to.region, to.addr, p.config)
	if err == nil && p.onOpen != nil {
		if err = p.onOpen(ctx, s); err != nil {
			_ = s.Close()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(e.ready)
	switch {
	case p.closed, p.sessions[to] != e: // the pool is, or all have given up
		if err == nil {
			_ = s.Close()
		}
		e.err = ErrSessionClosed
	case err == nil:
		e.s = s
	default:
		e.err, e.until = err, time.Now().Add(redial)
	}
}

// Drop ends the session to a server of the own region, if there is one, with all its calls.
func (p *Pool) Drop(addr string) {
	p.mu.Lock()
	e := p.sessions[target{addr: addr}]
	if e != nil && e.s == nil { // it is being opened, or could not be
		e = nil
	}
	p.mu.Unlock()
	if e != nil {
		_ = e.s.Close()
	}
}

// Close closes all sessions and refuses new ones.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for to, e := range p.sessions {
		if e.s != nil {
			_ = e.s.Close()
		}
		e.cancel()
		delete(p.sessions, to)
	}
}

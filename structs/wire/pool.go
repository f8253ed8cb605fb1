package wire

import (
	"context"
	"errors"
	"sync"
)

// Pool keeps one session per address and opens it when it is needed. OnOpen is
// told of each new session before it is used: there a client serves its own
// methods on it and says who it is.
type Pool struct {
	config Config
	onOpen func(ctx context.Context, s *Session) error

	mu       sync.Mutex
	sessions map[string]*pooled
	closed   bool
}

type pooled struct {
	ready chan struct{} // closed when session or err is set
	s     *Session
	err   error
}

// NewPool makes an empty pool; onOpen may be nil.
func NewPool(config Config, onOpen func(ctx context.Context, s *Session) error) *Pool {
	return &Pool{config: config, onOpen: onOpen, sessions: map[string]*pooled{}}
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
	if e, ok := p.sessions[addr]; ok && e.s == s {
		delete(p.sessions, addr)
	}
}

// Session gives the session to addr, opening it if there is none. Callers that
// come while it opens wait for the same one.
func (p *Pool) Session(ctx context.Context, addr string) (*Session, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrSessionClosed
	}
	e, ok := p.sessions[addr]
	if ok && e.s != nil && e.s.mux.IsClosed() {
		ok = false
	}
	if !ok {
		e = &pooled{ready: make(chan struct{})}
		p.sessions[addr] = e
		p.mu.Unlock()
		p.open(ctx, addr, e)
		return e.s, e.err
	}
	p.mu.Unlock()
	select {
	case <-e.ready:
		return e.s, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *Pool) open(ctx context.Context, addr string, e *pooled) {
	s, err := Dial(ctx, addr, p.config)
	if err == nil && p.onOpen != nil {
		if err = p.onOpen(ctx, s); err != nil {
			_ = s.Close()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		_ = s.Close()
		err = ErrSessionClosed
	}
	if err != nil {
		e.err = err
		if p.sessions[addr] == e {
			delete(p.sessions, addr)
		}
	} else {
		e.s = s
	}
	close(e.ready)
}

// Close closes all sessions and refuses new ones.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for addr, e := range p.sessions {
		if e.s != nil {
			_ = e.s.Close()
		}
		delete(p.sessions, addr)
	}
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxRequests is how many requests of one connection are worked on at once;
	// each running task has one that waits for its end.
	maxRequests = 1 << 14
	// maxConns is how many connections there are at once: one agent, and an
	// operator's tools.
	maxConns = 64
	// ioTimeout is how long a peer may take for the greeting, or to take an answer.
	ioTimeout = 10 * time.Second
)

// serve answers connections until ctx ends.
func (s *server) serve(ctx context.Context, l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Error("accept", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond): // out of descriptors, perhaps
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		wg.Go(func() {
			s.count(0, 1)
			s.serveConn(ctx, conn)
			s.count(0, -1)
			<-slots
		})
	}
}

// session is one connection.
type session struct {
	s    *server
	conn net.Conn

	writing sync.Mutex

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // of the requests being worked on
}

func (s *server) serveConn(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	c := &session{s: s, conn: conn, cancels: map[uint64]context.CancelFunc{}}
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var wg sync.WaitGroup
	defer func() {
		cancel()
		unhook()
		_ = conn.Close()
		wg.Wait()
	}()
	if err := c.greet(); err != nil {
		s.log.Warn("greeting", "error", err)
		return
	}
	for {
		var req request
		if err := readFrame(conn, &req); err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.log.Warn("connection", "error", err)
			}
			return
		}
		if req.Op == opCancel {
			c.cancel(req.Cancel)
			continue
		}
		rctx, ok := c.begin(ctx, req.Seq)
		if !ok {
			resp := &response{Seq: req.Seq}
			resp.fail(fmt.Errorf("%w: %d requests are open, or number %d twice", ErrBusy, maxRequests, req.Seq))
			c.send(resp)
			continue
		}
		wg.Go(func() {
			resp := s.handle(rctx, &req)
			c.cancel(req.Seq)
			c.send(resp)
			if req.Op == opShutdown && resp.Code == "" {
				s.end()
			}
		})
	}
}

// greet agrees on the protocol's version.
func (c *session) greet() error {
	if err := c.conn.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	var req request
	if err := readFrame(c.conn, &req); err != nil {
		return err
	}
	resp := &response{Seq: req.Seq, Version: min(Version, req.MaxVersion), Pid: c.s.pid}
	var err error
	switch {
	case req.Op != opHello:
		err = fmt.Errorf("%w: the first request must be %q, not %q", ErrInvalid, opHello, req.Op)
	case req.MinVersion > Version || req.MaxVersion < MinVersion:
		err = fmt.Errorf("%w: it knows %d to %d, the agent %d to %d; stop this node's tasks, then its executor ends and a new one starts",
			ErrVersion, MinVersion, Version, req.MinVersion, req.MaxVersion)
	}
	if err != nil {
		resp.fail(err)
	}
	if werr := writeFrame(c.conn, resp); err != nil || werr != nil {
		return errors.Join(err, werr)
	}
	return c.conn.SetDeadline(time.Time{})
}

// begin returns the context of a request; false if there are too many.
func (c *session) begin(ctx context.Context, seq uint64) (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.cancels[seq]; twice || len(c.cancels) >= maxRequests {
		return nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	c.cancels[seq] = cancel
	return ctx, true
}

// cancel ends a request's waiting, or its place in the table.
func (c *session) cancel(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.cancels[seq]; ok {
		f()
		delete(c.cancels, seq)
	}
}

// send answers. A peer that does not take its answers is given up.
func (c *session) send(resp *response) {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.conn.SetWriteDeadline(time.Now().Add(ioTimeout))
	if err == nil {
		err = writeFrame(c.conn, resp)
	}
	if err != nil {
		_ = c.conn.Close()
	}
}

// handle executes a request.
func (s *server) handle(ctx context.Context, req *request) *response {
	resp := &response{Seq: req.Seq}
	var err error
	switch req.Op {
	case opPing:
		resp.Version, resp.Pid = Version, s.pid
	case opStart:
		var st Status
		if st, err = s.start(req.Spec, time.Now()); err == nil {
			resp.Status = &st
		}
	case opStatus, opWait, opStop:
		resp.Status, err = s.handleTask(ctx, req)
	case opSignal:
		err = s.signal(req.ID, req.Signal)
	case opSuspend, opResume:
		err = s.suspendOrResume(ctx, req.ID, req.Op == opSuspend)
	case opStats:
		var st Stats
		if st, err = s.stats(req.ID); err == nil {
			resp.Stats = &st
		}
	case opList:
		for _, t := range s.list() {
			resp.List = append(resp.List, t.status())
		}
	case opForget:
		err = s.forget(req.ID)
	case opShutdown:
		err = s.shutdown()
	default:
		err = fmt.Errorf("%w: operation %q", ErrInvalid, req.Op)
	}
	if err != nil {
		resp.fail(err)
	}
	return resp
}

// handleTask returns a task's status: now, or for wait and stop once it has ended.
func (s *server) handleTask(ctx context.Context, req *request) (*Status, error) {
	t, err := s.get(req.ID)
	if err != nil {
		return nil, err
	}
	if req.Op == opStop {
		if err := s.stop(t, req.Signal, req.Timeout); err != nil {
			return nil, err
		}
	}
	if req.Op != opStatus {
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	st := t.status()
	if req.Op != opStatus && st.Exit == nil {
		return nil, fmt.Errorf("%w: %q could not be started", ErrNotFound, req.ID)
	}
	return &st, nil
}

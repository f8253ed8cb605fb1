package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// errLost: the connection ended before the answer came.
var errLost = errors.New("connection to the executor lost")

// link is one connection to an executor, used by many callers at once.
type link struct {
	conn    net.Conn
	version int // of the protocol, as agreed

	writing sync.Mutex

	mu      sync.Mutex
	seq     uint64
	pending map[uint64]chan *response // nil once the connection is lost
	done    chan struct{}             // closed when the reading goroutine has ended
}

// newLink greets and begins to read. It owns conn.
func newLink(ctx context.Context, conn net.Conn) (*link, error) {
	l := &link{conn: conn, pending: map[uint64]chan *response{}, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	var resp response
	err := conn.SetDeadline(time.Now().Add(ioTimeout))
	if err == nil {
		err = writeFrame(conn, &request{Op: opHello, MinVersion: MinVersion, MaxVersion: Version})
	}
	if err == nil {
		err = readFrame(conn, &resp)
	}
	if err == nil {
		err = resp.err()
	}
	if !stop() {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greet executor: %w", err), conn.Close())
	}
	l.version = resp.Version
	go l.read()
	return l, nil
}

// read hands answers to those who wait for them.
func (l *link) read() {
	defer close(l.done)
	for {
		resp := &response{}
		if err := readFrame(l.conn, resp); err != nil {
			break
		}
		l.mu.Lock()
		ch := l.pending[resp.Seq]
		delete(l.pending, resp.Seq)
		l.mu.Unlock()
		if ch != nil {
			ch <- resp // has room for the one answer
		}
	}
	_ = l.conn.Close()
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, ch := range pending {
		close(ch)
	}
}

// close ends the connection and waits for the reading goroutine.
func (l *link) close() {
	_ = l.conn.Close()
	<-l.done
}

// alive reports whether the connection is of use still.
func (l *link) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending != nil
}

// roundTrip sends a copy of req and waits for the answer. sent reports whether the
// executor may have got it.
func (l *link) roundTrip(ctx context.Context, req request) (resp *response, sent bool, err error) {
	ch := make(chan *response, 1)
	l.mu.Lock()
	if l.pending == nil {
		l.mu.Unlock()
		return nil, false, errLost
	}
	l.seq++
	req.Seq = l.seq
	l.pending[req.Seq] = ch
	l.mu.Unlock()
	if err := l.write(&req); err != nil {
		l.mu.Lock()
		delete(l.pending, req.Seq)
		l.mu.Unlock()
		if errors.Is(err, errTooLong) {
			return nil, false, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		_ = l.conn.Close()
		return nil, true, fmt.Errorf("%w: %w", errLost, err)
	}
	select {
	case resp, ok := <-ch:
		if !ok {
			return nil, true, errLost
		}
		return resp, true, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	_, waiting := l.pending[req.Seq]
	delete(l.pending, req.Seq)
	l.mu.Unlock()
	if waiting && l.write(&request{Op: opCancel, Cancel: req.Seq}) != nil {
		_ = l.conn.Close()
	}
	return nil, true, ctx.Err()
}

func (l *link) write(req *request) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	return writeFrame(l.conn, req)
}

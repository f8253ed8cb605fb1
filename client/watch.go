package client

import (
	"context"
	"errors"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

const (
	watchTime  = 5 * time.Minute        // how long a server may block the query
	watchPause = 100 * time.Millisecond // after an answer that came early with nothing new
)

// watch learns which allocations the node shall run, until ctx ends.
//
// An answer states what has changed since the index of the query, and lists all. Any server
// may give it, so one that lags must not make an allocation that it does not know
// yet look forgotten: an answer counts only if its index is past that of the query, or
// if the query went to the leader. The leader is queried first, after every
// registration, and when a query timed out: then everything is compared.
func (n *node) watch(ctx context.Context) {
	select {
	case <-n.known:
	case <-ctx.Done():
		return
	}
	w := &watcher{node: n, retry: retryFirst}
	w.query(ctx)
}

// watcher is what a node's watch knows from one query to the next. Of its goroutines there is one at a time: one sends the query, then
// a fresh one waits, which may take minutes and needs next to no stack, then one handles the answer and sends the next. There are
// 50,000 of them in a process of simulated nodes.
type watcher struct {
	node         *node
	index, epoch uint64 // that the answer is compared with
	queriedAt    time.Time
	retry        time.Duration
}

// query makes queries until one is under way, or ctx ends.
func (w *watcher) query(ctx context.Context) {
	for ctx.Err() == nil {
		if e := w.node.epoch.Load(); e != w.epoch {
			w.epoch, w.index = e, 0
		}
		w.queriedAt = time.Now()
		question, addr, err := w.node.query(ctx, w.index)
		if err == nil {
			w.node.Go(func(context.Context) {
				err := question.Await()
				w.node.Go(func(ctx context.Context) { w.answered(ctx, question, addr, err) })
			})
			return
		}
		if !w.pause(ctx, err) {
			return
		}
	}
}

// answered handles the outcome of a query, and makes the next.
func (w *watcher) answered(ctx context.Context, question *wire.Stream, addr string, err error) {
	reply := &structs.ClientAllocsReply{}
	if err == nil {
		err = question.Recv(reply)
	}
	question.Close()
	if err != nil {
		if !answered(err) && ctx.Err() == nil {
			w.node.servers.giveUp(addr)
		}
		if w.pause(ctx, err) {
			w.query(ctx)
		}
		return
	}
	w.retry = retryFirst
	switch {
	case w.node.epoch.Load() != w.epoch:
	case w.index == 0 || reply.Index > w.index:
		w.node.heard.Store(reply.Index) // before anything can be reported of it
		w.node.apply(reply, w.index == 0)
		w.index = max(reply.Index, 1)
	default:
		w.index = 0
		if time.Since(w.queriedAt) < watchPause && !sleep(ctx, watchPause) {
			return
		}
	}
	w.query(ctx)
}

// pause waits after a query that failed; false: ctx ended.
func (w *watcher) pause(ctx context.Context, err error) bool {
	if ctx.Err() == nil && !errors.Is(err, wire.ErrSessionClosed) {
		w.node.logger.Debug("the node's allocations cannot be queried; trying again", "error", err)
	}
	if !sleep(ctx, jittered(w.retry)) {
		return false
	}
	w.retry = min(2*w.retry, retryMost)
	return true
}

// query makes one blocking query of the server at addr.
func (n *node) query(ctx context.Context, index uint64) (question *wire.Stream, addr string, err error) {
	addr, s, err := n.hello(ctx)
	if err != nil {
		return nil, addr, err
	}
	req := &structs.ClientAllocsRequest{NodeID: n.id, SecretID: n.secret}
	req.Region = n.c.config.Region
	req.MinQueryIndex, req.MaxQueryTime, req.AllowStale = index, watchTime, index > 0
	if question, err = s.Open(ctx, wire.MethodNodeClientAllocs, req); err != nil && ctx.Err() == nil {
		n.servers.giveUp(addr)
	}
	return question, addr, err
}

// hello names the node to the server that is spoken with, once a session, so that the server can call
// back.
func (n *node) hello(ctx context.Context) (addr string, s *wire.Session, err error) {
	addr, known := n.servers.current()
	if known == 0 {
		return addr, nil, errNoServer
	}
	if s, err = n.servers.pool.Session(ctx, addr); err != nil {
		n.servers.giveUp(addr)
		return addr, nil, err
	}
	if s == n.greeted {
		return addr, s, nil
	}
	var reply structs.WriteReply
	if err := s.Call(ctx, wire.MethodClientHello, &structs.NodeHeartbeatRequest{NodeID: n.id, SecretID: n.secret}, &reply); err != nil {
		var answer *structs.Error
		if !errors.As(err, &answer) {
			n.servers.giveUp(addr)
		}
		return addr, nil, err
	}
	n.greeted = s
	return addr, s, nil
}

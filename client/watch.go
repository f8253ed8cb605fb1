package client

import (
	"context"
	"errors"
	"time"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

const (
	watchTime  = 5 * time.Minute        // how long a server may keep the question
	watchPause = 100 * time.Millisecond // after an answer that came early with nothing new
)

// watch learns which allocations the node shall run, until ctx ends.
//
// An answer says what has changed since the index asked, and lists all. Any server
// may give it, so one that lags must not make an allocation that it does not know
// yet look forgotten: an answer counts only if its index is past the one asked, or
// if the question went to the leader. The leader is asked first, after every
// registration, and when a question ran out of time: then everything is compared.
func (n *node) watch(ctx context.Context) {
	select {
	case <-n.known:
	case <-ctx.Done():
		return
	}
	var index, epoch uint64
	retry := retryFirst
	for ctx.Err() == nil {
		if e := n.epoch.Load(); e != epoch {
			epoch, index = e, 0
		}
		asked := time.Now()
		reply, err := n.ask(ctx, index)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, wire.ErrSessionClosed) {
				n.logger.Debug("the allocations cannot be asked for; trying again", "error", err)
			}
			if !sleep(ctx, jittered(retry)) {
				return
			}
			retry = min(2*retry, retryMost)
			continue
		}
		retry = retryFirst
		switch {
		case n.epoch.Load() != epoch:
		case index == 0 || reply.Index > index:
			n.heard.Store(reply.Index) // before anything can be reported of it
			n.apply(reply, index == 0)
			index = max(reply.Index, 1)
		default:
			index = 0
			if time.Since(asked) < watchPause && !sleep(ctx, watchPause) {
				return
			}
		}
	}
}

// ask makes one blocking query.
func (n *node) ask(ctx context.Context, index uint64) (*structs.ClientAllocsReply, error) {
	if err := n.hello(ctx); err != nil {
		return nil, err
	}
	req := &structs.ClientAllocsRequest{NodeID: n.id, SecretID: n.secret}
	req.Region = n.c.config.Region
	req.MinQueryIndex, req.MaxQueryTime, req.AllowStale = index, watchTime, index > 0
	reply := &structs.ClientAllocsReply{}
	err := n.c.servers.call(ctx, 0, wire.MethodNodeClientAllocs, req, reply)
	return reply, err
}

// hello names the node to the server, once a session, so that the server can call
// back.
func (n *node) hello(ctx context.Context) error {
	addr, known := n.c.servers.current()
	if known == 0 {
		return errNoServer
	}
	s, err := n.c.pool.Session(ctx, addr)
	if err != nil {
		n.c.servers.giveUp(addr)
		return err
	}
	if s == n.greeted {
		return nil
	}
	var reply structs.WriteReply
	if err := s.Call(ctx, wire.MethodClientHello, &structs.NodeHeartbeatRequest{NodeID: n.id, SecretID: n.secret}, &reply); err != nil {
		var said *structs.Error
		if !errors.As(err, &said) {
			n.c.servers.giveUp(addr)
		}
		return err
	}
	n.greeted = s
	return nil
}

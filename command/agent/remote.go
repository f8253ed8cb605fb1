package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// remote passes calls on to the servers: the backend of an agent that runs none.
type remote struct {
	pool    *wire.Pool
	servers func() []string
	next    atomic.Uint32 // where to begin: the server that answered last
}

func newRemote(servers func() []string, secure *wire.TLS, logger hclog.Logger) (httpapi.Backend, func()) {
	r := &remote{pool: wire.NewPool(wire.Config{Logger: logger.Named("rpc"), TLS: secure}, nil), servers: servers}
	return r, r.pool.Close
}

// searchFor bounds the search for a server that knows a leader: each holds a call for some seconds while there is none.
const searchFor = 10 * time.Second

// search does something with the servers, one after the other, until one of them has done it. Only what was surely not done is
// tried elsewhere: where the server could not be reached at all, or knows no leader and reports that it did nothing. Otherwise
// nobody knows whether a call that was sent was carried out.
func (r *remote) search(ctx context.Context, do func(s *wire.Session) error) error {
	addrs := r.servers()
	if len(addrs) == 0 {
		return structs.Errorf(structs.CodeNoLeader, "no server is known; name one under client { servers }")
	}
	first, began := r.next.Load(), time.Now()
	var errs []error
	var leaderless error
	for i := range addrs {
		at := first + uint32(i) // wraps, as it may
		s, err := r.pool.Session(ctx, addrs[at%uint32(len(addrs))])
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			errs = append(errs, err)
			continue
		}
		r.next.Store(at)
		err = do(s)
		if structs.CodeOf(err) != structs.CodeNotLeader || ctx.Err() != nil {
			return err
		}
		r.next.CompareAndSwap(at, at+1)
		if leaderless = err; time.Since(began) > searchFor {
			break
		}
	}
	if leaderless != nil {
		return structs.Errorf(structs.CodeNoLeader, "%w", leaderless)
	}
	return structs.Errorf(structs.CodeNoLeader, "no server can be reached: %w", errors.Join(errs...))
}

// Call implements httpapi.Backend.
func (r *remote) Call(ctx context.Context, method string, args, reply any) error {
	return r.search(ctx, func(s *wire.Session) error { return s.Call(ctx, method, args, reply) })
}

// Stream implements httpapi.Backend.
func (r *remote) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	st := &remoteStream{remote: r, ctx: ctx, method: method, args: args}
	if err := r.search(ctx, st.open); err != nil {
		return nil, err
	}
	return st, nil
}

// remoteStream is a stream of the first server that has an answer.
type remoteStream struct {
	remote  *remote
	ctx     context.Context
	method  string
	args    any
	settled bool // something has come, or is not searched for any more

	mu     sync.Mutex
	from   *wire.Stream
	closed bool
}

// open opens it at a server, in place of the one that it was opened at before.
func (s *remoteStream) open(at *wire.Session) error {
	from, err := at.Stream(s.ctx, s.method, s.args)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != nil {
		s.from.Close()
	}
	if s.from = from; s.closed {
		from.Close()
	}
	return nil
}

// Recv implements wire.Receiver.
func (s *remoteStream) Recv(v any) error {
	err := s.current().Recv(v)
	if s.settled || structs.CodeOf(err) != structs.CodeNotLeader {
		s.settled = true
		return err
	}
	s.settled = true
	s.remote.next.Add(1)
	return s.remote.search(s.ctx, func(at *wire.Session) error {
		if err := s.open(at); err != nil {
			return err
		}
		return s.current().Recv(v)
	})
}

func (s *remoteStream) current() *wire.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from
}

// Close implements wire.Receiver.
func (s *remoteStream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.from.Close()
}

package eval

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// leased is the evaluations that the workers of other servers have, by the sessions over which they were dequeued: when one
// ends, they are given out again at once. What is gone from a worker in another way may stay here for a while: its token shows
// that it is not leased any more.
type leased struct {
	mu sync.Mutex
	by map[*wire.Session]map[string]string // tokens by evaluation
	// waiting counts the calls that wait for one.
	waiting map[*wire.Session]int
}

// leasedMany is how many of one session are remembered before those are looked for that it has no more.
const leasedMany = 1024

func newLeased() *leased {
	return &leased{by: map[*wire.Session]map[string]string{}, waiting: map[*wire.Session]int{}}
}

// wait notes that somebody waits for an evaluation, until done is called.
func (h *leased) wait(from *wire.Session) (done func()) {
	if from == nil {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[from]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.waiting[from]--; h.waiting[from] == 0 {
			delete(h.waiting, from)
		}
	}
}

// silent are the sessions that have something, or wait for it, and of which nothing was heard since a time.
func (h *leased) silent(since time.Time) map[*wire.Session][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[*wire.Session][]string{}
	for s, had := range h.by { // order does not matter: they are gathered
		if len(had) > 0 && !s.Heard().After(since) {
			out[s] = []string{}
		}
	}
	for s := range h.waiting { // nor here
		if !s.Heard().After(since) {
			out[s] = []string{}
		}
	}
	return out
}

// put remembers what was handed out; outstanding reports whether it still is.
func (h *leased) put(to *wire.Session, id, token string, outstanding func(id string) (token string, ok bool)) {
	if to == nil { // this server's own
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[to] == nil {
		h.by[to] = map[string]string{}
	}
	if len(h.by[to]) >= leasedMany {
		maps.DeleteFunc(h.by[to], func(id, token string) bool { now, ok := outstanding(id); return !ok || now != token })
	}
	h.by[to][id] = token
}

// drop forgets what was answered.
func (h *leased) drop(from *wire.Session, id, token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[from][id] == token {
		delete(h.by[from], id)
	}
}

// closed forgets a session, and returns what it had.
func (h *leased) closed(s *wire.Session) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.by[s]
	delete(h.by, s)
	return had
}

// WorkersWait is of how many other servers workers wait for an evaluation.
func (e *Endpoint) WorkersWait() int {
	e.leased.mu.Lock()
	defer e.leased.mu.Unlock()
	return len(e.leased.waiting)
}

// dequeue hands an evaluation out. When the caller is gone by then, another gets it.
func (e *Endpoint) dequeue(ctx context.Context, call *wire.Call) error {
	args := &structs.EvalDequeueRequest{}
	if err := call.Args(args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	defer e.leased.wait(call.Session)()
	got, err := e.Broker.Dequeue(ctx, args.Schedulers, args.Timeout)
	if err != nil {
		return err
	}
	if got.Eval != nil {
		e.leased.put(call.Session, got.Eval.ID, got.Token, e.Broker.Outstanding)
	}
	if err = ctx.Err(); err == nil {
		err = call.Send(got)
	}
	if err != nil && got.Eval != nil {
		e.leased.drop(call.Session, got.Eval.ID, got.Token)
		_ = e.Broker.Nack(got.Eval.ID, got.Token) // else it is not leased any more
	}
	return err
}

// answered takes a worker's word on what it has.
func (e *Endpoint) answered(answer func(id, token string) error) wire.Handler {
	return func(ctx context.Context, call *wire.Call) error {
		return wire.Unary(func(_ context.Context, args *structs.EvalAckRequest) (*structs.WriteReply, error) {
			e.leased.drop(call.Session, args.EvalID, args.Token)
			return &structs.WriteReply{}, answer(args.EvalID, args.Token)
		})(ctx, call)
	}
}

// SessionClosed has the evaluations given out again that were behind a session. None of its calls is at work any more.
func (e *Endpoint) SessionClosed(s *wire.Session) {
	had := e.leased.closed(s)
	if len(had) == 0 {
		return
	}
	back := 0
	for id, token := range had { // order does not matter: each waits for its own turn
		if e.Broker.Nack(id, token) == nil {
			back++
		}
	}
	if back > 0 {
		e.Logger.Warn("the connection with a server's workers ended; the evaluations that they leased are dequeued again", "from", s.Addr(), "evaluations", back)
	}
}

// PingWorkers pings the sessions of other servers' workers while they have something to decide, or wait for it,
// until ctx ends. One that does not answer again and again is closed: a server that is cut off, or hangs, would take more
// and more.
func (e *Endpoint) PingWorkers(ctx context.Context) { e.pingWorkers(ctx, rpc.SilentFor, rpc.PingLimit) }

func (e *Endpoint) pingWorkers(ctx context.Context, silence, limit time.Duration) {
	p := rpc.Pinging{
		Silent: e.leased.silent, Silence: silence, Limit: limit,
		Call: func(ctx context.Context, s *wire.Session) bool { return s.Ping(ctx) == nil },
		Lost: func([]string) {},
	}
	p.Run(ctx)
}

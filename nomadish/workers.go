package nomadish

import (
	"context"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// workers are the workers of a server. How many there are, and what they take, may be changed while the server runs.
type workers struct {
	s       *Server
	assumed *worker.Assumed
	running sync.WaitGroup // those that run, also those that were requested to stop and finish what they hold

	mu     sync.Mutex
	ctx    context.Context // of all of them; nil: before run
	closed bool
	stop   context.CancelFunc // has the present ones take nothing more
}

func newWorkers(s *Server) *workers {
	return &workers{s: s, assumed: worker.NewAssumed(), stop: func() {}}
}

// run runs workers as the configuration states, or as set was last called with, until ctx ends and all of them have.
func (w *workers) run(ctx context.Context) {
	w.mu.Lock()
	w.ctx = ctx
	w.start(w.s.cfg.NumSchedulers, w.s.cfg.EnabledSchedulers)
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.running.Wait()
}

// set puts n workers that take jobs of these types in the place of those that run. These take nothing more, and finish what they
// hold in the background.
func (w *workers) set(n int, enabled []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.ctx == nil {
		return structs.Errorf(structs.CodeUnsupported, "the server is not running; its schedulers cannot be changed now").WithHint("try again")
	}
	w.stop()
	w.start(n, enabled)
	w.s.logger.Info("the schedulers were changed, until the agent is started again", "num_schedulers", n, "enabled_schedulers", enabled)
	return nil
}

// start starts workers. It is called with mu held.
func (w *workers) start(n int, enabled []string) {
	taking, stop := context.WithCancel(w.ctx)
	w.stop = stop
	if len(enabled) == 0 {
		return // nothing is there to be taken
	}
	cfg, ctx := w.s.cfg, w.ctx
	for range n {
		one := worker.New(worker.Options{
			Schedulers: enabled, NewID: NewID, Assumed: w.assumed, Typicals: w.s.typicals, Logger: cfg.Logger.Named("worker"),
		}, leaderCalls{w.s}, w.s.store)
		w.running.Go(func() { one.RunUntil(ctx, taking) })
	}
}

// SetSchedulers changes how many workers the server has and which types of jobs they take, as long as it runs.
func (s *Server) SetSchedulers(n int, enabled []string) error { return s.workers.set(n, enabled) }

// leaderCalls are the leader as this server's workers call it: its parts directly
// when it is this server, its RPC methods otherwise.
type leaderCalls struct{ s *Server }

func (l leaderCalls) Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	if l.s.IsLeader() {
		return l.s.leader.broker.Dequeue(ctx, schedulers, timeout)
	}
	reply := &structs.EvalDequeueReply{}
	return reply, l.s.Call(ctx, wire.MethodEvalDequeue, &structs.EvalDequeueRequest{Schedulers: schedulers, Timeout: timeout}, reply)
}

func (l leaderCalls) Ack(ctx context.Context, evalID, token string) error {
	if l.s.IsLeader() {
		return l.s.leader.broker.Ack(evalID, token)
	}
	return l.s.Call(ctx, wire.MethodEvalAck, &structs.EvalAckRequest{EvalID: evalID, Token: token}, &structs.WriteReply{})
}

func (l leaderCalls) Nack(ctx context.Context, evalID, token string) error {
	if l.s.IsLeader() {
		return l.s.leader.broker.Nack(evalID, token)
	}
	return l.s.Call(ctx, wire.MethodEvalNack, &structs.EvalAckRequest{EvalID: evalID, Token: token}, &structs.WriteReply{})
}

func (l leaderCalls) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	if l.s.IsLeader() {
		return l.s.leader.plans.Submit(ctx, p)
	}
	reply := &structs.PlanReply{}
	err := l.s.Call(ctx, wire.MethodPlanSubmit, &structs.PlanRequest{Plan: p}, reply)
	return reply.Result, err
}

func (l leaderCalls) Update(ctx context.Context, evalID, token string, evals []*structs.Evaluation) error {
	args := &structs.EvalUpdateRequest{EvalID: evalID, Token: token, Evals: evals}
	return l.s.Call(ctx, wire.MethodEvalUpdate, args, &structs.WriteReply{})
}

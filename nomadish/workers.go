package nomadish

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

func newWorkers(cfg *Config, s *Server) []*worker.Worker {
	var out []*worker.Worker
	foresight := worker.NewForesight()
	for range cfg.NumSchedulers {
		out = append(out, worker.New(worker.Options{
			Schedulers: cfg.EnabledSchedulers, NewID: NewID, Foresight: foresight, Typicals: s.typicals, Logger: cfg.Logger.Named("worker"),
		}, leaderCalls{s}, s.store))
	}
	return out
}

// leaderCalls are the leader as this server's workers call it: its parts directly
// when it is this server, its RPC methods otherwise.
type leaderCalls struct{ s *Server }

func (l leaderCalls) Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	if l.s.IsLeader() {
		eval, token, wait, err := l.s.leader.broker.Dequeue(ctx, schedulers, timeout)
		return &structs.EvalDequeueReply{Eval: eval, Token: token, WaitIndex: wait}, err
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

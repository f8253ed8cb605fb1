package eval

import (
	"context"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) list(ctx context.Context, args *structs.EvalListRequest) (*structs.EvalListReply, error) {
	reply := &structs.EvalListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		all, err := evalsListed(ws, snap, args)
		if err != nil {
			return 0, err
		}
		reply.Evaluations, err = rpc.Take(&args.QueryOptions, &reply.QueryMeta, all.Items, all.Token)
		return snap.WrittenIndex(state.TableEvals), err
	})
}

// matching returns the evaluations that a list request names.
func matching(ws *state.WatchSet, snap *state.Snapshot, args *structs.EvalListRequest) func(yield func(*structs.Evaluation) bool) {
	return func(yield func(*structs.Evaluation) bool) {
		for ev := range snap.Evals(ws, rpc.NamespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
			if (args.Job != "" && ev.JobID != args.Job) || (args.Status != "" && ev.Status != args.Status) {
				continue
			}
			if !yield(ev) {
				return
			}
		}
	}
}

func (e *Endpoint) count(ctx context.Context, args *structs.EvalListRequest) (*structs.CountReply, error) {
	reply := &structs.CountReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		all, err := rpc.Page(&structs.QueryOptions{Filter: args.Filter}, &structs.QueryMeta{}, matching(ws, snap, args),
			func(ev *structs.Evaluation) string { return ev.ID })
		reply.Count = len(all)
		return snap.WrittenIndex(state.TableEvals), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.EvalGetRequest) (*structs.EvalReply, error) {
	if err := rpc.CheckUUID("evaluation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.EvalReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Eval = snap.Eval(ws, args.ID)
		if reply.Eval == nil {
			return snap.TableIndex(state.TableEvals), nil
		}
		if args.Related {
			reply.Eval = reply.Eval.Copy()
			for _, id := range []string{reply.Eval.PreviousEval, reply.Eval.NextEval, reply.Eval.BlockedEval} {
				if other := snap.Eval(ws, id); id != "" && other != nil {
					reply.Eval.RelatedEvals = append(reply.Eval.RelatedEvals, other.Stub())
				}
			}
		}
		return reply.Eval.ModifyIndex, nil
	})
}

func (e *Endpoint) allocs(ctx context.Context, args *structs.IDRequest) (*structs.AllocListReply, error) {
	if err := rpc.CheckUUID("evaluation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		allocs := snap.AllocsByEval(ws, args.ID)
		var err error
		reply.Allocations, err = rpc.PageAllocs(&args.QueryOptions, &reply.QueryMeta, allocs, false, true)
		return rpc.AllocsIndex(snap, allocs), err
	})
}

// checkLease reports whether a worker still has the lease of the evaluation that it speaks for.
func (e *Endpoint) checkLease(evalID, token string) error {
	if have, ok := e.Broker.Outstanding(evalID); !ok || have != token {
		return structs.Errorf(structs.CodeStaleRequest, "evaluation %s is no longer leased with that token", evalID)
	}
	return nil
}

func (e *Endpoint) update(ctx context.Context, args *structs.EvalUpdateRequest) (*structs.WriteReply, error) {
	if err := e.checkLease(args.EvalID, args.Token); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: args.Evals, Time: e.Now().UnixNano()})
}

func (e *Endpoint) planSubmit(ctx context.Context, args *structs.PlanRequest) (*structs.PlanReply, error) {
	if args.Plan == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the request has no Plan")
	}
	result, err := e.Plans.Submit(ctx, args.Plan)
	if err != nil {
		return nil, err
	}
	return &structs.PlanReply{Result: result, WriteMeta: structs.WriteMeta{Index: result.AllocIndex}}, nil
}

func evalCreated(ev *structs.Evaluation) rpc.Created {
	return rpc.Created{Index: ev.CreateIndex, ID: ev.ID}
}

// evalsListed returns the evaluations of a list in its order: by ID if a prefix of it is requested, else as they were made.
func evalsListed(ws *state.WatchSet, snap *state.Snapshot, args *structs.EvalListRequest) (rpc.Listed[*structs.Evaluation], error) {
	all := matching(ws, snap, args)
	if args.Prefix != "" {
		token := func(ev *structs.Evaluation) string { return ev.ID }
		return rpc.Listed[*structs.Evaluation]{Items: rpc.FromToken(&args.QueryOptions, all, token), Token: token}, nil
	}
	sorted, err := rpc.Chronological(&args.QueryOptions, all, evalCreated, func(a, b *structs.Evaluation) int {
		return evalCreated(a).Compare(evalCreated(b))
	})
	return rpc.Listed[*structs.Evaluation]{Items: sorted, Token: func(ev *structs.Evaluation) string { return evalCreated(ev).Token() }}, err
}

package rpc

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoints) registerEvals(mux *wire.Mux) {
	mux.Handle(wire.MethodEvalList, read(e, e.evalList))
	mux.Handle(wire.MethodEvalCount, read(e, e.evalCount))
	mux.Handle(wire.MethodEvalGet, read(e, e.evalGet))
	mux.Handle(wire.MethodEvalAllocs, read(e, e.evalAllocs))
	mux.Handle(wire.MethodEvalDelete, write(e, e.evalDelete))
	e.registerHeld(mux)
	mux.Handle(wire.MethodEvalUpdate, ownRegion(e, write(e, e.evalUpdate)))
	mux.Handle(wire.MethodPlanSubmit, ownRegion(e, write(e, e.planSubmit)))
}

func (e *Endpoints) evalList(ctx context.Context, args *structs.EvalListRequest) (*structs.EvalListReply, error) {
	reply := &structs.EvalListReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		all, err := evalsListed(ws, snap, args)
		if err != nil {
			return 0, err
		}
		reply.Evaluations, err = take(&args.QueryOptions, &reply.QueryMeta, all.items, all.token)
		return snap.WrittenIndex(state.TableEvals), err
	})
}

// matching gives the evaluations that a list request names.
func matching(ws *state.WatchSet, snap *state.Snapshot, args *structs.EvalListRequest) func(yield func(*structs.Evaluation) bool) {
	return func(yield func(*structs.Evaluation) bool) {
		for ev := range snap.Evals(ws, namespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
			if (args.Job != "" && ev.JobID != args.Job) || (args.Status != "" && ev.Status != args.Status) {
				continue
			}
			if !yield(ev) {
				return
			}
		}
	}
}

func (e *Endpoints) evalCount(ctx context.Context, args *structs.EvalListRequest) (*structs.CountReply, error) {
	reply := &structs.CountReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		all, err := page(&structs.QueryOptions{Filter: args.Filter}, &structs.QueryMeta{}, matching(ws, snap, args),
			func(ev *structs.Evaluation) string { return ev.ID })
		reply.Count = len(all)
		return snap.WrittenIndex(state.TableEvals), err
	})
}

func (e *Endpoints) evalGet(ctx context.Context, args *structs.EvalGetRequest) (*structs.EvalReply, error) {
	if err := checkUUID("evaluation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.EvalReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
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

func (e *Endpoints) evalAllocs(ctx context.Context, args *structs.IDRequest) (*structs.AllocListReply, error) {
	if err := checkUUID("evaluation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocListReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		allocs := snap.AllocsByEval(ws, args.ID)
		var err error
		reply.Allocations, err = pageAllocs(&args.QueryOptions, &reply.QueryMeta, allocs, false, true)
		return allocsIndex(snap, allocs), err
	})
}

// holds tells whether a worker still holds the evaluation that it speaks for.
func (e *Endpoints) holds(evalID, token string) error {
	if have, ok := e.Broker.Outstanding(evalID); !ok || have != token {
		return structs.Errorf(structs.CodeStaleRequest, "evaluation %s is not held with that token any more", evalID)
	}
	return nil
}

func (e *Endpoints) evalUpdate(ctx context.Context, args *structs.EvalUpdateRequest) (*structs.WriteReply, error) {
	if err := e.holds(args.EvalID, args.Token); err != nil {
		return nil, err
	}
	index, err := e.Applier.Apply(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: args.Evals, Time: e.Now().UnixNano()})
	if err != nil {
		return nil, err
	}
	return &structs.WriteReply{WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoints) planSubmit(ctx context.Context, args *structs.PlanRequest) (*structs.PlanReply, error) {
	if args.Plan == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the request has no Plan")
	}
	result, err := e.Plans.Submit(ctx, args.Plan)
	if err != nil {
		return nil, err
	}
	return &structs.PlanReply{Result: result, WriteMeta: structs.WriteMeta{Index: result.AllocIndex}}, nil
}

package rpc

import (
	"context"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

func (e *Endpoints) registerAllocs(mux *wire.Mux) {
	mux.Handle(wire.MethodAllocList, read(e, e.allocList))
	mux.Handle(wire.MethodAllocGet, read(e, e.allocGet))
	mux.Handle(wire.MethodAllocStop, write(e, e.allocStop))
	mux.Handle(wire.MethodAllocSuspend, write(e, e.allocSuspend))
	mux.Handle(wire.MethodHistoryList, read(e, e.historyList))
}

func (e *Endpoints) allocList(ctx context.Context, args *structs.ListRequest) (*structs.AllocListReply, error) {
	reply := &structs.AllocListReply{}
	tasks, asked := args.Fields["task_states"]
	tasks = tasks || !asked // Nomad's list shows them unless told not to
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Allocations, err = page(&args.QueryOptions, &reply.QueryMeta, func(yield func(*structs.AllocListStub) bool) {
			for a := range snap.Allocs(ws, namespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
				if !yield(a.Stub(args.Fields["resources"], tasks)) {
					return
				}
			}
		}, func(a *structs.AllocListStub) string { return a.ID })
		return snap.WrittenIndex(state.TableAllocs), err
	})
}

func (e *Endpoints) allocGet(ctx context.Context, args *structs.IDRequest) (*structs.AllocReply, error) {
	if err := checkUUID("allocation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Alloc = snap.Alloc(ws, args.ID)
		if reply.Alloc == nil {
			return snap.TableIndex(state.TableAllocs), nil
		}
		return reply.Alloc.ModifyIndex, nil
	})
}

func (e *Endpoints) allocStop(ctx context.Context, args *structs.AllocStopRequest) (*structs.AllocStopReply, error) {
	snap := e.Store.Snapshot()
	alloc := snap.Alloc(nil, args.AllocID)
	if alloc == nil {
		return nil, notFound("allocation", args.AllocID)
	}
	job := alloc.Job
	if now := snap.Job(nil, alloc.Namespace, alloc.JobID); now != nil {
		job = now
	}
	if job == nil {
		return nil, notFound("job", alloc.JobID)
	}
	now := e.Now().UnixNano()
	yes := true
	transition := &structs.DesiredTransition{Migrate: &yes}
	if args.Reschedule {
		transition.Reschedule = &yes
	}
	if args.NoShutdownDelay {
		transition.NoShutdownDelay = &yes
	}
	eval := e.newEval(job, structs.EvalTriggerAllocStop, now)
	entry := &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: transition}, Evals: []*structs.Evaluation{eval}, Time: now,
	}
	index, err := e.Applier.Apply(ctx, structs.LogAllocTransition, entry)
	if err != nil {
		return nil, err
	}
	return &structs.AllocStopReply{EvalID: eval.ID, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoints) historyList(ctx context.Context, args *structs.ListRequest) (*structs.HistoryReply, error) {
	reply := &structs.HistoryReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Records, err = page(&args.QueryOptions, &reply.QueryMeta,
			snap.History(ws, namespaceOf(&args.QueryOptions), args.Prefix),
			func(r *structs.HistoryRecord) string { return r.AllocID })
		return snap.TableIndex(state.TableHistory), err
	})
}

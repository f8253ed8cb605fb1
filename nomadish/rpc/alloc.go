package rpc

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
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
		all, err := allocsListed(ws, snap, &args.QueryOptions, func(a *structs.Allocation) *structs.AllocListStub {
			return a.Stub(args.Fields["resources"], tasks)
		})
		if err != nil {
			return 0, err
		}
		reply.Allocations, err = take(&args.QueryOptions, &reply.QueryMeta, all.items, all.token)
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
		showNetwork(snap, reply.Alloc)
		return reply.Alloc.ModifyIndex, nil
	})
}

// showNetwork says what the network of an allocation is that shares its node's, once its client has heard of it: the node's
// address. It is not kept, because it follows from the node. The allocation is changed.
func showNetwork(snap *state.Snapshot, a *structs.Allocation) {
	if a.NetworkStatus != nil || len(a.TaskStates) == 0 || a.Job == nil {
		return
	}
	if g := a.Job.LookupTaskGroup(a.TaskGroup); g == nil || len(g.Networks) > 0 && g.Networks[0].Mode != "" && g.Networks[0].Mode != structs.NetworkModeHost {
		return
	}
	node := snap.Node(nil, a.NodeID)
	if node == nil || node.NodeResources == nil || len(node.NodeResources.Networks) == 0 || node.NodeResources.Networks[0] == nil {
		return
	}
	a.NetworkStatus = &structs.AllocNetworkStatus{Address: node.NodeResources.Networks[0].IP}
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

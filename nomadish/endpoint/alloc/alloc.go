package alloc

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.AllocListReply, error) {
	reply := &structs.AllocListReply{}
	tasks, requested := args.Fields["task_states"]
	tasks = tasks || !requested // Nomad's list shows them unless a request excludes them
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		all, err := allocsListed(ws, snap, &args.QueryOptions, func(a *structs.Allocation) *structs.AllocListStub {
			return a.Stub(args.Fields["resources"], tasks)
		})
		if err != nil {
			return 0, err
		}
		reply.Allocations, err = rpc.Take(&args.QueryOptions, &reply.QueryMeta, all.Items, all.Token)
		return snap.WrittenIndex(state.TableAllocs), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.AllocReply, error) {
	if err := rpc.CheckUUID("allocation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Alloc = snap.Alloc(ws, args.ID)
		if reply.Alloc == nil {
			return snap.TableIndex(state.TableAllocs), nil
		}
		rpc.ShowNetwork(snap, reply.Alloc)
		if reply.Class, reply.Claim = reply.Alloc.ClassAndClaim(); reply.Claim != nil {
			reply.Claim.Cell = cellOf(snap, reply.Alloc, reply.Claim)
		}
		return reply.Alloc.ModifyIndex, nil
	})
}

// cellOf returns the name of the bound cell that an allocation uses; "": it uses none any more.
func cellOf(snap *state.Snapshot, a *structs.Allocation, claim *structs.AllocClaim) string {
	owner := claim.Owner
	if claim.Kind == structs.ClaimSlots {
		owner = structs.ProjectOwner(claim.Owner)
	}
	view := scheduler.ClaimViews(snap.World(), owner, true)[owner]
	if view == nil {
		return ""
	}
	var names []string // of several cells of one node
	for _, c := range view.Bound {
		if slices.Contains(c.Allocs, a.ID) {
			names = append(names, c.Cell)
		}
	}
	return strings.Join(names, ", ")
}

func (e *Endpoint) stop(ctx context.Context, args *structs.AllocStopRequest) (*structs.AllocStopReply, error) {
	snap := e.Router.Snapshot()
	alloc := snap.Alloc(nil, args.AllocID)
	if alloc == nil {
		return nil, rpc.NotFound("allocation", args.AllocID)
	}
	job := alloc.Job
	if now := snap.Job(nil, alloc.Namespace, alloc.JobID); now != nil {
		job = now
	}
	if job == nil {
		return nil, rpc.NotFound("job", alloc.JobID)
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
	eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerAllocStop, now)
	entry := &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: transition}, Evals: []*structs.Evaluation{eval}, Time: now,
	}
	index, err := e.Applier.Apply(ctx, structs.LogAllocTransition, entry)
	if err != nil {
		return nil, err
	}
	return &structs.AllocStopReply{EvalID: eval.ID, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoint) history(ctx context.Context, args *structs.ListRequest) (*structs.HistoryReply, error) {
	reply := &structs.HistoryReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Records, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta,
			snap.History(ws, rpc.NamespaceOf(&args.QueryOptions), args.Prefix),
			func(r *structs.HistoryRecord) string { return r.AllocID })
		return snap.TableIndex(state.TableHistory), err
	})
}

// allocsListed is evalsListed of package eval for allocations, of which stub makes lines.
func allocsListed(
	ws *state.WatchSet, snap *state.Snapshot, args *structs.QueryOptions, stub func(*structs.Allocation) *structs.AllocListStub,
) (rpc.Listed[*structs.AllocListStub], error) {
	ns := rpc.NamespaceOf(args)
	stubs := func(all iter.Seq[*structs.Allocation]) func(yield func(*structs.AllocListStub) bool) {
		return func(yield func(*structs.AllocListStub) bool) {
			for a := range all {
				if !yield(stub(a)) {
					return
				}
			}
		}
	}
	if args.Prefix != "" {
		token := func(a *structs.AllocListStub) string { return a.ID }
		return rpc.Listed[*structs.AllocListStub]{Items: rpc.FromToken(args, stubs(snap.Allocs(ws, ns, args.Prefix, args.Reverse)), token), Token: token}, nil
	}
	sorted, err := rpc.Chronological(args, snap.AllocRows(ws, ns),
		func(r *state.AllocRow) rpc.Created { return rpc.Created{Index: r.CreateIndex(), ID: r.ID()} }, (*state.AllocRow).CompareCreated)
	if err != nil {
		return rpc.Listed[*structs.AllocListStub]{}, err
	}
	token := func(a *structs.AllocListStub) string { return rpc.Created{Index: a.CreateIndex, ID: a.ID}.Token() }
	return rpc.Listed[*structs.AllocListStub]{Items: stubs(snap.WholeAllocs(sorted)), Token: token}, nil
}

package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Bounds of an explanation: the jobs before it in the queue that are named, the nodes
// on which those are looked for that delay its allocations, and the jobs that an
// unknown name may have meant. At most maxExplaining are made at a time, as one may take
// a tenth of a second of a core.
const (
	aheadNamed    = 10
	leavingNodes  = 200
	nearNamed     = 3
	nearLooked    = 10_000
	maxExplaining = 2 // explanations that a server makes at once
)

// jobExplain returns why a job is placed as it is. What an explanation reads is nearly
// everything, so a blocking query waits for any change of it, and is computed once, when
// it is answered.
func (e *Endpoint) jobExplain(ctx context.Context, args *structs.JobExplainRequest) (*structs.JobExplainReply, error) {
	reply := &structs.JobExplainReply{}
	ns := rpc.NamespaceOf(&args.QueryOptions)
	err := e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		if snap.Job(ws, ns, args.ID) == nil {
			return snap.TableIndex(state.TableJobs), nil
		}
		if ws != nil {
			queueview.Watch(ws, snap)
			snap.Nodes(ws, "", false)
			snap.Allocs(ws, structs.AllNamespaces, "", false)
			snap.Reservations(ws)
		}
		return explainIndex(snap), nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case e.explaining <- struct{}{}:
		defer func() { <-e.explaining }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	snap := e.Router.Snapshot()
	job := snap.Job(nil, ns, args.ID)
	if job == nil {
		reply.Near = nearJobs(snap, ns, args.ID)
		return reply, nil
	}
	if args.Group != "" && job.LookupTaskGroup(args.Group) == nil {
		var names []string
		for _, g := range job.TaskGroups {
			names = append(names, g.Name)
		}
		return nil, structs.Errorf(structs.CodeBadRequest, "job %q has no group %q: name one of %s", job.ID, args.Group, strings.Join(names, ", "))
	}
	reply.Index = max(reply.Index, explainIndex(snap))
	in, err := e.explainInput(ctx, snap, job)
	if err != nil {
		return nil, err
	}
	in.Group, in.NoRemedies = args.Group, args.NoRemedies
	if reply.Explanation, err = scheduler.Explain(snap.World(), *in); err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "explain job %q: %w", job.ID, err)
	}
	e.addForecast(reply.Explanation, snap, job)
	return reply, nil
}

// explainIndex is when anything last changed that an explanation looks at.
func explainIndex(snap *state.Snapshot) uint64 {
	return max(snap.TableIndex(state.TableJobs), snap.TableIndex(state.TableNodes), snap.TableIndex(state.TableAllocs),
		snap.TableIndex(state.TableEvals), snap.TableIndex(state.TableReservations), snap.TableIndex(state.TableConfig), queueview.Index(snap))
}

// explainInput gathers what the scheduler explains a job with.
func (e *Endpoint) explainInput(ctx context.Context, snap *state.Snapshot, job *structs.Job) (*scheduler.ExplainInput, error) {
	now, ids := e.Now(), uint64(0)
	in := &scheduler.ExplainInput{Input: snap.Input(job, snap.AllocsByJob(nil, job.Namespace, job.ID, false), &state.InputOptions{
		Now: now, Seed: snap.Index(), Typical: e.Typical, // without it, where binpack places is explained
		NewID: func() string { ids++; return structs.DeriveID("explain "+job.ID, ids) }, // nothing of it is kept
	})}
	for _, ev := range snap.EvalsByJob(nil, job.Namespace, job.ID) {
		if !ev.Terminal() {
			in.Evals = append(in.Evals, ev)
		}
	}
	in.Leaving = leaving(snap, in.Allocs)
	lines, err := e.queue.Around(ctx, snap, job)
	if err != nil {
		return nil, err
	}
	in.Queue = queuePosition(lines, job, &in.Config, now.UnixNano())
	return in, nil
}

// leaving returns the allocations that were requested to stop and have not ended, of the nodes
// on which allocations wait to start.
func leaving(snap *state.Snapshot, allocs []*structs.Allocation) (out []*structs.Allocation) {
	looked := map[string]bool{}
	for _, a := range allocs {
		if a.Terminal() || a.ClientStatus != structs.AllocClientPending || looked[a.NodeID] || len(looked) == leavingNodes {
			continue
		}
		looked[a.NodeID] = true
		for _, o := range snap.AllocsByNode(nil, a.NodeID) {
			if o.PreemptedByAllocation != "" && !o.ClientTerminal() {
				out = append(out, o)
			}
		}
	}
	return out
}

// queuePosition is a job's place in its pool's queue; nil if it is not in it.
func queuePosition(lines []*queueview.Line, job *structs.Job, config *structs.SchedulerConfiguration, now int64) *structs.QueuePosition {
	var q *structs.QueuePosition
	var before []structs.NamespacedID
	pool := cmp.Or(job.NodePool, structs.DefaultNodePool)
	for _, l := range lines {
		if l.Pool() != pool {
			continue
		}
		id := structs.NamespacedID{ID: l.Job.ID, Namespace: l.Job.Namespace}
		if l.Job.ID == job.ID && l.Job.Namespace == job.Namespace {
			if q == nil {
				q = &structs.QueuePosition{Pool: pool, Place: l.Place, Since: l.Request.Since, EvalID: l.Request.EvalID, Priority: config.PriorityOf(job, l.Request, l.Standing, now)}
				q.Priority.Standing = l.Rank.Standing
				q.Ahead = slices.Clone(before[max(0, len(before)-aheadNamed):])
				slices.Reverse(q.Ahead)
			} else if p := config.PriorityOf(job, l.Request, l.Standing, now); p.Total > q.Priority.Total {
				q.Priority = p // its position is that of its best request
			}
			q.Since = min(q.Since, l.Request.Since)
		} else if q == nil && (len(before) == 0 || before[len(before)-1] != id) {
			if len(before) == 2*aheadNamed {
				before = append(before[:0], before[aheadNamed:]...)
			}
			before = append(before, id)
		}
		if q != nil {
			q.Waiting = max(q.Waiting, l.Place)
		}
	}
	return q
}

// nearJobs are the jobs that an unknown ID may have meant.
func nearJobs(snap *state.Snapshot, ns, id string) (near []string) {
	var known []string
	for j := range snap.Jobs(nil, ns, "", false) {
		if len(known) == nearLooked {
			break
		}
		known = append(known, j.ID)
		if id != "" && len(near) < nearNamed && strings.HasPrefix(j.ID, id) {
			near = append(near, j.ID)
		}
	}
	if best := structs.Nearest(id, known); len(near) == 0 && best != "" {
		near = append(near, best)
	}
	return near
}

// allocExplain returns why an allocation is where it is.
func (e *Endpoint) allocExplain(ctx context.Context, args *structs.IDRequest) (*structs.AllocExplainReply, error) {
	if err := rpc.CheckUUID("allocation", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocExplainReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Explanation = nil
		a := snap.Alloc(ws, args.ID)
		if a == nil {
			return snap.TableIndex(state.TableAllocs), nil
		}
		in := scheduler.AllocInput{Alloc: a, Config: snap.SchedulerConfig(ws), Node: snap.Node(ws, a.NodeID), World: snap.World()}
		index := max(a.ModifyIndex, in.Config.ModifyIndex)
		if in.Node != nil {
			index = max(index, in.Node.ModifyIndex)
		}
		if a.PreemptedByAllocation != "" {
			in.By = snap.Alloc(nil, a.PreemptedByAllocation)
		}
		if a.ClientStatus == structs.AllocClientPending && !a.Terminal() {
			in.Leaving = snap.AllocsByNode(ws, a.NodeID)
			index = max(index, rpc.AllocsIndex(snap, in.Leaving))
		}
		reply.Explanation = scheduler.ExplainAlloc(in)
		return index, nil
	})
}

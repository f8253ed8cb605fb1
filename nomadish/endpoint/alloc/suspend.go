package alloc

import (
	"context"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// suspend suspends an allocation in place because a user wants it, or takes that
// back: then its job is looked at, and the scheduler resumes it when there is room.
func (e *Endpoint) suspend(ctx context.Context, args *structs.AllocSuspendRequest) (*structs.AllocStopReply, error) {
	if err := rpc.CheckUUID("allocation", args.AllocID); err != nil {
		return nil, err
	}
	snap := e.Router.Snapshot()
	alloc := snap.Alloc(nil, args.AllocID)
	short := structs.ShortID(args.AllocID)
	switch {
	case alloc == nil:
		return nil, rpc.NotFound("allocation", args.AllocID)
	case alloc.Terminal():
		return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s: it has ended, or is being stopped (%s)", short, alloc.ClientStatus)
	case args.Resume && !alloc.Suspended():
		return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s: it is not suspended", short)
	}
	if !args.Resume {
		if err := canSuspend(snap, alloc); err != nil {
			return nil, err
		}
	}
	now, suspend := e.Now().UnixNano(), !args.Resume
	entry := &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: {Suspend: &suspend}}, Time: now,
	}
	reply := &structs.AllocStopReply{}
	if args.Resume {
		job := snap.Job(nil, alloc.Namespace, alloc.JobID)
		if job == nil {
			return nil, rpc.NotFound("job", alloc.JobID)
		}
		eval := structs.NewEval(e.NewID(), job, structs.EvalTriggerAllocResume, now)
		entry.Evals, reply.EvalID = []*structs.Evaluation{eval}, eval.ID
	}
	var err error
	reply.Index, err = e.Applier.Apply(ctx, structs.LogAllocTransition, entry)
	return reply, err
}

// canSuspend refuses an allocation of which a task cannot be suspended, by what its node reports about
// the drivers: it would be stopped instead, which its user has not requested.
func canSuspend(snap *state.Snapshot, a *structs.Allocation) error {
	node := snap.Node(nil, a.NodeID)
	job := snap.JobVersion(a.Namespace, a.JobID, a.JobVersion)
	if node == nil || job == nil {
		return nil
	}
	group := job.LookupTaskGroup(a.TaskGroup)
	if group == nil {
		return nil
	}
	for _, t := range group.Tasks {
		if s := a.TaskStates[t.Name]; s != nil && s.State == structs.TaskStateDead {
			continue // nothing of it is left to be suspended
		}
		if node.CannotSuspend(t.Driver) {
			return structs.Errorf(structs.CodeBadRequest, "allocation %s: task %q cannot be suspended: driver %s on node %s cannot do that",
				structs.ShortID(a.ID), t.Name, t.Driver, node.Name).WithHint(
				"stop it instead (`nomadish alloc stop %s`), or keep its job to nodes that can, by a constraint ${attr.%s} = 1",
				structs.ShortID(a.ID), structs.AttrDriverSuspend(t.Driver))
		}
	}
	return nil
}

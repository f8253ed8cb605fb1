package rpc

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// allocSuspend freezes an allocation in place because a user wants it, or takes that
// back: then its job is looked at, and the scheduler lets it go on when there is room.
func (e *Endpoints) allocSuspend(ctx context.Context, args *structs.AllocSuspendRequest) (*structs.AllocStopReply, error) {
	if err := checkUUID("allocation", args.AllocID); err != nil {
		return nil, err
	}
	snap := e.Store.Snapshot()
	alloc := snap.Alloc(nil, args.AllocID)
	short := structs.ShortID(args.AllocID)
	switch {
	case alloc == nil:
		return nil, notFound("allocation", args.AllocID)
	case alloc.Terminal():
		return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s: it has ended, or is being stopped (%s)", short, alloc.ClientStatus)
	case args.Resume && !alloc.Suspended():
		return nil, structs.Errorf(structs.CodeBadRequest, "allocation %s: it is not suspended", short)
	}
	now, suspend := e.Now().UnixNano(), !args.Resume
	entry := &structs.AllocTransitionEntry{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: {Suspend: &suspend}}, Time: now,
	}
	reply := &structs.AllocStopReply{}
	if args.Resume {
		job := snap.Job(nil, alloc.Namespace, alloc.JobID)
		if job == nil {
			return nil, notFound("job", alloc.JobID)
		}
		eval := e.newEval(job, structs.EvalTriggerAllocResume, now)
		entry.Evals, reply.EvalID = []*structs.Evaluation{eval}, eval.ID
	}
	var err error
	reply.Index, err = e.Applier.Apply(ctx, structs.LogAllocTransition, entry)
	return reply, err
}

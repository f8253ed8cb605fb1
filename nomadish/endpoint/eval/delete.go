package eval

import (
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const (
	maxNamedEvals = 20_000 // that one request may name
	evalsPerEntry = 1024   // that one log entry forgets, and as many of their allocations
)

// delete forgets evaluations, which is for an outage: a backlog that nobody wants to be worked off. Nothing may be
// handed out meanwhile. One that a worker still has leased, whose allocations still matter, or that alone would stop what is left
// of its job, stays: it is refused if it was named, and passed over if a filter found it. A job that has no open evaluation
// afterwards waits in the queue no more.
func (e *Endpoint) delete(ctx context.Context, args *structs.EvalDeleteRequest) (*structs.EvalDeleteReply, error) {
	snap := e.Router.Snapshot()
	config := snap.SchedulerConfig(nil)
	switch {
	case !config.PauseEvalBroker:
		return nil, structs.Errorf(structs.CodeBadRequest, "eval broker is enabled; it must be paused before evaluations are deleted").
			WithHint("operator scheduler set-config -pause-eval-broker=true; and =false afterwards")
	case len(args.EvalIDs) == 0 && args.Filter == "":
		return nil, structs.Errorf(structs.CodeBadRequest, "which evaluations? name them (EvalIDs), or select them by what they have in common (Filter)")
	case len(args.EvalIDs) > 0 && args.Filter != "":
		return nil, structs.Errorf(structs.CodeBadRequest, "EvalIDs and Filter exclude each other")
	case len(args.EvalIDs) > maxNamedEvals:
		return nil, structs.Errorf(structs.CodeTooLarge, "%d evaluations are named; at most %d are allowed at once", len(args.EvalIDs), maxNamedEvals)
	}
	found, err := e.toDelete(snap, args)
	if err != nil {
		return nil, err
	}
	reply := &structs.EvalDeleteReply{WriteMeta: structs.WriteMeta{Index: snap.Index()}}
	for len(found) > 0 {
		n := min(len(found), evalsPerEntry)
		index, err := e.deleteEvals(ctx, snap, found[:n])
		if err != nil {
			return nil, err
		}
		reply.Count, reply.Index = reply.Count+n, index
		found = found[n:]
	}
	return reply, nil
}

// toDelete finds the evaluations that a request means, each once.
func (e *Endpoint) toDelete(snap *state.Snapshot, args *structs.EvalDeleteRequest) ([]*structs.Evaluation, error) {
	if args.Filter != "" {
		ns := args.Namespace
		if ns == "" {
			ns = structs.DefaultNamespace
		}
		all, err := rpc.Page(&structs.QueryOptions{Filter: args.Filter}, &structs.QueryMeta{}, snap.Evals(nil, ns, "", false),
			func(ev *structs.Evaluation) string { return ev.ID })
		all = slices.DeleteFunc(all, func(ev *structs.Evaluation) bool { return e.deletable(snap, ev) != nil })
		stops := e.stoppers(snap, all)
		return slices.DeleteFunc(all, func(ev *structs.Evaluation) bool { return stops[ev.ID] > 0 }), err
	}
	out := make([]*structs.Evaluation, 0, len(args.EvalIDs))
	seen := make(map[string]bool, len(args.EvalIDs))
	for _, id := range args.EvalIDs {
		if err := rpc.CheckUUID("evaluation", id); err != nil {
			return nil, err
		}
		ev := snap.Eval(nil, id)
		switch {
		case ev == nil:
			return nil, structs.Errorf(structs.CodeNotFound, "eval not found: %s", id)
		case seen[id]:
			continue
		}
		if err := e.deletable(snap, ev); err != nil {
			return nil, err
		}
		seen[id] = true
		out = append(out, ev)
	}
	stops := e.stoppers(snap, out)
	for _, ev := range out {
		if n := stops[ev.ID]; n > 0 {
			return nil, structs.Errorf(structs.CodeConflict, "eval %s is not safe to delete: job %q is stopped or gone, %d of its allocations are to run, and no other evaluation would stop them", ev.ID, ev.JobID, n).
				WithHint("nothing was deleted; leave the evaluation out: it stops them once the broker hands out again")
		}
	}
	return out, nil
}

// stoppers finds, of evaluations that are to be deleted, those that must stay because without them nothing would stop what is left of a
// job that is stopped or gone, which cannot be evaluated again. It returns how many allocations each would leave. One is kept for a job.
func (e *Endpoint) stoppers(snap *state.Snapshot, evals []*structs.Evaluation) map[string]int {
	ofJob, chosen := map[structs.NamespacedID]*structs.Evaluation{}, map[string]bool{}
	for _, ev := range evals {
		chosen[ev.ID] = true
		if best := ofJob[ev.Job()]; best == nil || e.surety(ev) > e.surety(best) {
			ofJob[ev.Job()] = ev
		}
	}
	out := map[string]int{}
	for id, best := range ofJob { // order does not matter: each has its own place
		if e.surety(best) == 0 || !snap.Job(nil, id.Namespace, id.ID).Stopped() ||
			slices.ContainsFunc(snap.EvalsByJob(nil, id.Namespace, id.ID), func(ev *structs.Evaluation) bool {
				return !chosen[ev.ID] && e.surety(ev) >= e.surety(best)
			}) {
			continue
		}
		for _, a := range snap.AllocsByJob(nil, id.Namespace, id.ID, true) {
			if !a.Terminal() {
				out[best.ID]++
			}
		}
	}
	return out
}

// surety is how surely an evaluation stops what is left of its job; 0: it does not. What a worker has leased may have been decided
// before the job was stopped.
func (e *Endpoint) surety(ev *structs.Evaluation) int {
	_, leased := e.Broker.Outstanding(ev.ID)
	switch {
	case ev.Terminal() || leased:
		return 0
	case ev.Status == structs.EvalStatusBlocked: // it may be cancelled as well
		return 1
	case !ev.WaitUntil.IsZero():
		return 2
	}
	return 3
}

// deletable returns an error that states why an evaluation must stay.
func (e *Endpoint) deletable(snap *state.Snapshot, ev *structs.Evaluation) error {
	if _, leased := e.Broker.Outstanding(ev.ID); leased { // since before the pause; what it places would be nobody's
		return structs.Errorf(structs.CodeConflict, "eval %s is not safe to delete: it is being decided", ev.ID).
			WithHint("nothing was deleted; try again in a moment")
	}
	if n := mattersFor(snap, ev); n > 0 {
		return structs.Errorf(structs.CodeConflict, "eval %s is not safe to delete: %d of its allocations have not ended, or are still needed by job %q", ev.ID, n, ev.JobID).
			WithHint("nothing was deleted; stop the job first, or leave the evaluation out: garbage collection removes it in time")
	}
	return nil
}

// mattersFor is how many of an evaluation's allocations keep it: those that have not ended, or that record of a job that is
// to run how far it is.
func mattersFor(snap *state.Snapshot, ev *structs.Evaluation) (n int) {
	job := snap.Job(nil, ev.Namespace, ev.JobID)
	over := job == nil || job.Stop
	batch := ev.Type == structs.JobTypeBatch || ev.Type == structs.JobTypeSysBatch
	for _, a := range snap.AllocsByEval(nil, ev.ID) {
		ended := a.ClientTerminal() || a.ServerTerminal() && snap.Node(nil, a.NodeID) == nil
		past := a.ServerTerminal() || a.NextAllocation != "" || !over && a.JobVersion < job.Version
		if !ended || !over && (batch || !past) {
			n++
		}
	}
	return n
}

// deleteEvals forgets evaluations with the allocations that they have left. One that is open is cancelled first, as garbage
// collection takes only what has ended. All entries are such as every version reads.
func (e *Endpoint) deleteEvals(ctx context.Context, snap *state.Snapshot, evals []*structs.Evaluation) (uint64, error) {
	if err := e.withdraw(ctx, evals); err != nil {
		return 0, err
	}
	cancel := &structs.EvalUpsertEntry{Time: e.Now().UnixNano()}
	collect := &structs.CollectEntry{Time: cancel.Time}
	var allocs []string
	for _, ev := range evals {
		collect.Evals = append(collect.Evals, ev.ID)
		for _, a := range snap.AllocsByEval(nil, ev.ID) {
			allocs = append(allocs, a.ID)
		}
		if !ev.Terminal() { // what else it contains is of no use any more
			cancel.Evals = append(cancel.Evals, &structs.Evaluation{
				ID: ev.ID, Namespace: ev.Namespace, Priority: ev.Priority, Type: ev.Type, TriggeredBy: ev.TriggeredBy, JobID: ev.JobID,
				JobModifyIndex: ev.JobModifyIndex, Status: structs.EvalStatusCancelled, StatusDescription: "deleted by an operator",
			})
		}
	}
	if len(cancel.Evals) > 0 {
		if _, err := e.Applier.Apply(ctx, structs.LogEvalUpsert, cancel); err != nil {
			return 0, err
		}
	}
	for len(allocs) > evalsPerEntry { // the evaluations go last: by them what is left over is found again
		part := &structs.CollectEntry{Allocs: allocs[:evalsPerEntry], Time: cancel.Time}
		if _, err := e.Applier.Apply(ctx, structs.LogCollect, part); err != nil {
			return 0, err
		}
		allocs = allocs[evalsPerEntry:]
	}
	collect.Allocs = allocs
	return e.Applier.Apply(ctx, structs.LogCollect, collect)
}

// withdraw takes the jobs that have no open evaluation without these out of the queue, and ends what room is reserved for them: nothing
// else would, and others would be kept from that room until its time is over.
func (e *Endpoint) withdraw(ctx context.Context, evals []*structs.Evaluation) error {
	snap := e.Router.Snapshot() // as the earlier entries of the request have left it
	chosen, idle := map[string]bool{}, map[structs.NamespacedID]bool{}
	for _, ev := range evals {
		chosen[ev.ID] = true
	}
	var requests []*structs.RequestUpdate
	for _, ev := range evals {
		id := ev.Job()
		if _, known := idle[id]; known {
			continue
		}
		idle[id] = !slices.ContainsFunc(snap.EvalsByJob(nil, id.Namespace, id.ID), func(ev *structs.Evaluation) bool {
			return !ev.Terminal() && !chosen[ev.ID]
		})
		for _, request := range snap.Requests().OfJob(nil, id.Namespace, id.ID) {
			if idle[id] && request.Missing > 0 {
				requests = append(requests, &structs.RequestUpdate{Namespace: request.Namespace, JobID: request.JobID, Group: request.Group})
			}
		}
	}
	var nodes []string
	for r := range snap.Reservations(nil) {
		if idle[structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}] {
			nodes = append(nodes, r.NodeID)
		}
	}
	return e.Plans.Withdraw(ctx, requests, nodes)
}

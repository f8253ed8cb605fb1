package worker

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// raise lets running allocations use what their namespaces own and nobody waits for, the oldest first (semantics part 2, "Raise"). again
// reports whether another pass is needed at once.
func (p *Pass) raise(pass *scheduler.Pass, snap *state.Snapshot) (out []sent, again bool) {
	due, again := p.raises.DueRaises(snap.Index())
	for _, owner := range due {
		for _, r := range scheduler.DueRaises(pass.World(), owner, func(job structs.NamespacedID, allocID string) bool { return raisable(snap, job, allocID) }) {
			if s, ok := p.raiseOf(pass, snap, owner, r); ok {
				out = append(out, s)
			}
		}
	}
	return out, again
}

// raisable reports whether an allocation may use what its namespace owns, whatever cell it stands in. One that may use a pinned cell alone
// is raised when its job is evaluated.
func raisable(snap *state.Snapshot, id structs.NamespacedID, allocID string) bool {
	job, a := snap.Job(nil, id.Namespace, id.ID), snap.AllocRow(allocID)
	return job != nil && !job.Stopped() && !job.PerNode() && job.Class != structs.ClassOpportunistic &&
		a != nil && !a.Terminal() && a.DesiredStatus() == structs.AllocDesiredRun && !pinned(job.LookupTaskGroup(a.Group()))
}

// pinned reports whether a group's devices name a pinned cell.
func pinned(g *structs.TaskGroup) bool {
	if g == nil {
		return false
	}
	for _, t := range g.Tasks {
		if t.Resources != nil && slices.ContainsFunc(t.Resources.Devices, func(d *structs.RequestedDevice) bool { return d.Topology != nil && d.Topology.Pin != "" }) {
			return true
		}
	}
	return false
}

// raiseOf decides an evaluation of its own that raises allocations of one job.
func (p *Pass) raiseOf(pass *scheduler.Pass, snap *state.Snapshot, owner string, r scheduler.Raise) (s sent, ok bool) {
	job := snap.Job(nil, r.Job.Namespace, r.Job.ID)
	now := p.opts.Clock.Now()
	e := &structs.Evaluation{
		ID: p.opts.NewID(), Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type, JobModifyIndex: job.JobModifyIndex,
		TriggeredBy: structs.EvalTriggerVirtualCluster, Status: structs.EvalStatusPending, StatusDescription: "raises allocations to what the namespace or the project has",
		CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
	lease := p.raises.LeaseRaise(e, owner)
	if lease == nil {
		return s, false
	}
	plan, err := p.decideRaise(pass, snap, lease, r.IDs)
	if err != nil || len(plan.Update) == 0 {
		if err != nil {
			p.opts.Logger.Error("allocations could not be raised", "job", job.ID, "namespace", job.Namespace, "error", err)
		}
		p.queue.Answered(lease, false, err != nil)
		return s, false
	}
	plan.EvalToken = lease.Token
	return sent{lease, plan}, true
}

// decideRaise calls the scheduler; its panic becomes an error.
func (p *Pass) decideRaise(pass *scheduler.Pass, snap *state.Snapshot, lease *queue.Lease, allocs []string) (plan *structs.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = structs.Errorf(structs.CodeInternal, "the scheduler panicked: %v", r)
			p.prepared = scheduler.NewPrepared() // the old one may have been left half done
		}
	}()
	e := lease.Eval
	return pass.DecideRaise(e, snap.EvalInput(e, &state.InputOptions{
		Now: p.opts.Clock.Now(), Seed: seedOf(e, 0), NewID: p.opts.NewID, Prepared: p.prepared, // a seed
	}), allocs)
}

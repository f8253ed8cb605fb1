package state

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/claimcheck"
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/nomadish/state/internal/workflowtable"
	"github.com/nomadish/nomadish/structs"
)

func (x *txn) alloc(id string) *structs.Allocation {
	if r := x.allocs.Get(id); r != nil {
		return r.Whole()
	}
	return nil
}

// putAlloc stores an allocation, the transaction's own copy, in all that is kept of
// it: its row, the World, the counts, the history, the feed. byServer states that the
// servers want something else of it than before, so that its client must look.
func (x *txn) putAlloc(was, now *structs.Allocation, byServer bool) {
	x.putAllocOf(nil, was, now, byServer)
}

// putAllocOf is putAlloc; b is what a new allocation shares with others.
func (x *txn) putAllocOf(b *alloctable.Batch, was, now *structs.Allocation, byServer bool) {
	now.Job = nil
	now.ModifyIndex = x.index
	if byServer {
		now.AllocModifyIndex = x.index
	}
	var old, packed *alloctable.Row
	if was == nil {
		packed = x.allocs.Pack(now, b, nil, nil)
		x.allocs.Add(packed)
	} else {
		old = x.allocs.Get(now.ID)
		packed = x.allocs.Pack(now, nil, old, was)
		x.allocs.Put(packed)
	}
	x.tables.add(TableAllocs)
	x.edit.UpsertAlloc(now)
	x.countAlloc(was, now)
	note(x, KindAlloc, now.ID, old, packed)
	if now.ClientTerminal() && (was == nil || !was.ClientTerminal()) {
		x.record(now)
	}
	projects{x}.countSlots(was, now)
}

// dropAlloc forgets an allocation; its history record stays.
func (x *txn) dropAlloc(was *structs.Allocation) {
	if x.past.Get(was.ID) == nil && !was.ClientTerminal() {
		x.record(was) // it never came to an end that we heard of
	}
	old := x.allocs.Get(was.ID)
	x.allocs.Remove(old)
	x.tables.add(TableAllocs)
	x.edit.DeleteAlloc(was.ID, was.NodeID)
	x.countAlloc(was, nil)
	projects{x}.countSlots(was, nil)
	note(x, KindAlloc, was.ID, old, nil)
}

// AllocClient takes what clients report. What has ended stays as it ended, and what
// is not known (it was collected meanwhile) is passed over.
func (w *Writer) AllocClient(index uint64, e *structs.AllocClientEntry) error {
	return w.commit(index, e.Time, structs.EventAllocationUpdated, "", func(x *txn) error {
		for _, u := range e.Updates {
			if u != nil {
				x.report(u)
			}
		}
		return x.upsertEvals(e.Evals)
	})
}

func (x *txn) report(u *structs.AllocClientUpdate) {
	r := x.allocs.Get(u.ID)
	if r == nil {
		return
	}
	was := r.Brief() // what was reported about its tasks is replaced
	if was.ClientTerminal() || (u.NodeID != "" && u.NodeID != was.NodeID) {
		return
	}
	now := *was
	switch u.ClientStatus {
	case structs.AllocClientPending, structs.AllocClientRunning, structs.AllocClientComplete,
		structs.AllocClientFailed, structs.AllocClientLost, structs.AllocClientUnknown, structs.AllocClientSuspended:
		now.ClientStatus = u.ClientStatus
	case "": // as it was
	default:
		return // what a newer client may mean by it is not ours to guess
	}
	now.ClientDescription, now.TaskStates = u.ClientDescription, u.TaskStates
	if u.DeploymentStatus != nil {
		d := *u.DeploymentStatus
		d.ModifyIndex = x.index
		if was.DeploymentStatus != nil {
			d.Canary = was.DeploymentStatus.Canary
		}
		now.DeploymentStatus = &d
	}
	if u.NetworkStatus != nil {
		now.NetworkStatus = u.NetworkStatus
	}
	now.ModifyTime = u.ModifyTime
	if now.ModifyTime == 0 {
		now.ModifyTime = x.now
	}
	x.putAlloc(was, &now, false)
}

// AllocTransition sets transitions of allocations; it ignores unknown allocations.
func (w *Writer) AllocTransition(index uint64, e *structs.AllocTransitionEntry) error {
	return w.commit(index, e.Time, structs.EventAllocationUpdateDesiredStatus, "", func(x *txn) error {
		for _, id := range slices.Sorted(maps.Keys(e.Transitions)) {
			if was := x.alloc(id); was != nil && e.Transitions[id] != nil {
				x.transition(was, e.Transitions[id])
			}
		}
		return x.upsertEvals(e.Evals)
	})
}

func (x *txn) transition(was *structs.Allocation, to *structs.DesiredTransition) {
	now := *was
	now.DesiredTransition = was.DesiredTransition.Merge(*to)
	now.ModifyTime = x.now
	if to.Suspend != nil && *to.Suspend && !was.Terminal() {
		// Suspended at once. Going on needs room, so the scheduler decides that.
		now.DesiredStatus, now.DesiredDescription, now.SuspendedAt = structs.AllocDesiredSuspend, structs.DescSuspended, 0
	}
	x.putAlloc(was, &now, true)
}

// PlanApply commits judged plans in their order.
func (w *Writer) PlanApply(index uint64, e *structs.PlanCommit) error {
	return w.commit(index, 0, structs.EventPlanResult, "", func(x *txn) error {
		for _, p := range e.Plans {
			if p == nil {
				continue
			}
			if err := checkPlan(p); err != nil {
				return err
			}
			if err := (workflows{x}).checkStart(p); err != nil {
				return err
			}
		}
		for _, p := range e.Plans {
			if p == nil {
				continue
			}
			p, started := workflows{x}.start(p)
			judged, lost := claims{x}.check(p)
			x.applyPlan(judged)
			for _, id := range lost {
				claims{x}.describeLoss(id)
			}
			if len(started) > 0 {
				workflows{x}.evaluateStart(judged, started, p.Advance.EvalSeed)
			}
		}
		return nil
	})
}

func checkPlan(p *structs.JudgedPlan) error {
	for _, b := range p.Place {
		if b == nil {
			return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: a batch is missing", p.EvalID)
		}
		if err := rowcheck.JobID(b.Namespace, b.JobID); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: %w", p.EvalID, err)
		}
		if b.Resources != nil {
			for _, name := range slices.Sorted(maps.Keys(b.Resources.Tasks)) {
				if b.Resources.Tasks[name] == nil {
					return structs.Errorf(structs.CodeBadRequest, "plan of job %q: the resources of task %q are missing", b.JobID, name)
				}
			}
		}
		for i := range b.Instances {
			if n := b.Instances[i].Node; n < 0 || n >= len(b.Nodes) {
				return structs.Errorf(structs.CodeBadRequest, "plan of job %q: instance %d is on node %d of %d", b.JobID, i, n, len(b.Nodes))
			}
		}
	}
	for _, r := range p.Reserve {
		if r == nil {
			return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: a reservation is missing", p.EvalID)
		}
		if err := checkID("node ID", r.NodeID); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: reservation: %w", p.EvalID, err)
		}
	}
	for _, u := range p.Requests {
		if err := rowcheck.RequestUpdate(u); err != nil {
			return structs.Errorf(structs.CodeBadRequest, "plan of evaluation %s: %w", p.EvalID, err)
		}
	}
	for _, e := range p.Evals {
		if err := rowcheck.Eval(e); err != nil {
			return err
		}
	}
	return nil
}

// applyPlan commits one judged plan: stops, then changes in place, then placements,
// then the evaluations, then what is missing after all that.
func (x *txn) applyPlan(p *structs.JudgedPlan) {
	x.now = p.Time
	preempted, taken, borrowed := map[string][]string{}, reclaims{}, workflowtable.Borrowed(p, x.alloc)
	for _, s := range p.Stop {
		if s == nil {
			continue
		}
		if s.PreemptedBy != "" {
			preempted[s.PreemptedBy] = append(preempted[s.PreemptedBy], s.AllocID)
		}
		if s.Reclaim != "" && !s.KeepRunning {
			requestRows{x}.countReclaimed(&taken, s)
		}
		x.stop(s)
	}
	for _, u := range p.Update {
		if u != nil {
			x.updateInPlace(u)
		}
	}
	for _, id := range p.Unreserve {
		x.unreserve(id)
	}
	gone := map[structs.NamespacedID]*structs.Node{}
	for _, b := range p.Place {
		x.place(b, preempted, gone)
	}
	for _, r := range p.Reserve {
		x.reserve(r)
	}
	workflows{x}.reserve(p.Workflow)
	edit := workflows{x}.edit()
	edit.Put = x.put
	edit.TakeBack(borrowed)
	for _, e := range p.Evals {
		x.upsertEval(e)
	}
	for i := range taken.requests {
		requestRows{x}.reclaimRequest(&taken.requests[i])
	}
	for _, u := range p.Requests {
		requestRows{x}.updateRequest(u)
	}
	// A node that went down after the plan was judged: its going made evaluations
	// for what it had then, not for what has come since.
	// The index is in the seed because an evaluation may be committed in parts.
	x.seed, x.minted = p.EvalID+"@"+strconv.FormatUint(x.index, 10), 0
	for _, id := range sortedIDs(gone) {
		x.mint(x.nodeEval(id, gone[id]))
	}
	x.seed = ""
}

func (x *txn) stop(s *structs.AllocStop) {
	was := x.alloc(s.AllocID)
	if was == nil {
		return
	}
	now := *was
	now.ModifyTime = x.now
	if s.FollowupEvalID != "" {
		now.FollowupEvalID = s.FollowupEvalID
	}
	if !s.KeepRunning && !was.ServerTerminal() {
		switch s.DesiredStatus {
		case structs.AllocDesiredEvict, structs.AllocDesiredRun, structs.AllocDesiredSuspend:
			now.DesiredStatus = s.DesiredStatus
		default:
			now.DesiredStatus = structs.AllocDesiredStop
		}
		now.DesiredDescription, now.PreemptedByAllocation, now.SuspendedAt = s.DesiredDescription, s.PreemptedBy, s.SuspendedAt
		if s.RequeueReason != "" && !was.ClientTerminal() {
			now.Requeues, now.RequeueReason = was.Requeues+1, s.RequeueReason
		}
	}
	if s.ClientStatus == structs.AllocClientUnknown {
		if node := x.node(was.NodeID); node == nil || node.Status != structs.NodeStatusDisconnected {
			return // it was heard of again since that was decided
		}
	}
	switch s.ClientStatus {
	case structs.AllocClientLost, structs.AllocClientUnknown, structs.AllocClientComplete, structs.AllocClientFailed:
		if !was.ClientTerminal() {
			now.ClientStatus, now.ClientDescription = s.ClientStatus, s.DesiredDescription
		}
	}
	x.putAlloc(was, &now, true)
}

func (x *txn) updateInPlace(u *structs.AllocInPlace) {
	was := x.alloc(u.AllocID)
	if was == nil || was.Terminal() {
		return
	}
	now := *was
	if u.ClassTo != "" {
		if was.AllocatedResources == nil || was.AllocatedResources.Shared.Terms == nil {
			return
		}
		terms := was.AllocatedResources.Shared.Terms.Opportunistic()
		now.AllocatedResources, now.ModifyTime = was.AllocatedResources.Copy(), x.now
		now.AllocatedResources.Shared.Terms = &terms
		now.DesiredDescription = fmt.Sprintf(structs.DescGaveClaim, u.ClassTo)
		x.putAlloc(was, &now, true)
		return
	}
	now.JobVersion, now.EvalID, now.ModifyTime = u.JobVersion, u.EvalID, x.now
	if u.Resources != nil {
		if now.AllocatedResources = u.Resources; claimcheck.HasClaim(u.Resources) && !claimcheck.HasClaim(was.AllocatedResources) && was.DesiredStatus == structs.AllocDesiredRun {
			now.DesiredDescription = "" // of how it lost an earlier one
		}
	}
	if u.Resume && was.DesiredStatus == structs.AllocDesiredSuspend && !was.DesiredTransition.ShouldSuspend() {
		now.DesiredStatus, now.DesiredDescription, now.PreemptedByAllocation, now.SuspendedAt = structs.AllocDesiredRun, "", "", 0
	}
	x.putAlloc(was, &now, true)
}

// place stores a batch's instances. One that is there already is passed over: the
// same plan was committed twice. gone gathers jobs that were placed on nodes which
// have ended.
func (x *txn) place(b *structs.PlacementBatch, preempted map[string][]string, gone map[structs.NamespacedID]*structs.Node) {
	nodes := make([]*structs.Node, len(b.Nodes))
	for i, n := range b.Nodes {
		nodes[i] = x.node(n.ID)
	}
	if x.unread {
		b = alloctable.Unexplained(b, x.job(b.Namespace, b.JobID))
	}
	same := alloctable.NewBatch(b, x.index)
	for i := range b.Instances {
		in := &b.Instances[i]
		id := structs.DeriveID(b.Seed, uint64(in.Ordinal))
		if x.allocs.Get(id) != nil {
			continue
		}
		var now *structs.Allocation
		if len(in.Ports)+len(in.Networks)+len(in.Cores)+len(in.Devices) == 0 && b.Resources != nil {
			now = same.Allocation(b, i, id)
		} else {
			now = b.Allocation(i)
		}
		now.CreateIndex = x.index
		now.PreemptedAllocations = preempted[now.ID]
		if node := nodes[in.Node]; node == nil || node.Terminal() {
			gone[structs.NamespacedID{ID: b.JobID, Namespace: b.Namespace}] = &structs.Node{ID: now.NodeID}
			if node == nil {
				now.ClientStatus, now.ClientDescription = structs.AllocClientLost, "its node is gone"
			}
		}
		x.putAllocOf(same, nil, now, true)
		if now.PreviousAllocation == "" {
			continue
		}
		if was := x.alloc(now.PreviousAllocation); was != nil {
			prev := *was
			prev.NextAllocation = now.ID
			x.putAlloc(was, &prev, false)
		}
	}
}

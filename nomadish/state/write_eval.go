package state

import (
	"cmp"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/structs"
)

// EvalUpsert stores evaluations.
func (w *Writer) EvalUpsert(index uint64, e *structs.EvalUpsertEntry) error {
	return w.commit(index, e.Time, structs.EventEvaluationUpdated, "", func(x *txn) error { return x.upsertEvals(e.Evals) })
}

func (x *txn) upsertEvals(evals []*structs.Evaluation) error {
	for _, e := range evals {
		if err := rowcheck.Eval(e); err != nil {
			return err
		}
	}
	for _, e := range evals {
		x.upsertEval(e)
	}
	return nil
}

// upsertEval stores a checked evaluation. What has ended stays ended: a wake of a
// blocked evaluation that was cancelled meanwhile changes nothing. Of a job's
// blocked evaluations only the newest stays, and none once a later one has placed
// all that was requested. The newest has waited as long as those whose request it continues.
func (x *txn) upsertEval(e *structs.Evaluation) {
	was := named[structs.Evaluation](x.rows, TableEvals, e.ID)
	if was != nil && was.Terminal() && !e.Terminal() {
		return
	}
	now := e.Copy()
	now.RelatedEvals = nil
	if was != nil {
		now.CreateIndex, now.CreateTime = was.CreateIndex, was.CreateTime
	} else {
		now.CreateIndex = x.index
		if now.CreateTime == 0 {
			now.CreateTime = x.now
		}
		x.ofVictim(now)
	}
	if now.Status == structs.EvalStatusBlocked {
		x.waitOn(now)
	}
	x.putEval(was, now)
	if now.QueuedAllocations != nil && now.Status != structs.EvalStatusPending && now.Status != structs.EvalStatusCancelled {
		x.counts(now.Namespace, now.JobID).queued = now.QueuedAllocations
	}
	switch {
	case now.Status == structs.EvalStatusBlocked:
		x.cancelBlocked(now, "superseded by the blocked evaluation "+now.ID)
	case was == nil && now.TriggeredBy == structs.EvalTriggerVirtualCluster: // the queue pass has raised allocations: it placed nothing
	case now.Status == structs.EvalStatusComplete && len(now.FailedTGAllocs) == 0:
		x.cancelBlocked(now, "evaluation "+now.ID+" placed all that was requested")
	}
}

// ofVictim sets the type of a job whose instances were preempted: whoever took
// them does not know the job.
func (x *txn) ofVictim(e *structs.Evaluation) {
	if e.TriggeredBy != structs.EvalTriggerPreemption {
		return
	}
	if job := named[structs.Job](x.rows, TableJobs, e.Namespace, e.JobID); job != nil {
		e.Priority, e.Type, e.JobModifyIndex = job.Priority, job.Type, job.JobModifyIndex
	}
}

// waitOn counts as the waiting of a blocked evaluation what the job's others have waited
// for the same specification, so that a request which is looked at often (a member fails, a
// node comes) reserves room no later than one that is left alone.
func (x *txn) waitOn(now *structs.Evaluation) {
	job := named[structs.Job](x.rows, TableJobs, now.Namespace, now.JobID)
	if job == nil || x.tallyOf(now.Namespace, now.JobID).Open == 0 {
		return
	}
	for was := range rows[structs.Evaluation](x.rows, false, TableEvals, byJob, now.Namespace, now.JobID) {
		if was.Status != structs.EvalStatusBlocked || was.ID == now.ID || was.CreateIndex < job.JobModifyIndex {
			continue
		}
		now.CreateTime = min(now.CreateTime, was.CreateTime)
		if !was.WaitUntil.IsZero() && was.WaitUntil.Before(now.WaitUntil) {
			now.WaitUntil = was.WaitUntil
		}
	}
}

// cancelBlocked cancels the blocked evaluations of a job other than by itself and
// the one that it leaves.
func (x *txn) cancelBlocked(by *structs.Evaluation, why string) {
	if x.tallyOf(by.Namespace, by.JobID).Open == 0 {
		return
	}
	for _, was := range collect(rows[structs.Evaluation](x.rows, false, TableEvals, byJob, by.Namespace, by.JobID)) {
		if was.Status != structs.EvalStatusBlocked || was.ID == by.ID || was.ID == by.BlockedEval {
			continue
		}
		now := was.Copy()
		now.Status, now.StatusDescription = structs.EvalStatusCancelled, why
		x.putEval(was, now)
	}
}

func (x *txn) putEval(was, now *structs.Evaluation) {
	now.ModifyIndex, now.ModifyTime = x.index, x.now
	over := false
	if x.unread && now.Terminal() {
		job := named[structs.Job](x.rows, TableJobs, now.Namespace, now.JobID)
		over = job == nil || job.Workflow == nil
	}
	switch {
	case !over:
		x.countEval(was, now)
		x.put(TableEvals, now)
	case was != nil:
		x.countEval(was, nil)
		x.drop(TableEvals, was)
	}
	note(x, KindEval, now.ID, was, now)
}

func (x *txn) dropEval(was *structs.Evaluation) {
	x.countEval(was, nil)
	x.drop(TableEvals, was)
	note(x, KindEval, was.ID, was, nil)
}

// mint makes an evaluation that follows from this entry, pending if it states nothing else. Without a seed there is none.
func (x *txn) mint(e structs.Evaluation) {
	if x.seed == "" {
		return
	}
	e.ID = structs.DeriveID(x.seed, x.minted)
	x.minted++
	e.Status = cmp.Or(e.Status, structs.EvalStatusPending)
	x.upsertEval(&e)
}

// mintForNode makes evaluations, in the order of their jobs: for the jobs that have
// unended allocations on the node, and, when perNode is set, for those that run on
// every node. done holds the jobs that have one from this entry already.
func (x *txn) mintForNode(node *structs.Node, perNode bool, done map[structs.NamespacedID]bool) {
	jobs := map[structs.NamespacedID]bool{}
	x.allocs.Each(alloctable.ByNode, indexkey.Hash(node.ID), func(r *alloctable.Row) bool {
		if !r.ClientTerminal() {
			jobs[r.JobID()] = true
		}
		return true
	})
	if perNode {
		for j := range rows[structs.Job](x.rows, false, TableJobs, byPerNode, byPerNode) {
			if j.NodePool == "" || node.InPool(j.NodePool) {
				jobs[j.NamespacedID()] = true
			}
		}
	}
	for _, id := range sortedIDs(jobs) {
		if !done[id] {
			done[id] = true
			x.mint(x.nodeEval(id, node))
		}
	}
}

// nodeEval is an evaluation of a job because of a node. A job that is gone is
// evaluated too: what is left of it must be stopped.
func (x *txn) nodeEval(id structs.NamespacedID, node *structs.Node) structs.Evaluation {
	e := structs.Evaluation{
		Namespace: id.Namespace, JobID: id.ID, Priority: structs.JobDefaultPriority, Type: structs.JobTypeService,
		TriggeredBy: structs.EvalTriggerNodeUpdate, NodeID: node.ID, NodeModifyIndex: x.index,
	}
	if job := named[structs.Job](x.rows, TableJobs, id.Namespace, id.ID); job != nil {
		e.Priority, e.Type, e.JobModifyIndex = job.Priority, job.Type, job.JobModifyIndex
	}
	return e
}

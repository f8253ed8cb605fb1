package state

import (
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/nomadish/state/internal/workflowtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Workflows reads the workflows of a snapshot.
type Workflows = workflowtable.Reads

// Workflows returns the reads of workflows, watched by ws.
func (s *Snapshot) Workflows(ws *WatchSet) Workflows {
	return Workflows{Watched: s.v.watched(ws)}
}

// applyWorkflows moves the state on by one entry about workflows.
func (w *Writer) applyWorkflows(index uint64, t structs.LogType, payload any) error {
	at, event, seed := workflowtable.Event(payload)
	return w.commit(index, at, event, seed, func(x *txn) error {
		if event == "" {
			return structs.Errorf(structs.CodeInternal, "log entry type %d with a payload of type %T: unknown", t, payload)
		}
		return workflows{x}.edit().Apply(payload)
	})
}

// workflows is a txn as what workflows do in it sees it.
type workflows struct{ x *txn }

// edit returns the entry as what changes workflows.
func (w workflows) edit() workflowtable.Edit {
	x, entry := w.x, tableEdit(w).entry()
	entry.Put, entry.Drop = w.put, w.drop
	return workflowtable.Edit{
		Entry: entry, Register: w.register, Stop: w.stop, AnyJob: w.anyJob, Note: tableEdit{x}.notes(KindWorkflow),
		HasNamespace: func(name string) bool {
			return name == structs.DefaultNamespace || get[structs.Namespace](x.rows, TableNamespaces, byID, name) != nil
		},
	}
}

// put stores a row. The scheduler's view of what the workflow has reserved follows.
func (w workflows) put(table string, row any) {
	w.x.put(table, row)
	w.claim(row)
}

// drop removes a row.
func (w workflows) drop(table string, row any) {
	w.x.drop(table, row)
	if r, is := row.(*structs.WorkflowRun); is {
		scheduler.DropWorkflow(w.x.edit, structs.WorkflowKey(r.Namespace, r.ID))
	}
}

// claim has the scheduler see what a workflow has reserved.
func (w workflows) claim(row any) {
	r, is := row.(*structs.WorkflowRun)
	if !is {
		return
	}
	if c := r.Claim(); c != nil {
		scheduler.SetWorkflow(w.x.edit, c)
		return
	}
	scheduler.DropWorkflow(w.x.edit, structs.WorkflowKey(r.Namespace, r.ID))
}

// reserve changes what a workflow has reserved, as a plan decided it.
func (w workflows) reserve(to *structs.WorkflowReservation) {
	if to != nil {
		w.edit().Reserve(to)
	}
}

// writeLost writes back which parts of reservations are lost, as the cells that they were in are not their namespaces' any more.
func (w workflows) writeLost() {
	for _, key := range scheduler.LostReservations(w.x.edit) {
		if c := scheduler.WorkflowClaimOf(w.x.edit, key); c != nil {
			w.edit().Lose(c)
		}
	}
}

// restoreWorkflows states what all workflows have reserved.
func restoreWorkflows(r reader, edit *scheduler.Edit) {
	for row := range rows[structs.WorkflowRun](r, false, workflowtable.Workflows, byID) {
		if c := row.Claim(); c != nil {
			scheduler.SetWorkflow(edit, c)
		}
	}
}

// store stores a job that a run starts, as a new version if there was an earlier attempt.
func (w workflows) store(job *structs.Job) (*structs.Job, error) {
	x := w.x
	if err := rowcheck.Job(job); err != nil {
		return nil, err
	}
	was := x.job(job.Namespace, job.ID)
	job.SubmitTime, job.Stop, job.Stable = x.now, false, false
	if was == nil {
		job.Version = x.firstVersion(job.Namespace, job.ID)
	}
	event := x.event
	x.event = structs.EventJobRegistered
	job = x.putVersion(was, job)
	x.event = event
	return job, nil
}

// register stores a job that a run starts, and makes its evaluation.
func (w workflows) register(job *structs.Job) error {
	job, err := w.store(job)
	if err == nil {
		w.evaluate(job, structs.EvalTriggerJobRegister)
	}
	return err
}

// stop stops a job that is not dead, and makes its evaluation.
func (w workflows) stop(namespace, id string) {
	x := w.x
	job := x.job(namespace, id)
	if job == nil || job.Stop || job.Status == structs.JobStatusDead {
		return
	}
	stopped := *job
	stopped.Stop = true
	event := x.event
	x.event = structs.EventJobDeregistered
	job = x.putVersion(job, &stopped)
	x.event = event
	w.evaluate(job, structs.EvalTriggerJobDeregister)
}

func (w workflows) evaluate(job *structs.Job, trigger string) { w.x.mint(w.evaluation(job, trigger)) }

func (w workflows) evaluation(job *structs.Job, trigger string) structs.Evaluation {
	return structs.Evaluation{
		Namespace: job.Namespace, JobID: job.ID, Priority: job.Priority, Type: job.Type, TriggeredBy: trigger, JobModifyIndex: job.JobModifyIndex,
		CreateTime: w.x.now, ModifyTime: w.x.now,
	}
}

// anyJob reports whether there is a job whose ID begins with prefix.
func (w workflows) anyJob(namespace, prefix string) bool {
	for range rows[structs.Job](w.x.rows, false, TableJobs, byPrefix, namespace, prefix) {
		return true
	}
	return false
}

// aliveIn returns the ID of a workflow of a namespace that has not ended; empty if there is none.
func (w workflows) aliveIn(namespace string) string {
	for r := range rows[structs.WorkflowRun](w.x.rows, false, workflowtable.Workflows, byPrefix, namespace, "") {
		if r.Alive() {
			return r.ID
		}
	}
	return ""
}

// forget removes the workflows of a namespace that is deleted.
func (w workflows) forget(namespace string) {
	for _, r := range collect(rows[structs.WorkflowRun](w.x.rows, false, workflowtable.Workflows, byPrefix, namespace, "")) {
		w.drop(workflowtable.Workflows, r)
		w.x.changes = append(w.x.changes, Change{Kind: KindWorkflow, Key: r.NamespacedID().String(), Old: r, Type: structs.EventWorkflowDeleted})
	}
}

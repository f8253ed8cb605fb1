package workflowtable

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// Edit is a log entry about workflows that is being applied.
type Edit struct {
	memtable.Entry
	// HasNamespace reports whether a namespace exists.
	HasNamespace func(name string) bool
	// AnyJob reports whether there is a job whose ID begins with prefix.
	AnyJob func(namespace, prefix string) bool
	// Register stores a job with an evaluation, Stop stops one that is not dead, with an evaluation.
	Register func(*structs.Job) error
	Stop     func(namespace, id string)
	// Note reports what was changed; nil: there was nothing, or is nothing any more.
	Note func(key string, was, now any)
}

// Event returns the time of an entry, the type of its event, and the seed of the evaluations that it makes; the type is "" if the entry is not
// about workflows.
func Event(payload any) (at int64, event, seed string) {
	switch e := payload.(type) {
	case *structs.WorkflowRunEntry:
		return e.Time, structs.EventWorkflowRunRegistered, ""
	case *structs.WorkflowAdvanceEntry:
		return e.Time, structs.EventWorkflowAdvanced, e.EvalSeed
	case *structs.WorkflowStateEntry:
		return e.Time, structs.EventWorkflowStateChanged, e.EvalSeed
	case *structs.WorkflowDeleteEntry:
		return e.Time, structs.EventWorkflowDeleted, ""
	}
	return 0, "", ""
}

// Apply applies an entry that [Event] knows: as a whole, or not at all if it returns an error.
func (x Edit) Apply(payload any) error {
	switch e := payload.(type) {
	case *structs.WorkflowRunEntry:
		return x.run(e)
	case *structs.WorkflowAdvanceEntry:
		return x.advance(e)
	case *structs.WorkflowStateEntry:
		return x.setState(e)
	case *structs.WorkflowDeleteEntry:
		return x.delete(e)
	}
	return structs.Errorf(structs.CodeInternal, "log entry with a payload of type %T: it is not about workflows", payload)
}

func (x Edit) get(namespace, id string) *structs.WorkflowRun {
	return memtable.Get[structs.WorkflowRun](x.Rows, Workflows, byID, namespace, id)
}

// stored returns a workflow, or an error that there is none.
func (x Edit) stored(namespace, id string) (*structs.WorkflowRun, error) {
	if row := x.get(namespace, id); row != nil {
		return row, nil
	}
	return nil, Missing(namespace, id)
}

// Missing is the error of a workflow that does not exist.
func Missing(namespace, id string) error {
	return structs.Errorf(structs.CodeNotFound, "workflow %q in namespace %q: not found", id, namespace)
}

// put stores a row in place of was.
func (x Edit) put(was, now *structs.WorkflowRun) {
	now.ModifyIndex = x.Index
	x.Put(Workflows, now)
	x.Note(now.NamespacedID().String(), memtable.OrNil(was), now)
}

// run starts a run.
func (x Edit) run(e *structs.WorkflowRunEntry) error {
	w, from := e.Workflow, 0
	ns, id := e.Namespace, e.ID
	if w != nil {
		ns, id = w.Namespace, w.ID
	}
	was := x.get(ns, id)
	if w == nil {
		if was == nil {
			return Missing(ns, id)
		}
		w = was.Workflow
		if from = was.StageIndex(e.From); from < 0 {
			return structs.Errorf(structs.CodeBadRequest, "workflow %q: it has no stage %q", id, e.From).
				WithHint("`nomadish workflow status %s` shows its stages", id)
		}
	}
	if err := x.mayRun(w, was, e); err != nil {
		return err
	}
	number := 1
	if was != nil {
		number = was.Run + 1
	}
	for x.AnyJob(ns, structs.WorkflowJobID(id, number, "")) { // of a workflow of this name that was deleted, or of a user
		number++
	}
	now, err := structs.StartRun(w, number, from)
	if err != nil {
		return err
	}
	now.Submitter, now.SubmitTime, now.CreateIndex = e.Submitter, x.Now, x.Index
	if was != nil {
		now.CreateIndex = was.CreateIndex
		now.Previous = slices.Concat([]structs.WorkflowPastRun{was.InBrief()}, was.Previous)
		now.Previous = now.Previous[:min(len(now.Previous), structs.MaxPreviousRuns)]
		keepStages(now, was, from)
	}
	x.put(was, now)
	return nil
}

// keepStages states of the stages that are not run again what the run before states of them.
func keepStages(now, was *structs.WorkflowRun, from int) {
	for i := range from {
		kept := *was.Stages[i]
		kept.State = structs.StageComplete
		now.Stages[i] = &kept
	}
}

// mayRun returns an error if the workflow may not be run now.
func (x Edit) mayRun(w *structs.Workflow, was *structs.WorkflowRun, e *structs.WorkflowRunEntry) error {
	if err := w.Validate(); err != nil {
		return err
	}
	if !x.HasNamespace(w.Namespace) { // it was deleted meanwhile
		return structs.MissingNamespace(w.Namespace)
	}
	have := uint64(0)
	if was != nil {
		have = was.ModifyIndex
	}
	if e.CAS && e.CheckIndex != have {
		return structs.Errorf(structs.CodeConflict, "workflow %q: it was last changed at index %d, not %d", w.ID, have, e.CheckIndex).
			WithHint("read it again, and repeat the change")
	}
	if was != nil && was.Alive() {
		return structs.Errorf(structs.CodeConflict, "workflow %q: run %d has not ended, it is %s", w.ID, was.Run, was.State).
			WithHint("`nomadish workflow status %s` shows it, `nomadish workflow cancel %s` ends it", w.ID, w.ID)
	}
	if was == nil && memtable.Count(x.Rows, Workflows) >= structs.MaxWorkflows {
		return structs.Errorf(structs.CodeTooLarge, "workflow %q: there are %d workflows, and no more are allowed", w.ID, structs.MaxWorkflows).
			WithHint("`nomadish workflow delete` removes those that have ended")
	}
	return nil
}

// Advances returns the jobs that an entry would register which moves a run on, and changes nothing. It returns an error if the entry would be refused.
func (x Edit) Advances(e *structs.WorkflowAdvanceEntry) (register []*structs.Job, err error) {
	_, _, register, err = x.advanced(e)
	return register, err
}

// advanced returns a run as it was and as an entry moves it on, with the jobs that are to be registered.
func (x Edit) advanced(e *structs.WorkflowAdvanceEntry) (was, now *structs.WorkflowRun, register []*structs.Job, err error) {
	if was, err = x.stored(e.Namespace, e.ID); err != nil {
		return nil, nil, nil, err
	}
	if was.Run != e.Run || was.ModifyIndex != e.CheckIndex {
		return nil, nil, nil, structs.Errorf(structs.CodeConflict, "workflow %q: run %d was changed at index %d, not run %d at %d", e.ID, was.Run, was.ModifyIndex,
			e.Run, e.CheckIndex)
	}
	now, register, err = stages.Advance(was, e, x.Now)
	return was, now, register, err
}

// advance moves a run on.
func (x Edit) advance(e *structs.WorkflowAdvanceEntry) error {
	was, now, jobs, err := x.advanced(e)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := x.Register(job); err != nil {
			return err
		}
	}
	x.put(was, now)
	return nil
}

// Reserve changes what a run that has not ended has reserved. It changes nothing if the run is over, or another. What is reserved of a run that was paused
// meanwhile is lent as if it had been before.
func (x Edit) Reserve(to *structs.WorkflowReservation) {
	was := x.get(to.Namespace, to.ID)
	if was == nil || was.Run != to.Run || !was.Alive() {
		return
	}
	closed := to.Closed && was.State != structs.WorkflowPaused
	if was.Posted == to.Posted && was.Missing == to.Missing && was.Closed == closed && structs.PartsEqual(was.Parts, to.Parts) && structs.PartsEqual(was.Keeps, to.Keeps) &&
		slices.Equal(was.Licenses, to.Licenses) {
		return
	}
	now := was.Copy()
	now.Parts, now.Licenses, now.Posted, now.Missing, now.Closed, now.Keeps = to.Parts, to.Licenses, to.Posted, to.Missing, closed, to.Keeps
	x.put(was, now)
}

// Lose writes back a reservation of which parts are lost.
func (x Edit) Lose(c *structs.WorkflowClaim) {
	was := x.get(c.Namespace, c.ID)
	if was == nil || structs.PartsEqual(was.Parts, c.Parts) {
		return
	}
	now := was.Copy()
	now.Parts = c.Parts
	x.put(was, now)
}

// setState pauses, resumes or cancels a run.
func (x Edit) setState(e *structs.WorkflowStateEntry) error {
	was, err := x.stored(e.Namespace, e.ID)
	if err != nil {
		return err
	}
	if !was.Alive() {
		return structs.Errorf(structs.CodeConflict, "workflow %q: run %d has ended, it is %s", e.ID, was.Run, was.State).
			WithHint("`nomadish workflow retry %s` runs it again", e.ID)
	}
	now := was.Copy()
	switch e.Action {
	case structs.WorkflowActionPause:
		now.State, now.Closed = structs.WorkflowPaused, false // what is reserved may be lent until it goes on
	case structs.WorkflowActionResume:
		if was.State == structs.WorkflowPaused {
			now.State = structs.WorkflowRunning
			if was.StartTime == 0 {
				now.State = structs.WorkflowPending
			}
		}
	case structs.WorkflowActionCancel:
		x.cancel(now)
	default:
		return structs.Errorf(structs.CodeInternal, "workflow %q: action %q: unknown", e.ID, e.Action)
	}
	if now.State == was.State {
		return nil
	}
	x.put(was, now)
	return nil
}

// cancel ends a run, and stops all of its jobs that have not ended. What it had reserved is free.
func (x Edit) cancel(r *structs.WorkflowRun) {
	r.State, r.EndTime = structs.WorkflowCancelled, x.Now
	r.Parts, r.Licenses, r.Posted, r.Missing, r.Keeps = nil, nil, false, "", nil
	for i, was := range r.Stages {
		if was.Attempt == 0 {
			continue
		}
		s := was
		if !stages.Over(s.State) {
			s = r.EditStage(i)
			s.State, s.End = structs.StageFailed, x.Now
		}
		for k, j := range s.Jobs {
			x.Stop(r.Namespace, j.JobID)
			if !stages.Over(j.State) {
				s.Jobs[k].State, s.Jobs[k].End = structs.StageFailed, x.Now
			}
		}
	}
}

// delete removes a workflow that is not alive.
func (x Edit) delete(e *structs.WorkflowDeleteEntry) error {
	was, err := x.stored(e.Namespace, e.ID)
	if err != nil {
		return err
	}
	if was.Alive() {
		return structs.Errorf(structs.CodeConflict, "workflow %q: run %d has not ended, it is %s", e.ID, was.Run, was.State).
			WithHint("`nomadish workflow cancel %s` ends it", e.ID)
	}
	if e.EndedBefore > 0 && was.EndTime >= e.EndedBefore {
		return nil
	}
	x.Drop(Workflows, was)
	x.Note(was.NamespacedID().String(), was, nil)
	return nil
}

package stages

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Progress is how far a job of a run is.
type Progress int

// The states of a job that a run distinguishes.
const (
	Pending  Progress = iota // nothing of it has run yet
	Running                  // something of it runs, or has run and more is to come
	Complete                 // all instances have completed
	Failed                   // it has ended, and not all instances have completed
	Stopped                  // it was stopped or purged: to run it again would be against somebody's will
)

// Ended reports whether the job runs no more.
func (p Progress) Ended() bool { return p == Complete || p == Failed || p == Stopped }

// Jobs are the jobs of a workflow as the state has them.
type Jobs struct {
	Progress func(jobID string) Progress
	// Stopping reports whether instances that were stopped may still be running beside which a job must not start: its own and those of earlier runs; of all
	// jobs of the workflow if the ID is empty. nil: there are none.
	Stopping func(jobID string) bool
}

// Next returns the entry that moves a run on as far as it can go now, by how far the jobs of its active stage are; nil: there is nothing to do.
// It is a function of the state, so that whoever leads comes to the same entry; its index makes sure that it is applied once. waits reports that more would
// start if no instances were being stopped.
func Next(r *structs.WorkflowRun, jobs Jobs) (entry *structs.WorkflowAdvanceEntry, waits bool) {
	if !r.Alive() {
		return nil, false
	}
	d := &decision{run: r, jobs: jobs, entry: &structs.WorkflowAdvanceEntry{
		Namespace: r.Namespace, ID: r.ID, Run: r.Run, CheckIndex: r.ModifyIndex, State: r.State, Stage: r.Stage,
	}}
	if r.Active() == nil {
		d.begin()
	} else {
		d.follow()
	}
	if len(d.entry.Stages) == 0 && len(d.entry.Jobs) == 0 && d.entry.State == r.State && d.entry.Stage == r.Stage {
		return nil, d.waits
	}
	return d.entry, d.waits
}

// decision is an entry in the making.
type decision struct {
	run   *structs.WorkflowRun
	jobs  Jobs
	entry *structs.WorkflowAdvanceEntry
	waits bool // something is not started as instances are being stopped
}

// mayStart reports whether no instances are being stopped beside which a job, or a stage if the ID is empty, must not start.
func (d *decision) mayStart(jobID string) bool {
	stopping := d.jobs.Stopping != nil && d.jobs.Stopping(jobID)
	d.waits = d.waits || stopping
	return !stopping
}

// begin starts the stage that comes next, unless the run is paused or, before its first stage, not reserved yet.
func (d *decision) begin() {
	r := d.run
	switch {
	case r.State == structs.WorkflowPaused:
	case r.State == structs.WorkflowPending && !Reserved(r):
	case d.over(d.entry.Stage) && d.mayStart(""):
		d.start(d.entry.Stage)
	}
}

// over reports whether the jobs of a stage run no more: one that is to be tried again when the run is resumed may have had an instance placed again meanwhile.
func (d *decision) over(stage int) bool {
	return !slices.ContainsFunc(d.run.Stages[stage].Jobs, func(j structs.WorkflowRunJob) bool { return j.Attempt > 0 && !d.jobs.Progress(j.JobID).Ended() })
}

// start registers all jobs of a stage.
func (d *decision) start(stage int) {
	d.entry.State, d.entry.Stage = structs.WorkflowRunning, stage
	d.entry.Stages = append(d.entry.Stages, structs.WorkflowStageMove{Stage: stage, State: structs.StageStarting, Start: true})
	for i := range d.run.Stages[stage].Jobs {
		d.entry.Jobs = append(d.entry.Jobs, structs.WorkflowJobMove{Stage: stage, Job: i, State: structs.StageStarting, Register: true})
	}
}

// follow moves the jobs of the active stage on, and the stage with them.
func (d *decision) follow() {
	r, stage := d.run, d.run.Stages[d.run.Stage]
	specs := r.Workflow.Jobs()
	open, failed, begun := false, false, false
	for i := range stage.Jobs {
		j := &stage.Jobs[i]
		state := j.State
		if state == structs.StageStarting || state == structs.StageRunning {
			state = d.job(i, j, specs[j.Name], d.jobs.Progress(j.JobID))
		}
		open = open || state == structs.StageStarting || state == structs.StageRunning
		failed = failed || state == structs.StageFailed
		begun = begun || state != structs.StageStarting
	}
	switch {
	case !open:
		d.end(failed)
	case begun && stage.State == structs.StageStarting:
		d.entry.Stages = append(d.entry.Stages, structs.WorkflowStageMove{Stage: r.Stage, State: structs.StageRunning})
	}
}

// job moves one job of the active stage on, and returns its state then.
func (d *decision) job(index int, j *structs.WorkflowRunJob, spec *structs.WorkflowJob, is Progress) string {
	move := structs.WorkflowJobMove{Stage: d.run.Stage, Job: index, State: j.State}
	switch is {
	case Pending:
	case Running:
		move.State = structs.StageRunning
	case Complete:
		move.State = structs.StageComplete
	case Failed:
		switch {
		case j.Retried >= spec.Retries:
			move.State = structs.StageFailed
		case d.mayStart(j.JobID):
			move.State, move.Register, move.Retry = structs.StageStarting, true, true
		}
	case Stopped:
		move.State = structs.StageFailed
	}
	if move.State != j.State || move.Register {
		d.entry.Jobs = append(d.entry.Jobs, move)
	}
	return move.State
}

// end ends the active stage: all its jobs have ended. Where another one is to start, it lasts until the instances of those that were stopped have ended, too.
func (d *decision) end(failed bool) {
	r, stage := d.run, d.run.Stages[d.run.Stage]
	move := structs.WorkflowStageMove{Stage: r.Stage, State: structs.StageComplete}
	if failed {
		move.State = structs.StageFailed
	}
	last := r.Stage == len(r.Stages)-1
	switch onFailure := r.Workflow.OnFailure; {
	case failed && onFailure == structs.OnFailureRetryStage && stage.Attempt < structs.MaxStageAttempts && !d.stopped():
		if r.State == structs.WorkflowPaused || d.mayStart("") {
			d.again(move)
		}
	case failed && (onFailure != structs.OnFailureContinue || last):
		d.entry.Stages = append(d.entry.Stages, move)
		d.entry.State = structs.WorkflowFailed
	case last:
		d.entry.Stages = append(d.entry.Stages, move)
		d.entry.State, d.entry.Stage = structs.WorkflowComplete, len(r.Stages)
	case r.State == structs.WorkflowPaused:
		d.entry.Stages = append(d.entry.Stages, move)
		d.entry.Stage++
	case d.mayStart(""):
		d.entry.Stages = append(d.entry.Stages, move)
		d.entry.Stage++
		d.start(d.entry.Stage)
	}
}

// stopped reports whether somebody has stopped a job of the active stage: it is not tried again, as that would be against their will.
func (d *decision) stopped() bool {
	return slices.ContainsFunc(d.run.Stages[d.run.Stage].Jobs, func(j structs.WorkflowRunJob) bool {
		return j.State != structs.StageComplete && d.jobs.Progress(j.JobID) == Stopped
	})
}

// again starts the active stage another time; once the run is resumed, if it is paused.
func (d *decision) again(failed structs.WorkflowStageMove) {
	if d.run.State == structs.WorkflowPaused {
		d.entry.Stages = append(d.entry.Stages, failed)
		return
	}
	// What ended just now is registered again in the same entry: of each job the last move counts.
	d.entry.Jobs = slices.DeleteFunc(d.entry.Jobs, func(m structs.WorkflowJobMove) bool { return m.Stage == d.run.Stage })
	d.start(d.run.Stage)
}

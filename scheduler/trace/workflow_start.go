package trace

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// start does what a plan states that starts the stage of which an entry registers the jobs, as the leader does: it takes back what they need, and returns
// where they run. nil: there is none that holds, and the jobs are to be registered and placed as others are.
func (d workflowDriver) start(x *flow, entry *structs.WorkflowAdvanceEntry) ([]*structs.PlacementBatch, error) {
	r := d.r
	stage, only := stages.Registers(entry)
	if !r.flows.reserves() || !x.run.Posted || stage < 0 {
		return nil, nil
	}
	jobs := stages.JobsOf(x.run, stage, only)
	list := make([]scheduler.StageJob, len(jobs))
	for i, job := range jobs {
		job.SubmitTime, job.CreateIndex = r.now, x.rows[x.nameOf(job.ID)].number
		list[i] = scheduler.StageJob{Job: job, EvalID: r.newID()}
	}
	known := scheduler.NewPrepared()
	begins := scheduler.PlanStage(r.world, x.key(), list, r.now, func(job *structs.Job) scheduler.Input {
		return scheduler.Input{Job: job, Config: r.config, Now: time.Unix(0, r.now).UTC(), Seed: r.seed(), NewID: r.newID, Prepared: known}
	})
	if len(begins.Place) == 0 {
		return nil, nil
	}
	holds, err := d.commit(x, &structs.Plan{
		Priority: x.run.Workflow.Priority, AllAtOnce: true, Advance: entry, Workflow: x.reservation(), Stop: begins.Stops, Place: begins.Place,
	})
	if err != nil || !holds {
		return nil, err
	}
	return begins.Place, d.leave(entry, stage, begins.Stops)
}

// leave has those leave who are taken back for a stage that an entry starts.
func (d workflowDriver) leave(entry *structs.WorkflowAdvanceEntry, stage int, stops []*structs.AllocStop) error {
	for _, st := range stops {
		if err := d.r.takeBack(st); err != nil {
			return err
		}
	}
	stages.SetReclaimed(entry, stage, len(stops))
	d.r.flows.figures.takenBack += int64(len(stops))
	return nil
}

// place counts what a plan places of a job that a workflow has registered.
func (d workflowDriver) place(j *job, batch *structs.PlacementBatch) error {
	r := d.r
	if j == nil {
		return fmt.Errorf("job %s is placed, and was not registered", batch.JobID)
	}
	r.queue.leave(j)
	if err := r.place(j, batch, normalMode); err != nil {
		return err
	}
	if j.request.Missing > 0 {
		r.queue.join(j)
		return nil
	}
	r.placedWhole(j)
	return nil
}

package job

import (
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// maxNote bounds what people may write as a message beside a job, in bytes. It is kept with the job, and shown in lists.
const maxNote = 1 << 10

// checkCount returns an error if a job's groups have more instances together than this cluster allows. The count of the group
// scaled, if it is not nil, counts as count.
func (e *Endpoint) checkCount(job *structs.Job, scaled *structs.TaskGroup, count int64) error {
	if e.MaxCount <= 0 {
		return nil
	}
	total := int64(0)
	for _, g := range job.TaskGroups {
		n := int64(g.Count)
		if g == scaled {
			n = count
		}
		if n > int64(e.MaxCount) || total+n > int64(e.MaxCount) {
			return structs.Errorf(structs.CodeBadRequest, "job %q > group %q: count %d: this cluster allows at most %d instances of a job, and its other groups before it have %d (job_max_count)",
				job.ID, g.Name, n, e.MaxCount, total)
		}
		total += n
	}
	return nil
}

// checkScalingNote bounds what is kept of a scaling beside its count.
func checkScalingNote(args *structs.JobScaleRequest) error {
	if len(args.Message) > maxNote {
		return structs.Errorf(structs.CodeBadRequest, "Message: must be at most %d bytes, not %d", maxNote, len(args.Message))
	}
	return rpc.CheckMeta(args.Meta)
}

// checkStage returns an error if a job is of a workflow, and its run is over with it: more of it would run beside the stages after its own.
func (e *Endpoint) checkStage(job *structs.Job) error {
	if job.Workflow == nil {
		return nil
	}
	r := e.Router.Snapshot().Workflows(nil).Get(job.Namespace, job.Workflow.ID)
	if r != nil && r.Alive() && r.Run == job.Workflow.Run {
		for _, stage := range r.Stages {
			for _, j := range stage.Jobs {
				if j.JobID == job.ID && (j.State == structs.StageStarting || j.State == structs.StageRunning) {
					return nil
				}
			}
		}
	}
	return structs.Errorf(structs.CodeConflict, "job %q: run %d of workflow %q is over with it", job.ID, job.Workflow.Run, job.Workflow.ID).
		WithHint("`nomadish workflow retry -stage %s %s` runs its stage again, and those after it", job.Workflow.Stage, job.Workflow.ID)
}

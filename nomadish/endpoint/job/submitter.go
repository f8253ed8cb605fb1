package job

import (
	"context"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// identify states in a job who registers it: the user that the request was sent for, if such requests are trusted, with the user's groups
// as this server knows them. Whatever the job stated before is gone. It returns the warnings with its own.
func (e *Endpoint) identify(ctx context.Context, job *structs.Job, name, warnings string) (string, error) {
	if stated := job.Submitter; stated != nil && stated.User != name {
		warnings = strings.TrimPrefix(warnings+fmt.Sprintf("\nthe Submitter %q that the job states is ignored: who submits is the user of the request", stated.User), "\n")
	}
	job.Submitter, job.Submission, job.Workflow = nil, "", nil
	if old := e.Router.Snapshot().Job(nil, job.Namespace, job.ID); old != nil {
		job.Workflow = old.Workflow // a job of a workflow stays one, such as when it is reverted
	} else if err := e.freeOfWorkflows(job); err != nil {
		return "", err
	}
	if name == "" {
		return warnings, nil
	}
	what := fmt.Sprintf("job %q", job.ID)
	if err := e.Identity.Check(what, name); err != nil {
		return "", err
	}
	// Servers that do not know the field would count the versions of the job differently.
	if err := e.Router.Cluster.Readable(structs.LogProjectUpsert); err != nil {
		return "", err
	}
	submitter, known, err := e.Identity.Submitter(ctx, what, name)
	if err != nil {
		return "", err
	}
	if !known {
		warnings = strings.TrimPrefix(warnings+fmt.Sprintf("\nuser %q is not known to the servers' user database, and counts as a member of no group", name), "\n")
	}
	job.Submitter = submitter
	return warnings, nil
}

// freeOfWorkflows returns an error if a new job has the ID of one that a run of a workflow is to register.
func (e *Endpoint) freeOfWorkflows(job *structs.Job) error {
	id, number, name, ok := structs.SplitWorkflowJobID(job.ID)
	if !ok {
		return nil
	}
	r := e.Router.Snapshot().Workflows(nil).Get(job.Namespace, id)
	if r == nil || !r.Alive() || r.Run != number || r.Workflow.Jobs()[name] == nil {
		return nil
	}
	return structs.Errorf(structs.CodeConflict, "job %q: run %d of workflow %q registers a job of this ID when its stage starts", job.ID, number, id).
		WithHint("choose another ID")
}

// checkSubmission returns what the submission check finds of a job now, and the warnings with its own.
func checkSubmission(snap *state.Snapshot, job *structs.Job, warnings string) (found, all string) {
	found = scheduler.Submission(snap.World(), job)
	if found != "" && found != structs.SubmissionRecognised {
		warnings = strings.TrimPrefix(warnings+"\n"+structs.SubmissionText(job, found)+scheduler.SubmissionAdvice(snap.World(), job), "\n")
	}
	return found, warnings
}

// withSubmission returns a job as it is shown: with what the submission check finds of it now.
func withSubmission(snap *state.Snapshot, job *structs.Job) *structs.Job {
	found := scheduler.Submission(snap.World(), job)
	if found == "" {
		return job
	}
	shown := *job
	shown.Submission = found
	return &shown
}

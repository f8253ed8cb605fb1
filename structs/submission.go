package structs

import "fmt"

// What the submission check finds of a job that names a project (docs/design/semantics.md, part 4), in the order in which it looks. With all but
// the last one the job is accepted at the lowest standing.
const (
	SubmissionUnknownProject = "unknown-project" // there is no such project
	SubmissionNotAMember     = "not-a-member"    // who submitted it is no member of the project
	SubmissionNoSuchStep     = "no-such-step"    // the project does not have its step
	SubmissionNoSlots        = "no-slots"        // the project has no slots for it this week
	SubmissionRecognised     = "recognised"
)

// SubmissionText returns a sentence about what the submission check has found of a job; "" if it names no project.
func SubmissionText(j *Job, submission string) string {
	const lowest = "its requests go last"
	switch submission {
	case SubmissionUnknownProject:
		return fmt.Sprintf("there is no project %q: %s", j.Project, lowest)
	case SubmissionNotAMember:
		if j.Submitter == nil {
			return fmt.Sprintf("who submits it is not stated (job run -user NAME), and so is not a member of project %q: %s", j.Project, lowest)
		}
		return fmt.Sprintf("user %q, who submits it, is not a member of project %q: %s", j.Submitter.User, j.Project, lowest)
	case SubmissionNoSuchStep:
		return fmt.Sprintf("project %q has no step %q: %s", j.Project, j.Step, lowest)
	case SubmissionNoSlots:
		return fmt.Sprintf("project %q has no slots for it this week: %s", j.Project, lowest)
	case SubmissionRecognised:
		return fmt.Sprintf("project %q has slots for it this week", j.Project)
	}
	return ""
}

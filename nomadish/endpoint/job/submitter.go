package job

import (
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// identify states in a job who registers it: the user that the request was sent for, if such requests are trusted, with the user's groups
// as this server knows them. Whatever the job stated before is gone. It returns the warnings with its own.
func (e *Endpoint) identify(job *structs.Job, name, warnings string) (string, error) {
	job.Submitter, job.Submission = nil, ""
	switch {
	case name == "":
		return warnings, nil
	case !e.TrustUser:
		return "", structs.Errorf(structs.CodeForbidden, "job %q: the request states the user %q, and this cluster's servers trust no such header", job.ID, structs.Clip(name, structs.MaxUserBytes)).
			WithHint("leave it out (-user, X-Nomadish-User), or set server { trust_user_header = true } if only who may state a user reaches the HTTP API")
	case !structs.ValidUser(name):
		return "", structs.Errorf(structs.CodeBadRequest, "job %q: user %q: must be 1 to %d letters, digits, dots, dashes, underscores or @, and not begin with a dash",
			job.ID, structs.Clip(name, structs.MaxUserBytes), structs.MaxUserBytes)
	}
	// Servers that do not know the field would count the versions of the job differently.
	if err := e.Router.Cluster.Readable(structs.LogProjectUpsert); err != nil {
		return "", err
	}
	groups, known := e.Groups(name)
	if !known {
		warnings = strings.TrimPrefix(warnings+fmt.Sprintf("\nuser %q is not known to the servers' user database, and counts as a member of no group", name), "\n")
	}
	slices.Sort(groups)
	job.Submitter = &structs.Submitter{User: name, Groups: slices.Compact(groups), Source: structs.SubmitterSourceHeader}
	return warnings, nil
}

// groupsHere returns the groups of a user of this machine.
func groupsHere(name string) (groups []string, known bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, false
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, true
	}
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil && structs.ValidUser(g.Name) {
			groups = append(groups, g.Name)
		}
	}
	return groups, true
}

// checkSubmission returns what the submission check finds of a job now, and the warnings with its own.
func checkSubmission(snap *state.Snapshot, job *structs.Job, warnings string) (found, all string) {
	found = scheduler.Submission(snap.World(), job)
	if found != "" && found != structs.SubmissionRecognised {
		warnings = strings.TrimPrefix(warnings+"\n"+structs.SubmissionText(job, found), "\n")
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

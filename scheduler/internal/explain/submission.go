package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// What the submission check finds of a job, and what its user can do about it.

// submission states what the submission check finds of a job (semantics part 4).
func submission(w *world.World, job *structs.Job, out *structs.JobExplanation) {
	out.Submission = standing.Check(w, job)
	if out.SubmissionText = structs.SubmissionText(job, out.Submission); out.Submission != structs.SubmissionRecognised && out.Submission != "" {
		out.SubmissionText += SubmissionAdvice(w, job)
	}
}

// SubmissionAdvice returns what to do about a job that the submission check does not recognise, to follow [structs.SubmissionText]; "": nothing
// needs to be done.
func SubmissionAdvice(w *world.World, job *structs.Job) string {
	spec := w.Slots().Spec(job.Project)
	switch standing.Check(w, job) {
	case structs.SubmissionUnknownProject:
		if near := structs.Nearest(job.Project, w.Slots().Projects()); near != "" {
			return fmt.Sprintf("; did you mean %q?", near)
		}
		return "; correct project = in the job, or create the project (`nomadish project apply`)"
	case structs.SubmissionNotAMember:
		return fmt.Sprintf("; members are %s: submit it as one of them, or add who submits it (`nomadish project apply`)", membersText(spec.Users, spec.Groups))
	case structs.SubmissionNoSuchStep:
		if len(spec.Steps) == 0 {
			return "; it has no steps: leave step = out of the job, or state steps (`nomadish project apply`)"
		}
		if near := structs.Nearest(job.Step, spec.Steps); near != "" {
			return fmt.Sprintf("; did you mean %q?", near)
		}
		return "; its steps are " + strings.Join(spec.Steps, ", ")
	case structs.SubmissionNoSlots:
		return noSlotsAdvice(w, job)
	}
	return ""
}

// noSlotsAdvice is SubmissionAdvice for a job to which no row of its project gives slots.
func noSlotsAdvice(w *world.World, job *structs.Job) string {
	var types []string
	var given []structs.CalendarRow
	of := standing.SubmissionOf(job)
	for _, r := range w.Slots().Spec(job.Project).Rows {
		if r.Count == 0 {
			continue
		}
		given = append(given, structs.CalendarRow(r))
		if !slices.Contains(types, r.Type) {
			types = append(types, r.Type)
		}
	}
	edit := fmt.Sprintf("`nomadish project calendar -type %s -slots N %s` gives this job some", of.Type, of.Project)
	if of.Step != "" {
		edit = fmt.Sprintf("`nomadish project calendar -type %s -slots N -step %s %s` gives this job some", of.Type, of.Step, of.Project)
	}
	switch {
	case len(types) == 0:
		return "; nor has it any for other jobs: " + edit
	case !slices.Contains(types, of.Type):
		slices.Sort(types)
		return fmt.Sprintf("; it uses slots of type %q, and those of the project are of type %s (slot = \"TYPE\" in the job)", of.Type, strings.Join(types, ", "))
	}
	return fmt.Sprintf("; those that it has are for others, %s: %s", structs.RowsText(given), edit)
}

// membersNamed bounds the users and groups that a text names.
const membersNamed = 5

// membersText names the members of a project.
func membersText(users, groups []string) string {
	var names []string
	for _, u := range users {
		names = append(names, "user "+u)
	}
	for _, g := range groups {
		names = append(names, "group "+g)
	}
	switch more := len(names) - membersNamed; {
	case len(names) == 0:
		return "not stated"
	case more == 1:
		names = append(names[:membersNamed], "1 more")
	case more > 1:
		names = append(names[:membersNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

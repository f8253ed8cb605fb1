package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestWorkflowLendsToNone: who is none of those to whom a workflow lends learns why, where that can be changed or does not show: the project that the job states, or does
// not, and who submits it.
func TestWorkflowLendsToNone(t *testing.T) {
	f := func(want string, change func(*structs.Job), to ...string) {
		t.Helper()
		w := newWorkflows(t, 8, 0)
		w.gives("regress", 0)
		for _, name := range to {
			w.claim.Lend = append(w.claim.Lend, &structs.WorkflowLend{To: name})
		}
		w.set()
		w.submit("", "j", 2, change)
		var got []string
		for _, r := range w.explained("j").Group("g").Reasons {
			got = append(got, r.Text)
		}
		if want = "which lends to " + strings.Join(to, ", ") + " only, and this job is not of these" + want; !slices.ContainsFunc(got, func(text string) bool { return strings.HasSuffix(text, want) }) {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	by := func(user, project string) func(*structs.Job) {
		return func(j *structs.Job) {
			if j.Project = project; user != "" {
				j.Submitter = &structs.Submitter{User: user}
			}
		}
	}
	f(": it states no project", by("regress", ""), "project:regress")
	f(`: it is of project "other"`, by("regress", "other"), "project:regress")
	f(`: user "eve", who submits it, is not a member of project "regress"`, by("eve", "regress"), "project:regress")
	f(`: who submits it is not stated (job run -user NAME), and so is not a member of project "regress"`, by("", "regress"), "project:regress")
	f(`: there is no project "gone"`, by("eve", "gone"), "project:gone")
	f(": who submits it is not stated (job run -user NAME)", by("", ""), "user:ann", "group:interns", "namespace:b")
	f("", by("eve", ""), "user:ann", "group:interns", "namespace:b")
}

// TestWorkflowLendsNoLicense: where a license is why a workflow does not lend what a node lacks, the reason says that the job requests it beside that.
func TestWorkflowLendsNoLicense(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:default", LendLonger: true})
	(&licenses{w.projects}).set("vcs", 2)
	w.claim.Licenses = []structs.RequestedLicense{{Name: "vcs", Count: 1}}
	w.set()
	// The first instance borrows.
	w.submit("", "j", 2, licensed(vcs(2)), func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 1000 })
	const want = `what is free is reserved by workflow default/wf, of whose reservation 0 of license "vcs" idle now, and this job requests that license, too`
	if got := w.explained("j").Group("g").Reasons; !slices.ContainsFunc(got, func(r structs.NodeReason) bool { return strings.HasSuffix(r.Text, want) }) {
		t.Errorf("%+v", got)
	}
}

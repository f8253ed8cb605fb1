package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestSubmissionCheck: the five outcomes are told in the answer, by the commands and in job status, and rank the requests: those of a recognised job
// before those of others, those that failed the check last. An edit counts at once.
func TestSubmissionCheck(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, "")
	a.Start()
	a.WaitReady(1)
	harness.CheckOutput(t, a, 0, "project apply "+a.JobFile("projects", `
project "chip" {
  users = ["root"]
  steps = ["place", "route"]
}
`))
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 1 -step place chip")
	file := func(id, lines string, cpu int) string {
		return a.JobFile(id, fmt.Sprintf("job %q {\n  type = \"batch\"\n%s\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n      config { run_for = \"1h\" }\n      resources {\n        cpu    = %d\n        memory = 10\n      }\n    }\n  }\n}\n", id, lines, cpu))
	}
	const never = 10_000_000 // no node has so much
	for _, row := range []struct{ id, user, lines, want string }{
		{"unknown", "root", `project = "nobody"`, structs.SubmissionUnknownProject},
		{"stranger", "", `project = "chip"`, structs.SubmissionNotAMember},
		{"guest", "daemon", `project = "chip"`, structs.SubmissionNotAMember},
		{"step", "root", "project = \"chip\"\n  step = \"paint\"", structs.SubmissionNoSuchStep},
		{"noslots", "root", "project = \"chip\"\n  step = \"route\"", structs.SubmissionNoSlots},
		{"recognised", "root", "project = \"chip\"\n  step = \"place\"", structs.SubmissionRecognised},
		{"none", "root", "", ""},
	} {
		path := file(row.id, "  "+row.lines, never)
		run := "job run -detach " + path
		if row.user != "" {
			run = "job run -detach -user " + row.user + " " + path
		}
		out, code := a.CLI(strings.Fields(run)...)
		if code != 0 {
			t.Fatal(out)
		}
		job, _, err := a.API.Jobs().Info(t.Context(), row.id, nil)
		if err != nil || job.Submission != row.want {
			t.Fatalf("%s: %+v %v, want %q", row.id, job, err, row.want)
		}
		if warned := strings.Contains(out, "its requests go last"); warned != (row.want != "" && row.want != structs.SubmissionRecognised) {
			t.Errorf("%s: %s", row.id, out)
		}
		if row.want != "" {
			harness.CheckOutput(t, a, 0, "job status "+row.id, "Project ", "("+row.want+")")
		}
	}
	order := func() string {
		t.Helper()
		var ids []string
		out, _ := a.CLI("queue")
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 1 && slices.Contains([]string{"recognised", "none", "guest", "noslots"}, fields[1]) { // a standing may be "recognised", too
				ids = append(ids, fields[1])
			}
		}
		return strings.Join(ids, " ")
	}
	if got := order(); got != "recognised none guest noslots" {
		t.Errorf("the queue is %s", got)
	}
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 0 -step place chip")
	harness.CheckOutput(t, a, 0, "project calendar -type batch -slots 1 -step route chip")
	if job, _, err := a.API.Jobs().Info(t.Context(), "noslots", nil); err != nil || job.Submission != structs.SubmissionRecognised {
		t.Errorf("after an edit: %+v %v", job, err)
	}
	if got := order(); got != "noslots none guest recognised" && got != "noslots none recognised guest" {
		t.Errorf("the queue is %s after an edit", got)
	}
}

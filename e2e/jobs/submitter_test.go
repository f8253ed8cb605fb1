package jobs

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestSubmitter: a development agent believes who a job is submitted by, and nobody can state it by any other door; an agent that was not
// told to believes nobody.
func TestSubmitter(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	file := a.JobFile("web", "job \"web\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n      config { run_for = \"1h\" }\n    }\n  }\n}\n")
	submitter := func() *structs.Submitter {
		t.Helper()
		job, _, err := a.API.Jobs().Info(t.Context(), "web", nil)
		if err != nil {
			t.Fatal(err)
		}
		return job.Submitter
	}
	harness.CheckOutput(t, a, 0, "job run -detach "+file)
	if s := submitter(); s != nil {
		t.Errorf("of nobody: %+v", s)
	}
	harness.CheckOutput(t, a, 0, "job run -detach -user root "+file)
	if s := submitter(); s == nil || s.User != "root" || len(s.Groups) == 0 {
		t.Errorf("of root: %+v", s)
	}
	harness.CheckOutput(t, a, 0, "job status web", "Submitted By  = root (")
	a.WaitRunning("web", 1, 20*time.Second) // else the plan places it
	harness.CheckOutput(t, a, 0, "job plan -user nobody-knows-me "+file, "Submitter", `user "nobody-knows-me" is not known`)
	harness.CheckOutput(t, a, 1, "job run -detach -user ../x "+file, "letters, digits")

	job, _, err := a.API.Jobs().Info(t.Context(), "web", nil)
	if err != nil {
		t.Fatal(err)
	}
	job.Submitter = &structs.Submitter{User: "root", Groups: []string{"wheel"}, Source: "acl"}
	if _, err := a.API.Jobs().Register(t.Context(), &structs.JobRegisterRequest{Job: job}); err != nil {
		t.Fatal(err)
	}
	if s := submitter(); s != nil {
		t.Errorf("forged in JSON: %+v", s)
	}
	harness.CheckOutput(t, a, 1, "job run "+a.JobFile("forged", "job \"forged\" {\n  submitter {\n    user = \"root\"\n  }\n}\n"), "submitter")
}

// TestSubmitterNotTrusted: without trust_user_header a request that states a user is refused, whoever sends it.
func TestSubmitterNotTrusted(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "server {\n  enabled = true\n  trust_user_header = false\n}\n")
	file := a.JobFile("web", "job \"web\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"mock_driver\"\n    }\n  }\n}\n")
	harness.CheckOutput(t, a, 1, "job run -detach -user root "+file, "403", "trust_user_header")
	body, err := json.Marshal(map[string]any{"Job": &structs.Job{ID: "web", Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.API.Send(t.Context(), http.MethodPut, "/v1/jobs", http.Header{"X-Nomadish-User": {"root"}, "Content-Type": {"application/json"}}, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is read of it
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a forged header: %d", resp.StatusCode)
	}
	if _, _, err := a.API.Jobs().Info(t.Context(), "web", &api.Query{}); !api.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	harness.CheckOutput(t, a, 0, "job run -detach "+file)
	if job, _, err := a.API.Jobs().Info(t.Context(), "web", nil); err != nil || job.Submitter != nil {
		t.Errorf("it is of %+v, %v", job, err)
	}
}

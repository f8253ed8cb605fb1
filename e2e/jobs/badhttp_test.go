package jobs

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestWrongRequests: each wrong HTTP request has the right code and says what is
// wrong; nothing is lost and the agent lives.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("keep", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	alloc := harness.WaitOfficialRunning(t, a.Nomad, "keep", 1)[0].ID
	unknown := "11111111-2222-3333-4444-555555555555"
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"PUT", "/v1/jobs", `{"Job":`, 400, ""},
		{"PUT", "/v1/jobs", ``, 400, ""},
		{"PUT", "/v1/jobs", `[]`, 400, ""},
		{"PUT", "/v1/jobs", `{"Job":{"ID":7}}`, 400, "ID"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x"}} trailing`, 400, ""},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x"}}`, 400, "group"},
		{"PUT", "/v1/jobs", `{}`, 400, "Job"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Type":"cronish","TaskGroups":[]}}`, 400, "type"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Priority":1000,"TaskGroups":[]}}`, 400, "priority"},
		{"PUT", "/v1/job/other", `{"Job":{"ID":"x"}}`, 400, ""},
		{"DELETE", "/v1/jobs", ``, 405, ""},
		{"PATCH", "/v1/job/keep", `{}`, 405, ""},
		{"DELETE", "/v1/nodes", ``, 405, ""},
		{"PUT", "/v1/allocations", `{}`, 405, ""},
		{"GET", "/v1/nothing", ``, 404, ""},
		{"GET", "/nowhere", ``, 404, ""},
		{"GET", "/v1/job/none", ``, 404, "job not found"},
		{"GET", "/v1/allocation/" + unknown, ``, 404, ""},
		{"GET", "/v1/evaluation/" + unknown, ``, 404, ""},
		{"GET", "/v1/node/" + unknown, ``, 404, ""},
		{"PUT", "/v1/node/" + unknown + "/drain", `{"DrainSpec":{}}`, 404, ""},
		{"GET", "/v1/jobs?index=abc", ``, 400, "index"},
		{"GET", "/v1/jobs?index=-1", ``, 400, "index"},
		{"GET", "/v1/jobs?index=1&wait=soon", ``, 400, "wait"},
		{"GET", "/v1/jobs?per_page=many", ``, 400, "per_page"},
		{"GET", "/v1/jobs?filter=%3D%3D", ``, 400, "filter"},
		{"GET", "/v1/jobs?region=mars", ``, 500, `No path to region "mars": it is not known; known are global`},
		{"GET", "/v1/client/fs/cat/" + alloc, ``, 400, "path"},
		{"GET", "/v1/client/fs/cat/" + alloc + "?path=../../etc/passwd", ``, 403, ""},
		{"GET", "/v1/client/fs/logs/" + alloc + "?task=none&type=stdout", ``, 404, "none"},
		{"GET", "/v1/client/fs/logs/" + alloc + "?task=t&type=stdin", ``, 400, "type"},
		{"PUT", "/v1/client/allocation/" + alloc + "/signal", `{"Signal":"SIGNOTHING"}`, 400, "SIGNOTHING"},
		{"PUT", "/v1/job/keep/scale", `{"Count":-1,"Target":{"Group":"g"}}`, 400, "count"},
		{"PUT", "/v1/job/keep/scale", `{"Count":1,"Target":{"Group":"none"}}`, 400, "none"},
		{"PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"magic"}`, 400, "magic"},
		{"GET", "/v1/event/stream?topic=Nonsense", ``, 400, "Nonsense"},
		{"GET", "/v1/acl/policies", ``, 501, ""},
		{"PUT", "/v1/jobs/parse", `{"JobHCL":"job {"}`, 400, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, a.HTTP+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", c.method, c.path, err)
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		_ = resp.Body.Close()
		if resp.StatusCode != c.code || len(strings.TrimSpace(string(text))) == 0 ||
			!strings.Contains(strings.ToLower(string(text)), strings.ToLower(c.says)) {
			t.Errorf("%s %s %s: code %d, not %d; it says %q (wanted in it: %q)", c.method, c.path, c.body, resp.StatusCode, c.code, text, c.says)
		}
	}
	huge, err := http.NewRequestWithContext(t.Context(), "PUT", a.HTTP+"/v1/jobs", io.LimitReader(endless{}, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(huge); err == nil { // the server may also close while we send
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a body of 64 MiB: code %d, not 413", resp.StatusCode)
		}
	}
	if got := harness.WaitOfficialRunning(t, a.Nomad, "keep", 1)[0].ID; got != alloc {
		t.Errorf("after all that %s runs, not %s", got, alloc)
	}
}

// endless is a body of spaces that never becomes JSON.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

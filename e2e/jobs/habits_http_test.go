package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestHabitsHTTP: what programs made for Nomad count on in answers to requests that Nomad does not refuse.
func TestHabitsHTTP(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	request := func(method, path, body string) (status int, text string, header http.Header) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(10*time.Second))
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, a.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // read only
		var b strings.Builder
		if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return resp.StatusCode, b.String(), resp.Header
	}
	const unknown = "8e231cf4-ca48-43ff-b694-5801e69e22fa"
	parse := func(hcl string) string {
		raw, err := json.Marshal(map[string]string{"JobHCL": hcl})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	ported := parse(`job "p" {
  group "g" {
    network {
      port "web" { static = 8080 }
      port "any" {}
    }
    task "t" {
      driver = "raw_exec"
      identity { env = true }
      identity {
        name = "vault"
        aud  = ["vault"]
      }
    }
  }
}`)
	for _, row := range []struct {
		method, path, body string
		want               []string // of the body
		index              string   // of the header; empty: any
	}{
		// Nothing was ever written: the index of the lists is 0.
		{"GET", "/v1/evaluations", "", []string{"[]"}, "0"},
		{"GET", "/v1/evaluations?prefix=ab", "", []string{"[]"}, "0"},
		{"GET", "/v1/evaluation/" + unknown + "/allocations", "", []string{"[]"}, "0"},
		{"GET", "/v1/allocations", "", []string{"[]"}, "0"},
		{"GET", "/v1/jobs", "", []string{"[]"}, "0"},
		{"GET", "/v1/job/nope/allocations", "", []string{"[]"}, "0"},
		{"GET", "/v1/job/nope/evaluations", "", []string{"[]"}, "0"},
		// A blocking query has an index that can be asked on from.
		{"GET", "/v1/evaluations?index=1&wait=10ms", "", []string{"[]"}, "1"},
		{"GET", "/v1/allocations?index=1&wait=10ms", "", []string{"[]"}, "1"},
		{"GET", "/v1/jobs?index=1&wait=10ms", "", []string{"[]"}, "1"},
		// What is not there is gone, as was asked.
		{"DELETE", "/v1/job/nope", "", []string{`"EvalID":""`}, ""},
		{"DELETE", "/v1/job/nope?purge=true&global=true", "", []string{`"EvalID":""`}, ""},
		{"PUT", "/v1/agent/force-leave?node=nobody", "", nil, ""},
		{"GET", "/v1/deployment/allocations/" + unknown, "", []string{"[]"}, ""},
		// Parsing only parses.
		{"PUT", "/v1/jobs/parse", ported, []string{
			`"ReservedPorts":[{"Label":"web","Value":8080`, `"DynamicPorts":[{"Label":"any"`, `"Identity":{"Name":""`, `"Identities":[{"Name":"vault"`, `"Namespace":null`,
		}, ""},
		{"PUT", "/v1/jobs/parse", parse(`job "bare" {}`), []string{`"ID":"bare"`, `"TaskGroups":null`}, ""},
		{"PUT", "/v1/jobs/parse", parse(`job "j" { namespace = "own" }`), []string{`"Namespace":"own"`}, ""},
		{"PUT", "/v1/validate/job", `{"Job":{"ID":"bare"}}`, []string{`"ValidationErrors":[`, "must have a group"}, ""},
		{"PUT", "/v1/validate/job", `{"Job":{}}`, []string{`"ValidationErrors":[`, "must have a group"}, ""},
		{"GET", "/v1/agent/schedulers", "", []string{`"server_id":"`, `"enabled_schedulers":["service","batch","system","sysbatch","_core"]`, `"status":"Started"`}, ""},
		{"GET", "/v1/agent/schedulers/config", "", []string{`"num_schedulers":`}, ""},
		{"GET", "/v1/node/pools?per_page=1", "", []string{`[{"Name":"all"`}, ""},
	} {
		status, body, header := request(row.method, row.path, row.body)
		if status != http.StatusOK {
			t.Errorf("%s %s: %d %s", row.method, row.path, status, body)
			continue
		}
		for _, part := range row.want {
			if !strings.Contains(body, part) {
				t.Errorf("%s %s: %s is missing in %s", row.method, row.path, part, body)
			}
		}
		if got := header.Get("X-Nomad-Index"); row.index != "" && got != row.index {
			t.Errorf("%s %s: index %q, want %s", row.method, row.path, got, row.index)
		}
	}
	for path, code := range map[string]int{
		"/v1/event/stream?topic=::*": http.StatusBadRequest, "/v1/event/stream?topic=Job::*": http.StatusBadRequest,
		"/v1/job/two%0Alines": http.StatusNotFound, "/v1/job/a%00b": http.StatusBadRequest,
	} {
		if status, body, _ := request("GET", path, ""); status != code {
			t.Errorf("GET %s: %d %s, want %d", path, status, body, code)
		}
	}
	if status, body, _ := request("PUT", "/v1/agent/schedulers/config", `{"num_schedulers":-1,"enabled_schedulers":["_core"]}`); status != 400 || body != "Invalid request" {
		t.Errorf("schedulers: %d %s", status, body)
	}
	// People are told all the same that there is no such thing.
	for _, line := range []string{"job stop nope", "server force-leave nobody"} {
		if out, code := a.CLI(strings.Fields(line)...); code == 0 || !strings.Contains(out, strings.Fields(line)[2]) {
			t.Errorf("%s: exit code %d: %s", line, code, out)
		}
	}
	file := a.JobFile("ported", "job \"p\" {\n  group \"g\" {\n    network {\n      port \"web\" { static = 8080 }\n    }\n    task \"t\" {\n      driver = \"raw_exec\"\n"+
		"      identity { env = true }\n      config { command = \"true\" }\n    }\n  }\n}\n")
	if out, code := a.CLI("job", "run", "-output", file); code != 0 || !strings.Contains(out, `"ReservedPorts": [`) || !strings.Contains(out, `"Identity": {`) {
		t.Errorf("job run -output: exit code %d: %s", code, out)
	}
}

// TestHabitsBlocking: a query of a table that was never written waits when it is asked to, and comes back when something is written.
func TestHabitsBlocking(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	came := make(chan string, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.HTTP+"/v1/evaluations?index=1&wait=60s", http.NoBody)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				defer resp.Body.Close() //nolint:errcheck // read only
				came <- resp.Header.Get("X-Nomad-Index")
				return
			}
		}
		came <- err.Error()
	}()
	select {
	case got := <-came:
		t.Fatalf("a blocking query came back before anything was written: %s", got)
	case <-time.After(300 * time.Millisecond):
	}
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("web", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	if got := <-came; len(got) == 0 || got == "0" || got == "1" {
		t.Errorf("index %q after a job was registered", got)
	}
	evals, _, err := a.Nomad.Evaluations().List(nil)
	if err != nil || len(evals) == 0 {
		t.Fatalf("evaluations: %v, %v", evals, err)
	}
	resp, err := http.Get(a.HTTP + "/v1/evaluation/" + evals[0].ID) // short
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	var fields map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"NodeID", "NodeModifyIndex", "DeploymentID", "WaitUntil", "PlanAnnotations", "RelatedEvals"} {
		if _, there := fields[name]; !there {
			t.Errorf("an evaluation lacks %s", name)
		}
	}
}

// TestHabitsEvents: the event stream says at once that it is open, and without an index tells what it has kept.
func TestHabitsEvents(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(30*time.Second))
	defer cancel()
	_, events := a.Get(ctx, "/v1/event/stream?topic=Node&index=0")
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "{}" {
		t.Fatalf("the first line is %q, %v", lines.Text(), lines.Err())
	}
	for lines.Scan() { // the node was registered before the stream began
		var batch structs.Events
		if err := json.Unmarshal(lines.Bytes(), &batch); err != nil {
			t.Fatal(err)
		}
		for _, ev := range batch.Events {
			if ev.Topic != structs.TopicNode {
				continue
			}
			if text := lines.Text(); !strings.Contains(text, `"Drain":false`) || !strings.Contains(text, `"SecretID":""`) {
				t.Errorf("a node's event lacks Drain or SecretID: %s", text)
			}
			return
		}
	}
	t.Fatalf("no event of the node that was there: %v", lines.Err())
}

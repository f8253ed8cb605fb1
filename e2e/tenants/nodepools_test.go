package tenants

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestNodePools: what users do with node pools, by commands and by Nomad's client.
func TestNodePools(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "client {\n  node_pool = \"gpu\"\n}\n")
	f := func(want int, line string, parts ...string) {
		t.Helper()
		harness.CheckOutput(t, a, want, line, parts...)
	}
	f(0, "node pool list", "all      Node pool with all nodes in the cluster.", "default  Default node pool.", "gpu      <none>") // its node made it
	file := filepath.Join(a.Dir, "example.nomad.hcl")
	f(0, "node pool init "+file, "written to "+file)
	f(1, "node pool init "+file, "not overwritten")
	f(0, "node pool apply "+file, `Successfully applied node pool "example"!`)
	inJSON := filepath.Join(a.Dir, "example.nomad.json")
	f(0, "node pool init -json "+inJSON)
	f(0, "node pool apply -json "+inJSON, `Successfully applied node pool "example"!`)
	f(0, "node pool info exam", "Name        = example", "Description = Example node pool", "environment = prod", "owner       = sre")
	f(1, "node pool info nope", `no node pool has a name that starts with "nope"`)
	f(0, "node pool nodes gpu", "Node Pool", "gpu", "ready")
	f(0, "node pool nodes example", "No nodes")

	text := func(pool string) string {
		return fmt.Sprintf("job \"sleeps\" {\n  node_pool = %q\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        command = \"/bin/sleep\"\n        args = [\"100000\"]\n      }\n    }\n  }\n}\n", pool)
	}
	wrong := a.JobFile("wrong", text("gpus"))
	for _, line := range []string{"job run ", "job validate "} {
		f(1, line+wrong, `wrong.nomad.hcl:2:3: job "sleeps": node_pool: node pool "gpus" does not exist`, "nomadish node pool apply")
	}
	if out, code := a.CLI("job", "plan", wrong); code == 0 || !strings.Contains(out, "does not exist") {
		t.Errorf("planned with exit code %d: %s", code, out)
	}
	f(0, "job run -detach "+a.JobFile("right", text("example")))
	f(0, "node pool jobs example", "sleeps", "service")
	f(0, "node pool jobs gpu", "No jobs")
	f(1, "node pool delete example", "has jobs that are not dead", "nomadish node pool jobs")
	f(1, "node pool delete gpu", "has nodes: 1")
	f(1, "node pool delete default", "built in")
	f(1, "node pool delete nope", "not found")
	f(0, "job stop -detach sleeps")
	harness.Within(t, 20*time.Second, "the job dead", func(context.Context) error {
		if out, code := a.CLI("node", "pool", "delete", "example"); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	if out, code := a.CLI("node", "pool", "list"); code != 0 || strings.Contains(out, "example") {
		t.Errorf("it is deleted, and listed: exit code %d\n%s", code, out)
	}
	for content, why := range map[string]string{
		"node_pool \"x\" {\n  scheduler_config {\n    scheduler_algorithm = \"spread\"\n  }\n}\n": "operator scheduler set-config",
		"node_pool \"all\" {}\n": "built in", "node_pool \"a b\" {}\n": "128", "node_pool {}\n": "needs one name",
		"node_pool \"x\" {\n  descriptions = \"y\"\n}\n": `did you mean "description"?`, "pool \"x\" {}\n": "unknown block",
	} {
		path := a.JobFile("bad", content)
		f(1, "node pool apply "+path, why)
	}
	if out, code := a.CLI("node", "pool", "apply", filepath.Join(a.Dir, "none.hcl")); code != 1 || !strings.Contains(out, "node pool init") {
		t.Errorf("no file: exit code %d: %s", code, out)
	}
}

// TestNodePoolsOfPrograms: Nomad's client, blocking queries, events and search.
func TestNodePoolsOfPrograms(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(60*time.Second))
	defer cancel()
	_, events := a.Get(ctx, "/v1/event/stream?topic=NodePool:dev")
	pools := a.Nomad.NodePools()
	_, meta, err := pools.List(nil)
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan []*nomad.NodePool, 1)
	go func() {
		list, _, err := pools.List((&nomad.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute}).WithContext(ctx))
		if err != nil {
			t.Error(err)
		}
		came <- list
	}()
	made := &nomad.NodePool{Name: "dev", Description: "d", Meta: map[string]string{"a": "b"}, NodeIdentityTTL: time.Hour}
	wm, err := pools.Register(made, nil)
	if err != nil || wm.LastIndex <= meta.LastIndex {
		t.Fatalf("index %v after %d, %v", wm, meta.LastIndex, err)
	}
	if list := <-came; len(list) != 3 || list[2].Name != "dev" || list[2].NodeIdentityTTL != time.Hour || list[2].Meta["a"] != "b" || list[2].CreateIndex != wm.LastIndex {
		t.Errorf("the blocking query gave %+v", list)
	}
	found, _, err := a.Nomad.Search().PrefixSearch("d", contexts.NodePools, nil)
	if err != nil || strings.Join(found.Matches[contexts.NodePools], " ") != "default dev" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := pools.Delete("dev", nil); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]int{"/v1/node/pool/dev": 404, "/v1/node/pool/dev/nodes": 404, "/v1/node/pool/dev/jobs": 404, "/v1/node/pool/all/nodes": 200} {
		resp, err := http.Get(a.HTTP + path) // it ends with the agent
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	lines, told := bufio.NewScanner(events), ""
	for told != "NodePoolUpserted dev 1h0m0s;NodePoolDeleted dev 1h0m0s;" && lines.Scan() {
		var batch struct {
			Events []struct {
				Type, Key string
				Payload   struct{ NodePool structs.NodePool }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &batch); err != nil {
			t.Fatal(err)
		}
		for _, ev := range batch.Events {
			told += fmt.Sprintf("%s %s %s;", ev.Type, ev.Key, ev.Payload.NodePool.NodeIdentityTTL)
		}
	}
	if lines.Err() != nil {
		t.Errorf("the events end with %v after %q", lines.Err(), told)
	}
}
